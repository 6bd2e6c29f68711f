"""Judge a history: where along a library's releases a figure changed, in both directions.

Values are compared on a logarithmic scale: what is found is a ratio, and does not depend on the unit.
"""

import dataclasses
import itertools
import math

import numpy
import ruptures
from scipy import stats

THRESHOLD = 0.05  # the smallest change that is reported
ALPHA = 0.01  # of all reported changes the share that may be none
PENALTY = 4.0  # times the noise's variance and the logarithm of the number of releases; scripts/detection.py tried it
FLOOR = 1e-4  # noise below which no measured series is taken to be


@dataclasses.dataclass(frozen=True)
class Change:
    """A change between two neighbouring releases.

    Attributes:
        index: of the first release that has it.
        before: the level until then, since the change before it; after: the level from then on, until the next.
        low: and high, 95% confidence limits of the ratio of after to before.
        p: probability of so large a change from noise alone, anywhere in the series.
    """

    index: int
    before: float
    after: float
    low: float
    high: float
    p: float

    @property
    def ratio(self) -> float:
        return self.after / self.before if self.before else math.inf


def centres(values: list[list[float]]) -> numpy.ndarray:
    """The logarithm of each release's median process: one process that was disturbed moves it little."""
    return numpy.array([numpy.median(numpy.log(release)) for release in values])


def within(values: list[list[float]]) -> tuple[float, int]:
    """Standard error of a release's centre from its processes' differences, and the degrees of freedom behind it.

    Not a robust estimate: a process that was disturbed shows how far a centre can be from where it should be.
    """
    repeated = [numpy.log(release) for release in values if len(release) > 1]
    df = sum(len(release) - 1 for release in repeated)
    if not df:
        return 0.0, 0
    one = (sum(((release - release.mean()) ** 2).sum() for release in repeated) / df) ** 0.5
    size = float(numpy.mean([len(release) for release in repeated]))
    # A median of three or more varies more than a mean does: by pi/2 in the limit (Kenney and Keeping 1962).
    return float(one * ((numpy.pi / 2 if size > 2 else 1.0) / size) ** 0.5), df


def noise(values: list[list[float]]) -> float:
    """The noise of a series: standard deviation of the logarithm of a release's figure, from one release to another.

    The larger of two estimates: from the differences of neighbouring releases, by their median, so that a step does
    not count; and from the processes within releases.
    """
    middles = centres(values)
    normal = stats.norm.ppf(0.75)  # the median of absolute values is this many standard deviations
    between = float(numpy.median(numpy.abs(numpy.diff(middles)))) / normal / 2**0.5 if len(middles) > 2 else 0.0
    return max(between, within(values)[0], FLOOR)


def smallest_visible(values: list[list[float]], before: int, after: int) -> float:
    """The smallest change that would be found in 95% of cases between so many releases before and after it.

    Minimum detectable effect of a two-sided test at ALPHA with the series' noise, as a share.
    """
    sigma = noise(values) * (1 / before + 1 / after) ** 0.5
    positions = max(len(values) - 1, 1)
    df = max(len(values) - 2, 1)
    return float(numpy.exp(sigma * (stats.t.isf(ALPHA / positions / 2, df) + stats.t.isf(0.05, df))) - 1)


def changes(values: list[list[float]], threshold: float = THRESHOLD) -> list[Change]:
    """The changes of a series, oldest first. `values` holds of every release, oldest first, a figure a process.

    Candidates are the borders between segments of least squares with a penalty (PELT: Killick, Fearnhead and Eckley
    2012, from ruptures). Each is put to a t test between its two segments, times the number of places it could be at,
    and the weakest is dropped until all that are left pass (backward elimination).
    Raises ValueError when a figure is not positive and finite, or a release has none.
    """
    if any(not release or not numpy.all(numpy.isfinite(release)) or min(release) <= 0 for release in values):
        raise ValueError("a series needs positive, finite figures of every release")
    if len(values) < 3:
        return []
    middles = centres(values)
    penalty = PENALTY * noise(values) ** 2 * numpy.log(len(middles))
    borders = ruptures.Pelt(model="l2", min_size=1, jump=1).fit(middles.reshape(-1, 1)).predict(pen=penalty)[:-1]
    while borders:
        tested = compared(values, middles, borders)
        weakest = max(tested, key=lambda change: change.p)
        if weakest.p <= ALPHA:
            return [change for change in tested if abs(math.log(change.ratio)) >= math.log1p(threshold)]
        borders.remove(weakest.index)
    return []


