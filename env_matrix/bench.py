"""Measure cells: every one through asv, one process at a time, with progress, and a site that grows."""

import dataclasses
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from asv.results import get_filename

from . import machine, outcomes, site
from .errors import UserError
from .progress import Progress
from .releases import REFERENCE, History, Release, libraries
from .stacks import SIDE, Stack, choose

PUBLISH_EVERY = 60  # seconds, so that publishing takes little of the machine
FULL_DISK = "No space left on device"
# What pip says without a network: with no retries left it only says that it knows no version at all.
NO_INDEX = re.compile("Failed to establish a new connection|name resolution|Max retries exceeded|from versions: none")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One task on one stack in one mode, at one scale and one release."""

    release: Release
    stack: Stack
    mode: str | None
    benchmark: str  # asv's name: module.Class.method
    parameters: tuple[str, ...]  # as asv prints them

    @property
    def column(self) -> str:
        return f"{self.stack.name}-{self.mode}" if self.mode else self.stack.name

    @property
    def model(self) -> str:
        return self.benchmark.split(".")[0]

    @property
    def task(self) -> str:
        """The task as people say it: bert-fit, gemma-generate-32."""
        kind = self.benchmark.split(".")[1].lower()
        return "-".join([self.model, kind, *(p for p in self.parameters if p.isdigit())])

    @property
    def scale(self) -> str:
        return self.parameters[0].strip("'")

    @property
    def key(self) -> str:
        """asv's name of the cell within a result file."""
        return f"{self.benchmark}({', '.join(self.parameters)})"

    @property
    def environment(self) -> str:
        """asv's name of its environment."""
        return self.stack.environment(self.mode)

    def __str__(self):
        at = "" if self.release.library == REFERENCE else f" {self.release.name}"
        return f"{self.column} {self.task} {self.scale}{at}"


@dataclasses.dataclass(frozen=True)
class Figure:
    """What became of a cell. Times are in seconds a step."""

    state: str
    reason: str = ""
    seconds: float | None = None
    samples: tuple[float, ...] = ()
    last: tuple[float, ...] = ()  # the samples of its last process
    cold: dict[str, float] = dataclasses.field(default_factory=dict)
    measured_s: float = 0.0  # what the whole cell took

    def __str__(self):
        if self.state != "measured" or self.seconds is None:
            return f"{self.state}: {self.reason}"
        low, high = min(self.samples) * 1e3, max(self.samples) * 1e3
        return f"{self.seconds * 1e3:.3g} ms/step ({len(self.samples)} samples, {low:.3g} to {high:.3g})"


