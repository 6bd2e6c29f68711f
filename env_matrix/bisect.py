"""Which package carries a difference: the changes between two locks are installed step by step."""

import dataclasses
import itertools
import pathlib
import time
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from . import local, lock, pins
from .errors import UserError
from .judge import FASTER, SAME, SLOWER
from .progress import Progress
from .releases import History, Release
from .stacks import Stack
from .upgrade import Comparison, Upgrade, Verdict


@dataclasses.dataclass(frozen=True)
class Step:
    """Packages that move together, as phrases, and the whole lock once they have."""

    moved: list[str]
    lock: dict[str, str]


def installable(stack: Stack, wanted: dict[str, str]) -> bool:
    """Whether a set of pins meets the requirements that its packages have of each other."""
    named = [canonicalize_name(Requirement(text).name) for text in stack.overrides]
    overrides = pins.lines({name: wanted[name] for name in named if name in wanted}).splitlines()
    question = lock.Question(stack.python, tuple(pins.lines(wanted).splitlines()), overrides=tuple(overrides))
    try:
        return lock.resolve(question) == wanted
    except UserError:
        return False


def steps(stack: Stack, before: dict[str, str], after: dict[str, str], last: set[str]) -> Iterator[Step]:
    """The way from one lock to the other in the smallest steps that can be installed; what is in `last` moves late.

    Tried are single packages, then pairs; where neither will do, all that is left moves at once.
    """
    now = dict(before)
    left = sorted(
        (name for name in before.keys() | after.keys() if before.get(name) != after.get(name)),
        key=lambda name: (name in last, name),
    )
    while left:
        groups = [group for size in (1, 2) if size < len(left) for group in itertools.combinations(left, size)]
        for group in [*groups, tuple(left)]:
            trial = {**now, **{name: after[name] for name in group if name in after}}
            trial = {name: pin for name, pin in trial.items() if name not in group or name in after}
            if len(group) == len(left) or installable(stack, trial):
                yield Step(pins.difference(now, trial), trial)
                now = trial
                left = [name for name in left if name not in group]
                break


class Bisection:
    """The search, verdict by verdict, within one budget of time."""

    def __init__(self, root: pathlib.Path, progress: Progress, comparison: Comparison, budget_s: float):
        self.root, self.progress, self.comparison = root, progress, comparison
        self.until = time.monotonic() + budget_s
        self.ways: dict[str, list[Step]] = {}  # a stack's, made when it is first asked for

    def carriers(self) -> dict[str, str]:
        """Of each slower or faster task (its label), the package that carries at least half of the difference."""
        found = {}
        for verdict in self.comparison.verdicts:
            if verdict.state in (SLOWER, FASTER):
                found[verdict.duel.label] = self.search(verdict)
        return found

    def way(self, stack: Stack) -> list[Step]:
        if stack.name not in self.ways:
            self.progress.now(f"ordering the lock difference of {stack.name}")
            sides = [pins.read(release.locks[stack.name]) for release in self.releases]
            last = {name for release in self.releases for name in (release.library, *release.moves)}
            self.ways[stack.name] = list(steps(stack, sides[0], sides[1], last))
        return self.ways[stack.name]

    @property
    def releases(self) -> tuple[Release, Release]:
        return self.comparison.before, self.comparison.after

    def search(self, verdict: Verdict) -> str:
        """Halve the way until one step is left; says what it is, or how far it came and why not further."""
        stack = verdict.duel.one.stack
        way = self.way(stack)
        if len(way) == 1:
            return f"carried by {' and '.join(way[0].moved)}: nothing smaller can be installed"
        begin, end, why = 0, len(way), ""
        while end - begin > 1 and not why:
            middle = (begin + end) // 2
            state, why = self.compare(verdict, self.point(stack, middle))
            if state == verdict.state:
                end = middle
            elif state == SAME:
                begin = middle
            else:
                why = why or f"the difference to step {middle} of {len(way)} is {state}"
        moved = [phrase for step in way[begin:end] for phrase in step.moved]
        if why:
            return f"carried by one of {', '.join(moved)}: not narrowed further: {why}"
        return f"carried by {' and '.join(moved)} (at least half of the difference comes with it)"

    def point(self, stack: Stack, number: int) -> Release:
        """The point of this machine at which the first `number` steps of a way are gone."""
        before, after = self.releases
        name = f"{before.name} to {after.name}, step {number} of {len(self.way(stack))} on {stack.name}"
        moves = list(dict.fromkeys(lib for one in self.releases for lib in one.moves or (one.library,)))
        local.keep_set(name, moves, after.uploaded, {stack.name: self.way(stack)[number - 1].lock})
        return History.load().by_name[name]

    def compare(self, verdict: Verdict, point: Release) -> tuple[str, str]:
        """The verdict between the first release and a point, and why there is none.

        Counted is what goes beyond half of the difference that is looked for.
        """
        cell, pair = verdict.duel.one, verdict.pair
        if pair is None:
            raise ValueError("a verdict of slower or faster has a pair")
        half = max(pair.ratio, 1 / pair.ratio) ** 0.5 - 1
        left = self.until - time.monotonic()
        if left <= 0:
            return "", "the budget ended"
        upgrade = Upgrade(self.root, self.progress, self.comparison.before, point, half)
        try:
            upgrade.prepare([cell.stack], [cell.mode] if cell.mode else [], [cell.task], cell.scale)
            upgrade.measure(left)
            (said,) = upgrade.judge().verdicts
        except UserError as error:
            return "", str(error)
        return said.state, said.reason
