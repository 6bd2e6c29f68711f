"""Run the matrix: every cell through asv, one at a time, with progress, and a site that grows."""

import dataclasses
import itertools
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

from asv.results import get_filename

from . import machine, outcomes, site
from .errors import UserError
from .plugin import ReleaseRepo
from .progress import Progress
from .stacks import Stack, choose

PUBLISH_EVERY = 60  # seconds, so that publishing takes little of the machine
FULL_DISK = "No space left on device"


@dataclasses.dataclass(frozen=True)
class Cell:
    """One task on one stack in one mode, at one scale."""

    stack: Stack
    mode: str | None
    benchmark: str  # asv's name: module.Class.method
    parameters: tuple[str, ...]  # as asv prints them

    @property
    def column(self) -> str:
        return f"{self.stack.name}-{self.mode}" if self.mode else self.stack.name

    @property
    def task(self) -> str:
        """The task as people say it: bert-fit, gemma-generate-32."""
        model, kind, _ = self.benchmark.split(".")
        return "-".join([model, kind.lower(), *(p for p in self.parameters if p.isdigit())])

    @property
    def scale(self) -> str:
        return self.parameters[0].strip("'")

    @property
    def key(self) -> str:
        """asv's name of the cell within a result file."""
        return f"{self.benchmark}({', '.join(self.parameters)})"


@dataclasses.dataclass(frozen=True)
class Figure:
    """What became of a cell. Times are in seconds a step."""

    state: str
    reason: str = ""
    seconds: float | None = None
    samples: tuple[float, ...] = ()
    cold: dict[str, float] = dataclasses.field(default_factory=dict)
    measured_s: float = 0.0  # what the whole cell took

    def __str__(self):
        if self.state != "measured" or self.seconds is None:
            return f"{self.state}: {self.reason}"
        low, high = min(self.samples) * 1e3, max(self.samples) * 1e3
        return f"{self.seconds * 1e3:.3g} ms/step ({len(self.samples)} samples, {low:.3g} to {high:.3g})"


