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
DISTURBED = 1.5  # scripts/detection.py and scripts/noise.py tried it
AGREED = 0.5  # of a change, what every round has to show of it
NORMAL = float(stats.norm.ppf(0.75))  # standard deviations that the median of absolute deviations is
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


def deviations(values: list[list[float]]) -> numpy.ndarray:
    """How far processes are from the mean of their release, on a logarithmic scale, each as one of its own would be."""
    repeated = [numpy.log(release) for release in values if len(release) > 1]
    scaled = [(one - one.mean()) * (len(one) / (len(one) - 1)) ** 0.5 for one in repeated]
    return numpy.concatenate(scaled) if scaled else numpy.zeros(0)


def disturbed(values: list[list[float]]) -> bool:
    """Whether some processes were slowed by something else: a few are much further out than most are.

    That is, the standard deviation is DISTURBED times its robust estimate.
    """
    apart = deviations(values)
    if not len(apart):
        return False
    robust = float(numpy.median(numpy.abs(apart))) / NORMAL
    return float((apart**2).mean()) ** 0.5 > DISTURBED * max(robust, FLOOR)


def centres(values: list[list[float]]) -> numpy.ndarray:
    """The logarithm of each release's figure: its median process, or where some were disturbed the faster half's mean.

    What disturbs a process slows it: of two, the faster one is nearer to the release's own speed.
    """
    logs = [numpy.sort(numpy.log(release)) for release in values]
    if disturbed(values):
        return numpy.array([one[: (len(one) + 1) // 2].mean() for one in logs])
    return numpy.array([numpy.median(one) for one in logs])


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
    # The variance of a centre, times that of a mean. A median of three or more: pi/2 in the limit (Kenney and Keeping
    # 1962); the mean of the lower half: 1.36 for two, 1.35 in the limit (drawn 200,000 times).
    wider = 1.36 if disturbed(values) else numpy.pi / 2 if size > 2 else 1.0
    return float(one * (wider / size) ** 0.5), df


def noise(values: list[list[float]]) -> float:
    """The noise of a series: standard deviation of the logarithm of a release's figure, from one release to another.

    The larger of two estimates: from the differences of neighbouring releases, by their median, so that a step does
    not count; and from the processes within releases.
    """
    middles = centres(values)
    between = float(numpy.median(numpy.abs(numpy.diff(middles)))) / NORMAL / 2**0.5 if len(middles) > 2 else 0.0
    return max(between, within(values)[0], FLOOR)


def smallest_visible(values: list[list[float]], before: int, after: int) -> float:
    """The smallest change that would be found in 95% of cases between so many releases before and after it.

    Minimum detectable effect of a two-sided test at ALPHA with the series' noise, as a share.
    """
    sigma = noise(values) * (1 / before + 1 / after) ** 0.5
    positions = max(len(values) - 1, 1)
    df = max(len(values) - 2, 1)
    return float(numpy.exp(sigma * (stats.t.isf(ALPHA / positions / 2, df) + stats.t.isf(0.05, df))) - 1)


def changes(values: list[list[float]], threshold: float = THRESHOLD, alpha: float = ALPHA) -> list[Change]:
    """The changes of a series, oldest first. `values` holds of every release, oldest first, a figure a process.

    Candidates are the borders between segments of least squares with a penalty (PELT: Killick, Fearnhead and Eckley
    2012, from ruptures). Each is put to a t test between its two segments, times the number of places it could be at,
    and the weakest is dropped until all that are left pass (backward elimination). What only one round of measuring
    shows is then left out: something slowed the machine during it. `alpha` is the largest p-value that passes.
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
        if weakest.p <= alpha:
            parts = [0, *borders, len(values)]
            return [
                change
                for change, begin, end in zip(tested, parts, parts[2:], strict=False)
                if abs(math.log(change.ratio)) >= math.log1p(threshold) and agreed(values, change, begin, end)
            ]
        borders.remove(weakest.index)
    return []


def agreed(values: list[list[float]], change: Change, begin: int, end: int) -> bool:
    """Whether each round of measuring on its own shows enough of a change between segments begin..index and index..end.

    The processes of a release are in the order of rounds.
    """
    rounds = min(len(release) for release in values[begin:end])
    table = numpy.log([release[:rounds] for release in values[begin:end]])
    border = change.index - begin
    shown = (table[border:].mean(axis=0) - table[:border].mean(axis=0)) / math.log(change.ratio)
    return rounds < 2 or bool((shown >= AGREED).all())


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
    # Where all that trimming leaves is equal, Yuen's variance is nought: Welch's test then, without trimming.
    flat = max(numpy.ptp(stats.trimboth(side, TRIM)) for side in (was, now)) < FLOOR
    trim = 0 if flat else TRIM
    step = float(stats.trim_mean(now, trim) - stats.trim_mean(was, trim))
    if min(len(was), len(now)) < 2:
        return Pair(math.exp(step), None, None, 1.0)
    if max(numpy.ptp(was), numpy.ptp(now)) < FLOOR:  # a clock's ticks, not a measure of noise
        return Pair(math.exp(step), math.exp(step - FLOOR), math.exp(step + FLOOR), float(abs(step) <= FLOOR))
    test = stats.ttest_ind(now, was, equal_var=False, trim=trim)
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
