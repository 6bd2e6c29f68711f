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
PENALTY = 6.0  # times the noise's variance and the logarithm of the number of releases; scripts/detection.py tried it
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


def noise(values: list[list[float]]) -> float:
    """The noise of a series: standard deviation of the logarithm of a release's figure, from one release to another.

    The larger of two estimates: from the differences of neighbouring releases, and from the processes within releases;
    both by medians, so that neither a step nor a disturbed process counts.
    """
    middles = centres(values)
    normal = stats.norm.ppf(0.75)  # the median of absolute values is this many standard deviations
    between = float(numpy.median(numpy.abs(numpy.diff(middles)))) / normal / 2**0.5 if len(middles) > 2 else 0.0
    repeated = [
        numpy.log(release) - middle for release, middle in zip(values, middles, strict=True) if len(release) > 1
    ]
    within = 0.0
    if repeated:
        size = float(numpy.mean([len(release) for release in repeated]))
        one = float(numpy.median(numpy.abs(numpy.concatenate(repeated)))) / normal * (size / (size - 1)) ** 0.5
        # A median of three or more varies more than a mean does: by pi/2 in the limit (Kenney and Keeping 1962).
        within = one * ((numpy.pi / 2 if size > 2 else 1.0) / size) ** 0.5
    return max(between, within, FLOOR)


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

    Segments are those of least squares with a penalty (PELT: Killick, Fearnhead and Eckley 2012, from ruptures); every
    border between two is then put to a t test on the releases' medians, times the number of places it could be at.
    Raises ValueError when a figure is not positive and finite, or a release has none.
    """
    if any(not release or not numpy.all(numpy.isfinite(release)) or min(release) <= 0 for release in values):
        raise ValueError("a series needs positive, finite figures of every release")
    if len(values) < 3:
        return []
    means = centres(values)
    sigma = noise(values)
    penalty = PENALTY * sigma**2 * numpy.log(len(means))
    ends = ruptures.Pelt(model="l2", min_size=1, jump=1).fit(means.reshape(-1, 1)).predict(pen=penalty)
    borders = [0, *ends]
    parts = [means[begin:end] for begin, end in itertools.pairwise(borders)]
    spare = len(means) - len(parts)
    residual = (sum(((part - part.mean()) ** 2).sum() for part in parts) / spare) ** 0.5 if spare else 0.0
    found = []
    for index, before, after in zip(ends, parts, parts[1:], strict=False):
        error = max(sigma, residual) * (1 / len(before) + 1 / len(after)) ** 0.5
        step = after.mean() - before.mean()
        df = max(spare, 1)
        p = min(float(2 * stats.t.sf(abs(step) / error, df)) * (len(means) - 1), 1.0)
        if abs(step) >= numpy.log1p(threshold):
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


def believed(p: list[float]) -> list[bool]:
    """Which of many p-values stand when at most a share ALPHA of those may be false (Benjamini and Hochberg 1995)."""
    return [bool(value <= ALPHA) for value in stats.false_discovery_control(p)] if p else []


SLOWER, FASTER, SAME, UNDECIDED = "slower", "faster", "no change", "undecided"
LOOKS = (3, 4, 5, 7, 10, 14, 20, 28, 40)  # rounds after which a pair is judged; at the last it ends undecided
CONFIDENCE = 0.95  # of a pair's interval, at all looks together
TRIM = 0.2  # of the processes of a side, at each end; the share that Wilcox (2012) advises


@dataclasses.dataclass(frozen=True)
class Pair:
    """How two sides compare.

    Attributes:
        ratio: after over before; low and high are its confidence limits, None with fewer than two figures a side.
        verdict: slower or faster when the interval lies beyond the threshold, no change when inside it.
        p: probability of such figures if the true ratio were not beyond the threshold on the side it seems to be.
    """

    ratio: float
    low: float | None
    high: float | None
    verdict: str
    p: float


def pair(before: list[float], after: list[float], threshold: float = THRESHOLD, looks: int = 1) -> Pair:
    """Compare two sides by a figure a process each.

    Yuen's test for trimmed means (Yuen 1974, in scipy), on logarithms. `looks` is how often the same pair is judged as
    it grows: each interval is widened so that all of them together hold (Bonferroni).
    Raises ValueError when a side has no figure, or one that is not positive and finite.
    """
    sides = [numpy.asarray(side, dtype=float) for side in (before, after)]
    if any(not len(side) or not numpy.all(numpy.isfinite(side)) or side.min() <= 0 for side in sides):
        raise ValueError("a pair needs positive, finite figures on both sides")
    was, now = (numpy.log(side) for side in sides)
    edge = float(numpy.log1p(threshold))
    step = float(stats.trim_mean(now, TRIM) - stats.trim_mean(was, TRIM))
    if min(len(was), len(now)) < 2:
        return Pair(math.exp(step), None, None, UNDECIDED, 1.0)
    if max(numpy.ptp(was), numpy.ptp(now)) < FLOOR:  # a clock's ticks, not a measure of noise
        low, high, p = step - FLOOR, step + FLOOR, 0.0 if abs(step) - FLOOR > edge else 1.0
    else:
        test = stats.ttest_ind(now, was, equal_var=False, trim=TRIM)
        low, high = (float(end) for end in test.confidence_interval(1 - (1 - CONFIDENCE) / looks))
        error = (step / float(test.statistic)) if test.statistic else math.inf
        p = float(stats.t.sf((abs(step) - edge) / abs(error), float(test.df)))
    verdict = UNDECIDED
    if low > edge:
        verdict = SLOWER
    elif high < -edge:
        verdict = FASTER
    elif -edge < low and high < edge:
        verdict = SAME
    return Pair(math.exp(step), math.exp(low), math.exp(high), verdict, p)