def compared(values: list[list[float]], middles: numpy.ndarray, borders: list[int]) -> list[Change]:
    """What a t test says of each border between segments.

    The variance is pooled over what is left between the releases of a segment and what processes of a release differ
    by, each with its degrees of freedom.
    """
    parts = [middles[begin:end] for begin, end in itertools.pairwise([0, *borders, len(middles)])]
    left = sum(((part - part.mean()) ** 2).sum() for part in parts)
    inside, inside_df = within(values)
    df = max(len(middles) - len(parts) + inside_df, 1)
    sigma = max(((left + inside_df * inside**2) / df) ** 0.5, FLOOR)
    found = []
    for index, before, after in zip(borders, parts, parts[1:], strict=False):
        error = sigma * (1 / len(before) + 1 / len(after)) ** 0.5
        step = after.mean() - before.mean()
        p = min(float(2 * stats.t.sf(abs(step) / error, df)) * (len(middles) - 1), 1.0)
        reach = float(stats.t.isf(0.025, df)) * error
        was, now, low, high = numpy.exp([before.mean(), after.mean(), step - reach, step + reach]).tolist()
        found.append(Change(index, was, now, low, high, p))
    return found


def steps(values: list[list[float]]) -> list[Change]:
    """The changes of a series without noise, such as a count, oldest first: every difference is one, and is certain.

    Raises ValueError when processes of one release disagree.
    """
    if any(not release or min(release) != max(release) for release in values):
        raise ValueError("processes of one release disagree")
    levels = [release[0] for release in values]
    found = []
    for index, (before, after) in enumerate(itertools.pairwise(levels), 1):
        if before != after:
            ratio = after / before if before else math.inf
            found.append(Change(index, before, after, ratio, ratio, 0.0))
    return found


def believed(p: list[float], share: float = ALPHA) -> list[bool]:
    """Which of many p-values stand when at most a share of those may be false (Benjamini and Hochberg 1995)."""
    return [bool(value <= share) for value in stats.false_discovery_control(p)] if p else []


SLOWER, FASTER, SAME, UNDECIDED = "slower", "faster", "no change", "undecided"
LOOKS = (3, 5, 10, 20, 40)  # rounds after which a pair is judged; at the last it ends undecided
CONFIDENCE = 0.95  # of a pair's interval, at all looks together
TRIM = 0.2  # of the processes of a side, at each end; the share that Wilcox (2012) advises


@dataclasses.dataclass(frozen=True)
class Pair:
    """How two sides compare.

    Attributes:
        ratio: after over before; low and high are its confidence limits, None with fewer than two figures a side.
        p: probability of so different sides from noise alone, at any of the looks.
    """

    ratio: float
    low: float | None
    high: float | None
    p: float


def pair(before: list[float], after: list[float], looks: int = len(LOOKS)) -> Pair:
    """Compare two sides by a figure a process each.

    Yuen's test for trimmed means (Yuen 1974, in scipy), on logarithms. `looks` is how often the same pair is judged as
    it grows: interval and p-value are those of all of them together (Bonferroni).
    Raises ValueError when a side has no figure, or one that is not positive and finite.
    """
    sides = [numpy.asarray(side, dtype=float) for side in (before, after)]
    if any(not len(side) or not numpy.all(numpy.isfinite(side)) or side.min() <= 0 for side in sides):
        raise ValueError("a pair needs positive, finite figures on both sides")
    was, now = (numpy.log(side) for side in sides)
    step = float(stats.trim_mean(now, TRIM) - stats.trim_mean(was, TRIM))
    if min(len(was), len(now)) < 2:
        return Pair(math.exp(step), None, None, 1.0)
    if max(numpy.ptp(was), numpy.ptp(now)) < FLOOR:  # a clock's ticks, not a measure of noise
        return Pair(math.exp(step), math.exp(step - FLOOR), math.exp(step + FLOOR), float(abs(step) <= FLOOR))
    test = stats.ttest_ind(now, was, equal_var=False, trim=TRIM)
    low, high = (math.exp(end) for end in test.confidence_interval(1 - (1 - CONFIDENCE) / looks))
    return Pair(math.exp(step), low, high, min(float(test.pvalue) * looks, 1.0))


def verdicts(pairs: list[Pair | None], threshold: float = THRESHOLD) -> list[str]:
    """What is said of each of many pairs.

    Slower or faster: the ratio lies beyond the threshold, and the difference stands among all of the pairs at a
    false-discovery rate of one less CONFIDENCE. No change: the whole interval lies within the threshold.
    """
    stands = believed([one.p if one else 1.0 for one in pairs], 1 - CONFIDENCE)
    edge = 1 + threshold
    said = []
    for one, stand in zip(pairs, stands, strict=True):
        if one and stand and not 1 / edge < one.ratio < edge:
            said.append(SLOWER if one.ratio > 1 else FASTER)
        elif one and one.low and one.high and 1 / edge < one.low and one.high < edge:
            said.append(SAME)
        else:
            said.append(UNDECIDED)
    return said