class Bench:
    """One run of the matrix in one repository."""

    def __init__(self, root: pathlib.Path, attributes: dict[str, str], verbose: bool = False):
        self.root = root
        self.attributes = attributes
        self.verbose = verbose
        self.repo = ReleaseRepo(None, None)
        self.release = self.repo.get_hash_from_name("reference")

    def asv(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run asv here with this interpreter; its output is returned, not shown.

        The interrupt key reaches asv too, which ends its benchmark; it is then waited for.
        """
        process = subprocess.Popen(
            [sys.executable, "-m", "asv", *arguments],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        try:
            output, _ = process.communicate()
        except KeyboardInterrupt:
            process.communicate()
            raise
        if FULL_DISK in output:
            raise UserError("the disk is full: free some space and run again; finished cells are kept")
        return subprocess.CompletedProcess(process.args, process.returncode, output)

    def install(self, stack: Stack) -> None:
        """Make the stack's environment and discover the benchmarks in it.

        Raises UserError with the cause when it cannot be made.
        """
        if shutil.which(f"python{stack.python}") is None and sys.version_info[:2] != version(stack.python):
            raise UserError(f"{stack.name} needs Python {stack.python}: put python{stack.python} on PATH and run again")
        said = self.asv("run", "-v", "-E", stack.environment(stack.modes[0]), "--bench", "just-discover")
        if said.returncode:
            ours = re.findall(r"stepline: (.+)", said.stdout)
            last = [line.strip(" ·") for line in said.stdout.splitlines() if line.strip(" ·")]
            raise UserError(f"{stack.name} could not be set up: {ours[-1] if ours else last[-1]}")

    def python(self, stack: Stack) -> pathlib.Path:
        """The Python of a stack's environment on disk.

        Raises UserError when asv has not made it yet.
        """
        for info in (self.root / ".asv" / "env").glob("*/asv-env-info.json"):
            if json.loads(info.read_text())["build_env_vars"].get("STEPLINE_STACK") == stack.name:
                return info.parent / "bin" / "python"
        raise UserError(f"{stack.name} has no environment yet: run make bench STACK={stack.name} first")

    def cells(self, stack: Stack, tasks: list[str], scale: str) -> list[Cell]:
        """The stack's cells, as asv discovered them, task by task and mode by mode.

        Raises UserError when a task or the scale is unknown.
        """
        found = json.loads((self.root / "results" / "benchmarks.json").read_text())
        every = [
            Cell(stack, mode, name, parameters)
            for mode in stack.modes
            for name, benchmark in sorted(found.items())
            if name.endswith(".time_step")
            for parameters in itertools.product(*benchmark["params"])
        ]
        scales = choose([scale], list(dict.fromkeys(cell.scale for cell in every)), "scale")
        named = choose(tasks, list(dict.fromkeys(cell.task for cell in every)), "task")
        return [cell for cell in every if cell.task in named and cell.scale in scales]

    def measure(self, cell: Cell) -> Figure:
        """Run one cell through asv and read what it recorded."""
        started = time.monotonic()
        result = self.result_file(cell)
        before = modified(result)
        options = [option for item in self.attributes.items() for option in ("-a", "=".join(item))]
        environment = cell.stack.environment(cell.mode)
        said = self.asv("run", "-E", environment, "--bench", f"^{re.escape(cell.key)}$", "--show-stderr", *options)
        took = time.monotonic() - started
        if self.verbose:
            print(said.stdout, flush=True)
        if modified(result) == before:
            last = [line.strip(" ·") for line in said.stdout.splitlines() if line.strip(" ·")]
            return Figure("failed", f"asv recorded nothing: {last[-1] if last else 'it said nothing'}", measured_s=took)
        return dataclasses.replace(self.figure(cell), measured_s=took)

    def result_file(self, cell: Cell) -> pathlib.Path:
        name = get_filename(machine.facts()["machine"], self.release, cell.stack.environment(cell.mode))
        return self.root / "results" / name

    def figure(self, cell: Cell) -> Figure:
        """What the result files hold for a cell.

        Raises UserError when a file of theirs is broken.
        """
        path = self.result_file(cell)
        outcome = outcomes.read(path).get(cell.key, {"state": "failed", "reason": "asv recorded nothing"})
        cold = outcome.get("cold", {})
        if outcome["state"] != "measured":
            return Figure(outcome["state"], outcome["reason"], cold=cold)
        try:
            data = json.loads(path.read_text())
            row = dict(zip(data["result_columns"], data["results"][cell.benchmark], strict=False))
            index = list(itertools.product(*row["params"])).index(cell.parameters)
            return Figure("measured", "", row["result"][index], tuple(row["samples"][index]), cold)
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is not a whole result file: move it away and run again") from error


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def modified(path: pathlib.Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def run(bench: Bench, stacks: list[Stack], tasks: list[str], scale: str, progress: Progress) -> int:
    """Measure every cell of the stacks; returns the number of cells or stacks that failed.

    The site is published as cells finish and once more at the end, also when interrupted.
    """
    failures, published = 0, 0.0
    columns = sum(len(stack.modes) for stack in stacks)  # those still to come
    spent: dict[str, float] = dict.fromkeys(["installing", "importing and building", "first steps", "the rest"], 0.0)
    done: list[Figure] = []
    try:
        for stack in stacks:
            progress.now(f"installing {stack.name}")
            began = time.monotonic()
            try:
                bench.install(stack)
                cells = bench.cells(stack, tasks, scale)
            except UserError as error:
                failures += 1
                progress.line(f"failed: {error}")
                continue
            finally:
                spent["installing"] += time.monotonic() - began
            columns -= len(stack.modes)
            progress.expect(len(cells) + len(cells) // len(stack.modes) * columns)
            for cell in cells:
                label = f"{cell.column} {cell.task} {cell.scale}"
                progress.now(label)
                figure = bench.measure(cell)
                done.append(figure)
                failures += figure.state in ("failed", "timed out")
                progress.finish(label, str(figure), figure.measured_s)
                build, first = figure.cold.get("build_s", 0.0), figure.cold.get("first_step_s", 0.0)
                spent["importing and building"] += build
                spent["first steps"] += first
                spent["the rest"] += figure.measured_s - build - first
                if time.monotonic() - published > PUBLISH_EVERY:
                    publish(bench.root, progress)
                    published = time.monotonic()
    finally:
        if done:
            publish(bench.root, progress)
        progress.line(summary(done, failures))
        progress.line("time went to: " + ", ".join(f"{what} {seconds:.0f} s" for what, seconds in spent.items()))
    return failures


def publish(root: pathlib.Path, progress: Progress) -> None:
    """Publish the site; when that fails, say so and go on measuring."""
    try:
        site.publish(root)
    except UserError as error:
        progress.line(str(error))


def summary(done: list[Figure], failures: int) -> str:
    """One line: how many cells are in which state."""
    states = [figure.state for figure in done]
    counted = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    spread = [statistics.pstdev(f.samples) / f.seconds for f in done if f.seconds and len(f.samples) > 1]
    noise = f"; median spread of the samples of a cell {statistics.median(spread):.1%}" if spread else ""
    return f"{len(done)} cells: {counted or 'none'}{noise}" + (f"; {failures} failures" if failures else "")


def quick() -> dict[str, str]:
    """asv attributes of a run with one sample a cell."""
    return {"repeat": "1", "rounds": "1"}


def exit_code(failures: int) -> int:
    return 1 if failures else os.EX_OK
