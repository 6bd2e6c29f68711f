"""Compare two releases: interleaved rounds, a process each, until every task has a verdict or the budget ends."""

import dataclasses
import os
import pathlib
import statistics
import time

from . import judge, series
from .bench import Bench, Cell
from .errors import UserError
from .judge import FASTER, LOOKS, SAME, SLOWER, UNDECIDED, Pair
from .progress import Progress
from .releases import Release
from .series import Point
from .stacks import Stack

FAILED, ABSENT = "failed", "n/a"
CANARY = 0.1  # a difference of the canary between the sides by which the machine is called unsteady


@dataclasses.dataclass
class Duel:
    """One cell at both releases, and what its rounds gave.

    Attributes:
        before, after: the median step time in seconds of each process, in the order of rounds.
        settled: the verdict it was given at a look: no further round is wanted.
        ended: failed or n/a, where there can be no verdict, and why.
    """

    one: Cell
    other: Cell
    before: list[float] = dataclasses.field(default_factory=list)
    after: list[float] = dataclasses.field(default_factory=list)
    points: dict[str, Point] = dataclasses.field(default_factory=dict)
    conditions: list[dict] = dataclasses.field(default_factory=list)
    canaries: tuple[list[float], list[float]] = dataclasses.field(default_factory=lambda: ([], []))
    settled: str = ""
    ended: str = ""
    reason: str = ""

    @property
    def label(self) -> str:
        return f"{self.one.column} {self.one.task} {self.one.scale}"

    @property
    def rounds(self) -> int:
        return min(len(self.before), len(self.after))

    @property
    def open(self) -> bool:
        """Whether a further round is wanted."""
        return not self.settled and not self.ended and self.rounds < LOOKS[-1]

    def judged(self) -> Pair | None:
        """The comparison of the rounds so far; None without one."""
        return judge.pair(self.before, self.after) if self.rounds and not self.ended else None

    def take(self, side: int, bench: Bench, cell: Cell) -> None:
        """Run one process of one side, and keep its figure or why there is none."""
        figure = bench.measure(cell)
        if figure.state != "measured":
            self.ended = ABSENT if figure.state == "n/a" else FAILED
            self.reason = f"{cell.release.name} {figure}"
            return
        (self.before, self.after)[side].append(statistics.median(figure.last))
        said = bench.outcome(cell)
        self.points[cell.release.id] = Point(cell, figure.state, figure.reason, (), said)
        conditions = said["processes"][-1].get("conditions", {})
        self.conditions.append(conditions)
        if canary := conditions.get("canary_s"):
            self.canaries[side].append(canary)

    def evidence(self) -> list[str]:
        """What differs beside the time, a phrase each."""
        sides = [self.points.get(cell.release.id) for cell in (self.one, self.other)]
        return series.differences(*sides) if all(sides) else []  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What is said of one duel."""

    duel: Duel
    state: str  # slower, faster, no change, undecided, failed or n/a
    pair: Pair | None
    reason: str
    evidence: list[str]
    warnings: list[str]

    def as_data(self) -> dict:
        """For JSON; times in seconds a step."""
        pair, cell = self.pair, self.duel.one
        return {
            "stack": cell.column,
            "task": cell.task,
            "scale": cell.scale,
            "verdict": self.state,
            "ratio": pair and pair.ratio,
            "ratio_low": pair and pair.low,
            "ratio_high": pair and pair.high,
            "p": pair and pair.p,
            "rounds": self.duel.rounds,
            "before_s": self.duel.before,
            "after_s": self.duel.after,
            "reason": self.reason,
            "evidence": self.evidence,
            "warnings": self.warnings,
        }


@dataclasses.dataclass(frozen=True)
class Comparison:
    """All verdicts of a pair of releases, and what differs between their locks."""

    before: Release
    after: Release
    threshold: float
    locks: dict[str, list[str]]  # stack to what changes, a phrase a package
    verdicts: list[Verdict]
    note: str  # why it ended before every verdict was there, or nothing
    carriers: dict[str, str] = dataclasses.field(default_factory=dict)  # of --bisect-lock: task to the change it is

    @property
    def exit_code(self) -> int:
        """0 no slowdown, 1 a slowdown, 2 undecided or failed."""
        states = {verdict.state for verdict in self.verdicts}
        if SLOWER in states:
            return 1
        return 2 if states & {UNDECIDED, FAILED} or not states & {SAME, FASTER} else 0


class Upgrade:
    """The measuring of one pair."""

    def __init__(
        self, root: pathlib.Path, progress: Progress, before: Release, after: Release, threshold: float, verbose=False
    ):
        # The two sides have an environment each, so that neither is installed anew between rounds.
        self.sides = (Bench(root, {}, verbose, "-before"), Bench(root, {}, verbose, "-after"))
        self.progress = progress
        self.before, self.after = before, after
        self.threshold = threshold
        self.duels: list[Duel] = []
        self.note = ""

    def prepare(self, stacks: list[Stack], modes: list[str], tasks: list[str], scale: str) -> None:
        """Install both releases on every stack that has them, and list what they concern.

        Raises UserError when they share no stack, or one cannot be installed.
        """
        shared = [stack for stack in stacks if stack.name in self.before.locks and stack.name in self.after.locks]
        if not shared:
            raise UserError(f"{self.before.name} and {self.after.name} share none of these stacks: name others")
        for stack in shared:
            for bench, release in zip(self.sides, (self.before, self.after), strict=True):
                self.progress.now(f"installing {stack.name} at {release.name}")
                bench.install(stack, release)
            every = [bench.cells(r, stack, tasks, scale) for bench, r in zip(self.sides, self.releases, strict=True)]
            others = {(cell.key, cell.mode): cell for cell in every[1]}
            for cell in every[0]:
                if (not modes or cell.mode in modes) and (cell.key, cell.mode) in others:
                    self.duels.append(Duel(cell, others[cell.key, cell.mode]))

    @property
    def releases(self) -> tuple[Release, Release]:
        return self.before, self.after

    def measure(self, budget_s: float) -> None:
        """Rounds over all undecided tasks, before and after in turns, until none is left or the budget ends.

        The interrupt key ends it, too; verdicts are then given on the rounds there are.
        """
        until = time.monotonic() + budget_s  # installing does not count
        try:
            for number in range(1, LOOKS[-1] + 1):
                left = [duel for duel in self.duels if duel.open]
                if not left:
                    return
                look = next(look for look in LOOKS if look >= number)
                self.progress.expect(2 * len(left) * (look - number + 1))
                for duel in left:
                    for side in (0, 1) if number % 2 else (1, 0):
                        if time.monotonic() > until:
                            self.note = f"the budget of {budget_s / 60:.3g} min ended"
                            return
                        if not duel.ended:
                            self.take(duel, side, number)
                if number in LOOKS:
                    self.settle()
        except KeyboardInterrupt:
            self.note = "interrupted"

    def states(self) -> list[str]:
        """The verdict of every duel on the rounds so far; one that was settled keeps its own."""
        found = judge.verdicts([duel.judged() for duel in self.duels], self.threshold)
        return [duel.settled or state for duel, state in zip(self.duels, found, strict=True)]

    def settle(self) -> None:
        """Close the duels that have a verdict."""
        for duel, state in zip(self.duels, self.states(), strict=True):
            if state != UNDECIDED:
                duel.settled = state

    def take(self, duel: Duel, side: int, number: int) -> None:
        cell = (duel.one, duel.other)[side]
        self.progress.now(f"round {number}: {cell}")
        began = time.monotonic()
        duel.take(side, self.sides[side], cell)
        taken = (duel.before, duel.after)[side]
        said = duel.reason if duel.ended else f"{taken[-1] * 1e3:.3g} ms/step"
        self.progress.finish(f"round {number}: {cell}", said, time.monotonic() - began)

    def judge(self) -> Comparison:
        """The verdicts of what was measured.

        Raises UserError when not one round of one task was.
        """
        if not any(duel.rounds or duel.ended for duel in self.duels):
            raise UserError(f"{self.note} before one round: give a longer --budget, or fewer tasks with --task")
        verdicts = []
        for duel, state in zip(self.duels, self.states(), strict=True):
            reason = duel.reason
            if state == UNDECIDED and not duel.ended:
                reason = self.note or f"still undecided after {duel.rounds} rounds"
            verdicts.append(Verdict(duel, duel.ended or state, duel.judged(), reason, duel.evidence(), warnings(duel)))
        stacks = {duel.one.stack.name: duel.one.stack for duel in self.duels}
        locks = {name: series.lock_difference(self.before, self.after, stack) for name, stack in stacks.items()}
        return Comparison(self.before, self.after, self.threshold, locks, verdicts, self.note)


def warnings(duel: Duel) -> list[str]:
    """What about the conditions of a duel makes its figures less sure, with advice."""
    said = []
    loads = [condition["load_before"] for condition in duel.conditions if condition.get("load_before") is not None]
    cores = os.cpu_count() or 1
    if loads and statistics.median(loads) > cores:
        said.append(f"the load was {statistics.median(loads):.1f} on {cores} cores: end other programs and run again")
    if all(duel.canaries):
        before, after = (statistics.median(times) for times in duel.canaries)
        if abs(after / before - 1) > CANARY:
            said.append(f"fixed work took {after / before:.0%} of its time on the other side: the machine was unsteady")
    return said
