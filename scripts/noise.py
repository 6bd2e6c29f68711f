"""How often are `upgrade` and `regressions` wrong on this machine, and how small a slowdown do they find?

    stepline run "transformers==4.57.6" --stack native-torch --mode eager --rounds 48
    python scripts/noise.py pool results/MACHINE/*.json    keeps those processes: one release, many times (real A/A)
    python scripts/noise.py delays                         measures tasks that wait a known share longer, in turns
    python scripts/noise.py study                          prints the tables, as Markdown

Both measurements are kept in scripts/noise/. The study plays the processes back in the order in which they were
measured, through the code of both commands: every start and, for pairs, both orders of sides.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy
from rich.console import Console
from scipy import stats

from env_matrix import judge, regressions, releases, series, stacks
from env_matrix.bench import Bench, Cell, Figure, shuffled
from env_matrix.progress import Progress
from env_matrix.upgrade import Duel, Upgrade

ROOT = pathlib.Path(__file__).parent.parent
KEPT = ROOT / "scripts" / "noise"
RELEASE = "transformers==4.57.6"
STACK, MODE = "native-torch", "eager"
SHARES = (0.03, 0.05, 0.10, 0.30)
ROUNDS = 20  # a pair's at most: the pool has no more for two sides
HISTORY = 20  # releases of a series, two processes each
SEED = 4

DELAYED = ["mistral-generate-1", "stable_diffusion-predict"]
DELAY_ROUNDS = 10
# Put behind the protocol in a copy of the repository: every timed loop waits a share of its own time longer.
DELAY = """

def _delayed(build):
    def made(self, *args):
        workload = build(self, *args)
        run, share = workload.run, float(os.environ["DELAY"])

        def slower(steps):
            began = time.perf_counter()
            run(steps)
            until = time.perf_counter() + share * (time.perf_counter() - began)
            while time.perf_counter() < until:
                pass

        workload.run = slower
        return workload

    return made


