"""Judge a history: where along a library's releases a figure changed, in both directions.

Values are compared on a logarithmic scale: what is found is a ratio, and does not depend on the unit.
"""

import dataclasses

import numpy
import ruptures
from scipy import stats

THRESHOLD = 0.05  # the smallest change that is reported
ALPHA = 0.01  # of all reported changes the share that may be none
PENALTY = 3.0  # times the noise's variance and the logarithm of the number of releases; scripts/detection.py tried it
FLOOR = 1e-4  # noise below which no measured series is taken to be


@dataclasses.dataclass(frozen=True)
class Change:
    """A change between two neighbouring releases.

    Attributes:
        index: of the first release that has it.
        ratio: after over before; low and high are its 95% confidence limits.
        p: probability of so large a change from noise alone, anywhere in the series.
    """

    index: int
    ratio: float
    low: float
    high: float
    p: float


def noise(values: list[list[float]]) -> float:
    """The noise of a series: standard deviation of the logarithm of a release's mean, from one release to another.

    The larger of two estimates: from the differences of neighbouring releases, by their median so that steps do not
    count, and from the processes within releases.
    """
    logs = [numpy.log(release) for release in values]
    means = numpy.array([release.mean() for release in logs])
    between = 0.0
    if len(means) > 2:
        # About nought, not about their median; the quantile makes it a normal distribution's standard deviation.
        between = float(numpy.median(numpy.abs(numpy.diff(means))) / stats.norm.ppf(0.75)) / 2**0.5
    spare = sum(len(release) - 1 for release in logs)
    within = 0.0
    if spare:
        variance = sum(((release - release.mean()) ** 2).sum() for release in logs) / spare
        within = (variance / numpy.mean([len(release) for release in logs])) ** 0.5
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
    border between two is then put to a t test on the means of releases, times the number of places it could be at.
    Raises ValueError when a figure is not positive and finite, or a release has none.
    """
    if any(not release or not numpy.all(numpy.isfinite(release)) or min(release) <= 0 for release in values):
        raise ValueError("a series needs positive, finite figures of every release")
    if len(values) < 3:
        return []
    means = numpy.array([numpy.log(release).mean() for release in values])
    sigma = noise(values)
    penalty = PENALTY * sigma**2 * numpy.log(len(means))
    ends = ruptures.Pelt(model="l2", min_size=1, jump=1).fit(means.reshape(-1, 1)).predict(pen=penalty)
    borders = [0, *ends]
    parts = [means[begin:end] for begin, end in zip(borders, borders[1:], strict=False)]
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
            limits = (float(numpy.exp(step - reach)), float(numpy.exp(step + reach)))
            found.append(Change(index, float(numpy.exp(step)), *limits, p))
    return found


def believed(p: list[float]) -> list[bool]:
    """Which of many p-values stand when at most a share ALPHA of those may be false (Benjamini and Hochberg 1995)."""
    return [bool(value <= ALPHA) for value in stats.false_discovery_control(p)] if p else []
