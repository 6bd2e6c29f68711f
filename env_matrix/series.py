"""What has been measured, as series: a cell on one machine along the releases of one library, a figure a process."""

import dataclasses
import json
import math
import pathlib
import statistics
from collections.abc import Iterable

from . import outcomes, pins
from .bench import Cell
from .releases import SET, History, Release
from .stacks import Stack

STEP = "step_time"  # seconds; the other metrics are those of asv's track_ benchmarks
# Differences and shares around nought: no ratio of theirs says anything.
NOT_JUDGED = ("memory_growth", "step_drift")


@dataclasses.dataclass(frozen=True)
class Point:
    """A cell at one release.

    Attributes:
        values: a figure a process; empty unless it was measured.
        said: what the processes said of themselves (see outcomes.py).
    """

    cell: Cell
    state: str
    reason: str
    values: tuple[float, ...]
    said: dict

    @property
    def release(self) -> Release:
        return self.cell.release

    def metric(self, name: str) -> float | None:
        """The median over processes of what they said of a metric."""
        values = outcomes.metric(self.said, name)
        return statistics.median(values) if values else None


@dataclasses.dataclass(frozen=True)
class Series:
    """Points of one cell in the order of their library's releases."""

    machine: str
    library: str
    metric: str
    unit: str
    points: tuple[Point, ...]

    @property
    def column(self) -> str:
        return self.points[0].cell.column

    @property
    def task(self) -> str:
        return self.points[0].cell.task

    @property
    def scale(self) -> str:
        return self.points[0].cell.scale

    @property
    def measured(self) -> list[Point]:
        return [point for point in self.points if point.values]

    def __str__(self):
        return f"{self.column} {self.task} {self.scale} {self.metric} on {self.machine}"


def load(root: pathlib.Path, history: History, stacks: dict[str, Stack]) -> tuple[list[Series], list[str]]:
    """Every series under `root`/results, and a sentence for every file or part that was left out."""
    left_out: list[str] = []
    try:
        benchmarks = json.loads((root / "results" / "benchmarks.json").read_text())
    except (OSError, ValueError):
        return [], ["results/benchmarks.json cannot be read: run stepline run, which makes it"]
    found: dict[tuple, list[Point]] = {}
    for path in sorted((root / "results").glob("*/*-*.json")):
        try:
            for metric, point in points(path, benchmarks, history, stacks, left_out):
                cell = point.cell
                key = (path.parent.name, cell.release.library, cell.column, cell.task, cell.scale, metric)
                found.setdefault(key, []).append(point)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
            left_out.append(
                f"{path.relative_to(root)} is not a whole result file: left out; move it away or restore it"
            )
    order = {release: number for number, release in enumerate(history.releases)}
    return [
        Series(machine, library, metric, unit(benchmarks, metric), tuple(sorted(some, key=lambda p: order[p.release])))
        for (machine, library, _, _, _, metric), some in sorted(found.items())
    ], left_out


def unit(benchmarks: dict, metric: str) -> str:
    """The unit of a metric as asv knows it."""
    if metric == STEP:
        return "s"
    return next((one["unit"] for name, one in benchmarks.items() if name.endswith(f".track_{metric}")), "")


def points(
    path: pathlib.Path, benchmarks: dict, history: History, stacks: dict[str, Stack], left_out: list[str]
) -> Iterable[tuple[str, Point]]:
    """The points of one result file, with the metric of each.

    Raises ValueError, KeyError, TypeError, AttributeError or IndexError when the file is not what asv writes.
    """
    data = json.loads(path.read_text())
    said = outcomes.read(path)
    where = f"{path.parent.name}/{path.name}"
    release = history.by_id.get(data["commit_hash"])
    stack = stacks.get(data["env_vars"]["STEPLINE_STACK"])
    if release is not None and release.library == SET:
        return  # no history: it stands on no branch
    if release is None or stack is None:
        left_out.append(f"{where} is of a release or stack with another lock than today's: left out; measure it again")
        return
    for key, outcome in said.items():
        name, _, parameters = key.rstrip(")").partition("(")
        cell = Cell(release, stack, data["env_vars"].get("STEPLINE_MODE"), name, tuple(parameters.split(", ")))
        row = dict(zip(data["result_columns"], data["results"].get(name, []), strict=False))
        if name not in benchmarks or (row and row["version"] != str(benchmarks[name]["version"])):
            left_out.append(f"{where}: {key} was taken by another version of its benchmark: left out")
            continue
        state, reason = outcome["state"], outcome["reason"]
        yield STEP, Point(cell, state, reason, step_times(row, cell, outcome), outcome)
        named = {metric for process in outcome["processes"] for metric in process.get("metrics", {})}
        for metric in sorted(named):
            yield metric, Point(cell, state, reason, tuple(outcomes.metric(outcome, metric)), outcome)


def step_times(row: dict, cell: Cell, outcome: dict) -> tuple[float, ...]:
    """The median step time of each process of a cell, in seconds.

    Raises ValueError when the samples are not those that the processes say they took.
    """
    taken = [process["samples"] for process in outcome["processes"] if process["samples"]]
    if not taken:
        return ()
    sets = [list(names) for names in row["params"]]
    index = 0
    for names, wanted in zip(sets, cell.parameters, strict=True):
        index = index * len(names) + names.index(wanted)
    samples = list(row["samples"][index] or [])
    if len(samples) != sum(taken) or not all(math.isfinite(sample) for sample in samples):
        raise ValueError("samples are missing")
    medians = []
    for count in taken:
        medians.append(statistics.median(samples[:count]))
        del samples[:count]
    return tuple(medians)


def differences(before: Point, after: Point) -> list[str]:
    """What else differs between a cell at two releases: defaults, counts, and the lock; a phrase each."""
    one, other = before.said.get("facts", {}), after.said.get("facts", {})
    phrases = [
        f"default changed: {fact} {shown(one.get(fact))} -> {shown(other.get(fact))}"
        for fact in sorted(one.keys() | other.keys())
        if one.get(fact) != other.get(fact)
    ]
    for name in ("parameters", "trainable"):
        if before.said.get(name) != after.said.get(name):
            phrases.append(f"{name} {before.said.get(name)} -> {after.said.get(name)}")
    for name in ("operators", "flops", "graphs", "graph_breaks", "recompilations"):
        was, now = before.metric(name), after.metric(name)
        if was is not None and now is not None:
            phrases.append(f"{name} {was:.6g} -> {now:.6g}" if was != now else f"{name} {was:.6g} as before")
    for name in ("build_memory", "peak_memory"):
        was, now = before.metric(name), after.metric(name)
        if was is not None and now is not None:
            phrases.append(f"{name} {was:.3g} -> {now:.3g} MB")
    return phrases


def shown(fact) -> str:
    return ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)


def lock_difference(before: Release, after: Release, stack: Stack) -> list[str]:
    """What changes between the locks of a stack at two releases, a phrase a package."""
    return pins.difference(pins.read(before.locks[stack.name]), pins.read(after.locks[stack.name]))