Cell.build = _delayed(Cell.build)
"""


def write(name, found):
    KEPT.mkdir(exist_ok=True)
    (KEPT / name).write_text(json.dumps(found) + "\n")


def keep_pool(files):
    """Keep the step time in seconds of every process of every task in result files."""
    found = {}
    history, every = releases.History.load(), stacks.load()
    benchmarks = json.loads((ROOT / "results" / "benchmarks.json").read_text())
    for file in map(pathlib.Path, files):
        for metric, point in series.points(file, benchmarks, history, every, []):
            if metric == series.STEP and point.release.name == RELEASE:
                found[point.cell.task] = [float(f"{value:.5g}") for value in point.values]
    write("pool.json", found)


def measure_delays():
    """Rounds over the delays, nought among them, of some tasks: a process each, in turns."""
    found = {task: {str(share): [] for share in (0.0, *SHARES)} for task in DELAYED}
    with tempfile.TemporaryDirectory() as folder, Progress() as progress:
        copy = pathlib.Path(folder) / "copy"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(copy)], check=True)
        shutil.rmtree(copy / "results")
        protocol = copy / "benchmarks" / "protocol.py"
        protocol.write_text(protocol.read_text() + DELAY)
        bench, stack = Bench(copy, {}), stacks.load()[STACK]
        release = releases.History.load().one(RELEASE)
        bench.install(stack, release)
        cells = [cell for cell in bench.cells(release, stack, DELAYED, "tiny") if cell.mode == MODE]
        progress.expect(DELAY_ROUNDS * len(cells) * (1 + len(SHARES)))
        for number in range(DELAY_ROUNDS):
            for cell in cells:
                for share in (0.0, *SHARES) if number % 2 else (*SHARES[::-1], 0.0):
                    os.environ["DELAY"] = str(share)
                    progress.now(f"round {number + 1}: {cell.task} with {share:.0%}")
                    figure = bench.measure(cell)
                    progress.finish(f"round {number + 1}: {cell.task} with {share:.0%}", str(figure), figure.measured_s)
                    found[cell.task][str(share)].append(float(f"{statistics.median(figure.last):.5g}"))
            write("delays.json", found)


@dataclasses.dataclass
class Tape:
    """In place of Bench: plays one side of a pair from the pool."""

    figures: dict[str, list[float]]
    factors: dict[str, float]

    def measure(self, cell):
        figure = self.figures[cell.task].pop(0) * self.factors.get(cell.task, 1.0)
        return Figure("measured", seconds=figure, samples=(figure,), last=(figure,))

    def outcome(self, cell):
        return {"processes": [{}]}


@dataclasses.dataclass(frozen=True)
class Named(Cell):
    """A cell that is called by its task alone."""

    @property
    def task(self):
        return self.benchmark


class Study:
    """The pool, played back. Figures are times in seconds of a process, in the order of measuring."""

    def __init__(self, pool):
        self.pool = pool
        self.history = releases.History.load()
        self.stack = stacks.load()[STACK]
        self.quiet = Progress(Console(quiet=True))

    def window(self, task, start, count):
        """So many processes one after another; from the end it goes on at the beginning."""
        figures = self.pool[task]
        return [figures[(start + number) % len(figures)] for number in range(count)]

    def cell(self, task, release):
        return Named(release, self.stack, MODE, task, ("'tiny'",))

    def pair(self, start, flip, slowed, share):
        """One run of upgrade over every task, of which one is slowed: task to what is said of it, and its rounds."""
        sides = ({}, {})
        for task in self.pool:
            turned = self.window(task, start, 2 * ROUNDS)
            for number in range(ROUNDS):
                one = (number + flip) % 2  # upgrade takes A B, then B A
                sides[0].setdefault(task, []).append(turned[2 * number + one])
                sides[1].setdefault(task, []).append(turned[2 * number + 1 - one])
        release = self.history.one(RELEASE)
        upgrade = Upgrade(ROOT, self.quiet, release, release, judge.THRESHOLD)
        upgrade.sides = (Tape(sides[0], {}), Tape(sides[1], {slowed: 1 + share}))
        upgrade.duels = [Duel(self.cell(task, release), self.cell(task, release)) for task in self.pool]
        with contextlib.suppress(IndexError):  # the end of the tape ends the rounds, as a budget would
            upgrade.measure(float("inf"))
        return {
            duel.one.task: (state, duel.rounds) for duel, state in zip(upgrade.duels, upgrade.states(), strict=True)
        }

    def series(self, start, slowed, share, at):
        """What regressions finds in a history of every task, of which one is slowed; measured in the order of `run`.

        Returns pairs of a task and the index of the release.
        """
        labels = self.history.branches["transformers"][:HISTORY]
        every = []
        for task in self.pool:
            turned = iter(self.window(task, start, 2 * HISTORY))
            rounds = [{release: next(turned) for release, _ in shuffled(labels, [self.stack], n)} for n in (1, 2)]
            points = []
            for index, release in enumerate(labels):
                factor = 1 + share if task == slowed and index >= at else 1.0
                values = tuple(factor * one[release] for one in rounds)
                points.append(series.Point(self.cell(task, release), "measured", "", values, {}))
            every.append(series.Series("pool", "transformers", series.STEP, "s", tuple(points)))
        found, _ = regressions.find(every)
        return {(finding.series.task, labels.index(finding.after.release)) for finding in found}


def study():
    """Print a table of each command, and one of the delays that were really waited."""
    pool = json.loads((KEPT / "pool.json").read_text())
    played = Study(pool)
    starts = range(0, len(next(iter(pool.values()))), 2)
    print(f"upgrade, {len(pool)} tasks at once, at most {ROUNDS} rounds:\n")
    said = [played.pair(start, flip, None, 0.0) for start in starts for flip in (0, 1)]
    states = [state for one in said for state, _ in one.values()]
    wrong = sum(state in (judge.SLOWER, judge.FASTER) for state in states)
    print(f"{wrong} false alarms in {len(states)} comparisons of a release with itself ({wrong / len(states):.2%});")
    print(f"{states.count(judge.SAME) / len(states):.0%} said no change, {undecided(states):.0%} undecided.\n")
    hits = {task: [] for task in pool}
    beside = []
    for share in SHARES:
        for task in pool:
            said = [played.pair(start, flip, task, share) for start in starts for flip in (0, 1)]
            hits[task].append([one[task][0] == judge.SLOWER for one in said])
            beside += [one[other][0] in (judge.SLOWER, judge.FASTER) for one in said for other in pool if other != task]
    table(hits, pool)
    print(f"\nFalse alarms beside a slowed task: {numpy.mean(beside):.2%} of {len(beside)}.\n")
    history(played)
    delays()


def undecided(states):
    return states.count(judge.UNDECIDED) / len(states)


def history(played):
    pool = played.pool
    print(f"regressions, {len(pool)} series at once, {HISTORY} releases of two processes:\n")
    starts = range(len(next(iter(pool.values()))))
    alarms = [len({task for task, _ in played.series(start, None, 0.0, 0)}) for start in starts]
    total = len(starts) * len(pool)
    print(f"{sum(alarms)} series of {total} without a step have a false alarm ({sum(alarms) / total:.2%}).\n")
    rng = numpy.random.default_rng(SEED)
    hits = {task: [] for task in pool}
    for share in SHARES:
        for task in pool:
            places = [int(place) for place in rng.integers(2, HISTORY - 1, len(starts))]
            hits[task].append(
                [(task, at) in played.series(start, task, share, at) for start, at in zip(starts, places, strict=True)]
            )
    table(hits, pool)
    print()


def delays():
    """Slowdowns that were really waited, as pairs of processes that ran in turns; each judged alone."""
    kept = json.loads((KEPT / "delays.json").read_text())
    print(f"Delays that were really waited, {DELAY_ROUNDS} rounds, each judged alone:\n")
    print("| task | delay | ratio measured | interval | verdict |\n| --- | --- | --- | --- | --- |")
    for task, sides in kept.items():
        plain = sides["0.0"]
        for share in SHARES:
            one = judge.pair(plain, sides[str(share)])
            (state,) = judge.verdicts([one])
            print(f"| {task} | {share:.0%} | {one.ratio:.3f} | {one.low:.3f} to {one.high:.3f} | {state} |")


def table(hits, pool):
    """Found shares, a row a task, with the noise of its processes: robust standard deviation of the logarithm."""
    heads = ["task", "noise of a process", *(f"{share:.0%} found" for share in SHARES)]
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for task, found in hits.items():
        noise = stats.median_abs_deviation(numpy.log(pool[task]), scale="normal")
        print(f"| {task} | {noise:.1%} | " + " | ".join(f"{numpy.mean(one):.0%}" for one in found) + " |")
    every = [numpy.mean([found[number] for found in hits.values()]) for number in range(len(SHARES))]
    print("| **all** | | " + " | ".join(f"{share:.1%}" for share in every) + " |", flush=True)


def main():
    match sys.argv[1:]:
        case ["pool", *files] if files:
            keep_pool(files)
        case ["delays"]:
            measure_delays()
        case ["study"]:
            study()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
