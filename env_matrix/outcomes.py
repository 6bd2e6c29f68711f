"""Why a cell has no figure, and what was really run: what asv prints and forgets, kept beside its result files.

A cell is in one of four states: measured, n/a (it does not apply, and says why), failed, timed out.
"""

import itertools
import json
import math
import os
import pathlib
import re
import tempfile

from asv.util import TIMEOUT_RETCODE

SKIPPED = re.compile(r"asv: skipped: NotImplementedError\((?P<quote>['\"])(?P<reason>.*)(?P=quote)\)")
REPORT = re.compile(r"^stepline: (\{.*\})$", re.MULTILINE)
TIMED_OUT = re.compile(r"timed out \(timeout (?P<seconds>[0-9.]+)s\)")
EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Unavailable)\b.*")
SAID_BY_ASV = ("asv: benchmark failed", "Traceback", "For parameters:")


def place(result_file: pathlib.Path) -> pathlib.Path:
    """Where the outcomes of a result file are kept."""
    return result_file.with_suffix(".outcomes")


def read(result_file: pathlib.Path) -> dict[str, dict]:
    """The outcomes kept for a result file, cell to outcome; empty when there are none."""
    try:
        return json.loads(place(result_file).read_text())
    except (OSError, ValueError):
        return {}


def merge(kept: dict[str, dict], runs: list[dict[str, dict]]) -> dict[str, dict]:
    """Add the outcomes of runs, in their order, to those that were kept.

    Of each cell the last state is kept, and of every process what it said: samples of one process are not replicates,
    and asv keeps them in one flat list.
    """
    merged = dict(kept)
    for run in runs:
        for cell, outcome in run.items():
            before = merged.get(cell, {}).get("processes", [])
            merged[cell] = {**outcome, "processes": before + outcome["processes"]}
    return merged


def write(result_file: pathlib.Path, found: dict[str, dict]) -> None:
    """Write the outcomes of a result file to the side, and put them in their place at once."""
    aside = place(result_file).with_suffix(".new")
    aside.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    os.replace(aside, place(result_file))


def metric(outcome: dict, name: str) -> list[float]:
    """What each process of a cell said of one metric; those that did not are left out."""
    said = (process.get("metrics", {}).get(name) for process in outcome.get("processes", []))
    return [value for value in said if value is not None]


def of_result(benchmark: dict, result, selected: set[int] | None) -> dict[str, dict]:
    """Outcomes of one run of a benchmark: cell to its state, reason, samples, and what the workload reported.

    `benchmark` and `result` are asv's; `selected` are the indices of the parameter sets that were run.
    """
    parts = re.split(r"^For parameters: (.*)$", result.stderr, flags=re.MULTILINE)
    said = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = {}
    for index, names in enumerate(itertools.product(*benchmark["params"])):
        if selected is None or index in selected:
            cell = ", ".join(names)
            output = said.get(cell, "" if said else result.stderr)
            state, reason = judge(result.result[index], result.errcode, without_places(output))
            reports = REPORT.findall(output)
            kept = json.loads(reports[-1]) if reports else {}
            process = {part: kept.pop(part) for part in ("metrics", "conditions") if part in kept}
            process["samples"] = len(result.samples[index] or [])
            found[f"{benchmark['name']}({cell})"] = {"state": state, "reason": reason, "processes": [process], **kept}
    return found


def without_places(output: str) -> str:
    """What a process said, without the folders of this machine: outcomes are committed."""
    for folder, sign in ((os.getcwd(), "."), (str(pathlib.Path.home()), "~"), (tempfile.gettempdir(), "TMP")):
        output = output.replace(folder, sign)
    return output


def judge(value, errcode: int, output: str) -> tuple[str, str]:
    """State and reason of one cell, from asv's value (None: failed, NaN: n/a) and its process' output."""
    if value is not None and not (isinstance(value, float) and math.isnan(value)):
        return "measured", ""
    if value is not None:
        match = SKIPPED.search(output)
        return "n/a", match["reason"] if match else "the benchmark does not say why"
    if match := TIMED_OUT.search(output):
        return "timed out", f"it did not end within {match['seconds']} s"
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith(SAID_BY_ASV)]
    if errors := [line for line in lines if EXCEPTION.match(line)]:
        return "failed", errors[-1][:500]
    if errcode < 0 and errcode != TIMEOUT_RETCODE:
        return "failed", f"its process was killed by signal {-errcode}"
    return "failed", lines[-1][:500] if lines else f"its process ended with code {errcode}"