class Bench:
    """asv in one repository, cell by cell."""

    def __init__(self, root: pathlib.Path, attributes: dict[str, str], verbose: bool = False, side: str = ""):
        self.root = root
        self.attributes = attributes
        self.verbose = verbose
        self.side = side  # names another set of environments, so that two releases can be installed at once

    def asv(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run asv here with this interpreter; its output is returned, not shown.

        The interrupt key reaches asv too, which ends its benchmark; it is then waited for.
        Raises UserError when the disk is full or another run is measuring here.
        """
        process = subprocess.Popen(
            [sys.executable, "-m", "asv", *arguments],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, SIDE: self.side},
        )
        try:
            output, _ = process.communicate()
        except KeyboardInterrupt:
            process.communicate()
            raise
        if self.verbose:
            print(output, flush=True)
        if FULL_DISK in output:
            raise UserError("the disk is full: free some space and run again; finished cells are kept")
        if busy := re.search(r"stepline: (process \d* is measuring.*)", output):
            raise UserError(busy[1])
        return subprocess.CompletedProcess(process.args, process.returncode, output)

    def install(self, stack: Stack, release: Release) -> None:
        """Make the stack's environment equal to its lock at the release, and discover the benchmarks in it.

        Raises UserError with the cause when it cannot be made.
        """
        if shutil.which(f"python{stack.python}") is None and stack.python != "{}.{}".format(*sys.version_info):
            raise UserError(f"{stack.name} needs Python {stack.python}: put python{stack.python} on PATH and run again")
        environment = stack.environment(stack.modes[0])
        said = self.asv("run", "-v", release.id, "-E", environment, "--bench", "just-discover")
        if said.returncode:
            raise UserError(f"{stack.name} could not be set up: {because(said.stdout)}")

    def python(self, stack: Stack) -> pathlib.Path:
        """The Python of a stack's environment on disk.

        Raises UserError when asv has not made it yet.
        """
        for info in (self.root / ".asv" / f"env{self.side}").glob("*/asv-env-info.json"):
            if json.loads(info.read_text())["build_env_vars"].get("STEPLINE_STACK") == stack.name:
                return info.parent / "bin" / "python"
        raise UserError(f"{stack.name} has no environment yet: run make bench STACK={stack.name} first")

    def cells(self, release: Release, stack: Stack, tasks: list[str], scale: str) -> list[Cell]:
        """The cells of a stack that a release concerns, as asv discovered them, mode by mode.

        Raises UserError when a task or the scale is unknown.
        """
        try:
            found = json.loads((self.root / "results" / "benchmarks.json").read_text())
        except (OSError, ValueError) as error:
            raise UserError("results/benchmarks.json cannot be read: delete it and run again") from error
        every = [
            Cell(release, stack, mode, name, parameters)
            for mode in stack.modes
            for name, benchmark in sorted(found.items())
            if name.endswith(".time_step")
            for parameters in itertools.product(*benchmark["params"])
        ]
        scales = choose([scale], list(dict.fromkeys(cell.scale for cell in every)), "scale")
        named = choose(tasks, list(dict.fromkeys(cell.task for cell in every)), "task")
        tracked = [libraries()[name] for name in release.moves or (release.library,) if name in libraries()]
        models = {model for library in tracked for model in library.models}
        return [
            cell
            for cell in every
            if cell.task in named and cell.scale in scales and (not tracked or cell.model in models)
        ]

    def measure(self, cell: Cell) -> Figure:
        """Run one cell through asv, in a process of its own, and read what it recorded."""
        started = time.monotonic()
        result = self.result_file(cell)
        before = modified(result)
        options = [option for item in self.attributes.items() for option in ("-a", "=".join(item))]
        asked = ["run", cell.release.id, "-E", cell.environment, "--bench", f"^{re.escape(cell.key)}$"]
        said = self.asv(*asked, "--show-stderr", *options)
        took = time.monotonic() - started
        if modified(result) == before:
            return Figure("failed", f"asv recorded nothing: {because(said.stdout)}", measured_s=took)
        return dataclasses.replace(self.figure(cell), measured_s=took)

    def result_file(self, cell: Cell) -> pathlib.Path:
        return self.root / "results" / get_filename(machine.facts()["machine"], cell.release.id, cell.environment)

    def outcome(self, cell: Cell) -> dict:
        """What is kept of a cell beside asv's figures."""
        nothing = {"state": "failed", "reason": "asv recorded nothing", "processes": []}
        return outcomes.read(self.result_file(cell)).get(cell.key, nothing)

    def processes(self, cell: Cell) -> int:
        """How many processes have already run a cell, whatever came of them."""
        return len(self.outcome(cell)["processes"])

    def figure(self, cell: Cell) -> Figure:
        """What the result files hold for a cell.

        Raises UserError when a file of theirs is broken.
        """
        path = self.result_file(cell)
        outcome = self.outcome(cell)
        cold = (outcome["processes"] or [{}])[-1].get("metrics", {})
        if outcome["state"] != "measured":
            return Figure(outcome["state"], outcome["reason"], cold=cold)
        try:
            data = json.loads(path.read_text())
            row = dict(zip(data["result_columns"], data["results"][cell.benchmark], strict=False))
            index = list(itertools.product(*row["params"])).index(cell.parameters)
            samples = tuple(row["samples"][index])
            count = outcome["processes"][-1]["samples"]
            return Figure("measured", "", row["result"][index], samples, samples[-count:], cold)
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is not a whole result file: move it away and run again") from error


def because(output: str) -> str:
    """Why asv failed: what our own code said last, or else what asv did."""
    ours = re.findall(r"stepline: (.+)", output)
    if not ours and NO_INDEX.search(output):
        return "the package index did not answer: check the network and run again"
    lines = [line.strip(" ·") for line in output.splitlines() if line.strip(" ·")]
    return (ours or lines or ["it said nothing"])[-1]


def modified(path: pathlib.Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


class Session:
    """One command's measuring: its progress, what failed, where the time went, and the site that grows."""

    def __init__(self, bench: Bench, progress: Progress):
        self.bench = bench
        self.progress = progress
        self.failures = 0
        self.done: list[Figure] = []
        self.published = 0.0
        self.spent = dict.fromkeys(["installing", "importing and building", "first steps", "the rest"], 0.0)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.done:
            self.publish()
        self.progress.line(summary(self.done, self.failures))
        went = ", ".join(f"{what} {seconds:.0f} s" for what, seconds in self.spent.items())
        self.progress.line(f"time went to: {went}")

    def install(self, stack: Stack, release: Release) -> bool:
        """Install a stack; says why when that fails, and returns whether it did not."""
        self.progress.now(f"installing {stack.name} at {release.name}")
        began = time.monotonic()
        try:
            self.bench.install(stack, release)
            return True
        except UserError as error:
            self.failures += 1
            self.progress.line(f"failed: {error}")
            return False
        finally:
            self.spent["installing"] += time.monotonic() - began

    def measure(self, cell: Cell) -> None:
        """Measure a cell, say what came of it, and publish the site now and then."""
        self.progress.now(str(cell))
        figure = self.bench.measure(cell)
        self.done.append(figure)
        self.failures += figure.state in ("failed", "timed out")
        self.progress.finish(str(cell), str(figure), figure.measured_s)
        build = figure.cold.get("import_time", 0.0) + figure.cold.get("build_time", 0.0)
        first = figure.cold.get("first_step", 0.0)
        self.spent["importing and building"] += build
        self.spent["first steps"] += first
        self.spent["the rest"] += figure.measured_s - build - first
        if time.monotonic() - self.published > PUBLISH_EVERY:
            self.publish()

    def publish(self) -> None:
        """Publish the site; when that fails, say so and go on measuring."""
        try:
            site.publish(self.bench.root)
        except UserError as error:
            self.progress.line(str(error))
        self.published = time.monotonic()


def run_matrix(session: Session, stacks: list[Stack], tasks: list[str], scale: str) -> None:
    """Measure every cell of the stacks at the reference release set."""
    reference = History.load().one(REFERENCE)
    columns = sum(len(stack.modes) for stack in stacks)  # those still to come
    for stack in stacks:
        if not session.install(stack, reference):
            continue
        cells = session.bench.cells(reference, stack, tasks, scale)
        columns -= len(stack.modes)
        session.progress.expect(len(cells) + len(cells) // len(stack.modes) * columns)
        for cell in cells:
            session.measure(cell)


def run_releases(
    session: Session,
    releases: list[Release],
    stacks: list[Stack],
    modes: list[str],
    tasks: list[str],
    scale: str,
    rounds: int,
) -> None:
    """Measure what the releases concern, so many processes a cell, in rounds over all of them.

    A cell that has had its processes is not run again.
    """
    bench = session.bench
    concerned = [stack for stack in stacks if any(stack.name in release.locks for release in releases)]
    if not concerned:
        raise UserError("none of these releases has a lock on these stacks: stepline diff shows which have")
    if not (bench.root / "results" / "benchmarks.json").exists() and not session.install(concerned[0], releases[0]):
        return

    def cells(release: Release, stack: Stack, number: int) -> list[Cell]:
        if stack.name not in release.locks:
            return []
        every = bench.cells(release, stack, tasks, scale)
        return [cell for cell in every if (not modes or cell.mode in modes) and bench.processes(cell) < number]

    for number in range(1, rounds + 1):
        later = sum(len(cells(r, s, n)) for n in range(number, rounds + 1) for r in releases for s in concerned)
        session.progress.expect(later)
        for release, stack in shuffled(releases, concerned, number):
            left = cells(release, stack, number)
            if left and session.install(stack, release):
                for cell in left:
                    session.measure(cell)


def shuffled(releases: list[Release], stacks: list[Stack], number: int) -> Iterator[tuple[Release, Stack]]:
    """Every release on every stack, in an order that is another one in each round, and the same whenever it is asked.

    What slows the machine for a while then hits releases that are no neighbours, and looks like none's change.
    """
    for stack in stacks:
        yield from ((release, stack) for release in random.Random(number).sample(releases, len(releases)))


def summary(done: list[Figure], failures: int) -> str:
    """One line: how many cells are in which state."""
    states = [figure.state for figure in done]
    counted = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
    spread = [statistics.pstdev(f.samples) / f.seconds for f in done if f.seconds and len(f.samples) > 1]
    noise = f"; median spread of the samples of a cell {statistics.median(spread):.1%}" if spread else ""
    return f"{len(done)} cells: {counted or 'none'}{noise}" + (f"; {failures} failures" if failures else "")


def quick() -> dict[str, str]:
    """asv attributes of a run with one sample a cell."""
    return {"repeat": "1", "rounds": "1"}


def exit_code(failures: int) -> int:
    return 1 if failures else os.EX_OK
