"""The changes that stand in what has been measured: where, how large, how sure, and what else changed there."""

import dataclasses
import datetime

from . import judge, series
from .series import Point, Series
from .stacks import choose

WHOLE = ("imported_modules", "operators", "flops", "graphs", "graph_breaks", "recompilations")  # without noise


@dataclasses.dataclass(frozen=True)
class Finding:
    """A change of one series between two neighbouring measured releases."""

    series: Series
    change: judge.Change
    before: Point
    after: Point
    back_at: str | None  # the release at which the level was back where it had been

    @property
    def worse(self) -> bool:
        return self.change.ratio > 1

    def evidence(self) -> list[str]:
        return series.differences(self.before, self.after)

    def lock(self) -> list[str]:
        return series.lock_difference(self.before.release, self.after.release, self.after.cell.stack)

    def skipped(self) -> list[str]:
        """Releases between the two that have no figure, with the reason."""
        places = [self.series.points.index(point) for point in (self.before, self.after)]
        between = self.series.points[places[0] + 1 : places[1]]
        return [f"{point.release.name} {point.state}: {point.reason}" for point in between]

    def as_data(self) -> dict:
        """Everything about it, for JSON; figures in the series' unit."""
        return {
            "release": self.after.release.name,
            "previous": self.before.release.name,
            "uploaded": self.after.release.uploaded.isoformat(),
            "machine": self.series.machine,
            "stack": self.series.column,
            "task": self.series.task,
            "scale": self.series.scale,
            "metric": self.series.metric,
            "unit": self.series.unit,
            "before": self.change.before,
            "after": self.change.after,
            "ratio": self.change.ratio,
            "ratio_low": self.change.low,
            "ratio_high": self.change.high,
            "p": self.change.p,
            "recovered_at": self.back_at,
            "evidence": self.evidence(),
            "lock_difference": self.lock(),
            "not_measured_between": self.skipped(),
        }


@dataclasses.dataclass(frozen=True)
class Sight:
    """What a series could show: its noise, and the smallest change it would find in the middle and at the end."""

    series: Series
    noise: float
    middle: float
    newest: float


def changes(one: Series, threshold: float) -> list[judge.Change]:
    """The changes of a series.

    Raises ValueError when its figures cannot be compared as ratios.
    """
    values = [list(point.values) for point in one.measured]
    if one.metric in WHOLE:
        return [
            change
            for change in judge.steps(values)
            if change.ratio >= 1 + threshold or change.ratio <= 1 / (1 + threshold)
        ]
    return judge.changes(values, threshold)


def find(every: list[Series], threshold: float = judge.THRESHOLD) -> tuple[list[Finding], list[str]]:
    """The findings that stand over all series together, oldest release first, and what could not be judged.

    Their false-discovery rate is controlled over every series that was looked at, whether it changed or not.
    """
    candidates: list[Finding] = []
    quiet, left_out = 0, []
    for one in every:
        if one.metric in series.NOT_JUDGED:
            continue
        try:
            found = changes(one, threshold)
        except ValueError as error:
            left_out.append(f"{one}: not judged: {error}")
            continue
        quiet += not found
        points = one.measured
        for change in found:
            back = recovery(points, change, found)
            candidates.append(Finding(one, change, points[change.index - 1], points[change.index], back))
    stands = judge.believed([finding.change.p for finding in candidates] + [1.0] * quiet)
    # zip stops at the candidates: what follows are the series without any.
    kept = [finding for finding, stand in zip(candidates, stands, strict=False) if stand]
    return sorted(kept, key=lambda f: (f.after.release.uploaded, f.series.task, f.series.metric)), left_out


def recovery(points: list[Point], change: judge.Change, found: list[judge.Change]) -> str | None:
    """The release of the first later change after which the level is back where it was, within half of the change."""
    level = change.ratio
    for later in found[found.index(change) + 1 :]:
        level *= later.ratio
        if (level <= change.ratio**0.5) if change.ratio > 1 else (level >= change.ratio**0.5):
            return points[later.index].release.name
    return None


def sights(every: list[Series]) -> list[Sight]:
    """What each series that has noise could show."""
    seen = []
    for one in every:
        values = [list(point.values) for point in one.measured]
        if one.metric in (*series.NOT_JUDGED, *WHOLE) or len(values) < 3 or min(map(min, values)) <= 0:
            continue
        count = len(values)
        middle = judge.smallest_visible(values, count // 2, count - count // 2)
        seen.append(Sight(one, judge.noise(values), middle, judge.smallest_visible(values, count - 1, 1)))
    return seen


def chosen(every: list[Series], asked: dict[str, list[str]]) -> list[Series]:
    """The series whose library, column (a stack, with or without its mode), task, machine and metric were asked for.

    What is not asked for is not looked at. Raises UserError, which names the nearest, when something is unknown.
    """
    for field, names in asked.items():
        known = {getattr(one, field) for one in every}
        if field == "column":
            known |= {one.points[0].cell.stack.name for one in every}
        choose(names, sorted(known), f"{field} in the results")
        if names:
            every = [
                one
                for one in every
                if getattr(one, field) in names or (field == "column" and one.points[0].cell.stack.name in names)
            ]
    return every


def since(findings: list[Finding], day: datetime.date) -> list[Finding]:
    return [finding for finding in findings if finding.after.release.uploaded.date() >= day]
