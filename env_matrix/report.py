"""Judgements as sentences."""

from collections.abc import Iterator

from .regressions import Finding, sights
from .series import STEP, Series


def figure(value: float, metric: str, unit: str) -> str:
    """A figure with its unit, in three digits; step times in milliseconds."""
    return f"{value * 1e3:.3g} ms/step" if metric == STEP else f"{value:.3g} {unit}"


def direction(ratio: float, metric: str) -> str:
    """How much slower or faster (other metrics: more or less) something became, in percent of what it was."""
    more, less = ("slower", "faster") if metric == STEP else ("more", "less")
    if ratio == float("inf"):
        return f"{more}, from nought"
    if ratio >= 2:
        return f"{ratio:.3g} times, {more}"
    return f"{abs(ratio - 1):.0%} {more if ratio > 1 else less}"


def histories(looked_at: list[Series], found: list[Finding]) -> Iterator[str]:
    """The findings, a paragraph each, and what the series could have shown."""
    for finding in found:
        yield from paragraph(finding)
    worse = sum(finding.worse for finding in found)
    yield f"{len(looked_at)} series: {len(found)} changes, {worse} of them for the worse"
    seen = sights(looked_at)
    for sight in seen:
        ends = f"{sight.middle:.0%} in the middle, {sight.newest:.0%} at the newest release"
        yield f"{sight.series}: noise {sight.noise:.1%} from release to release; a change is seen from {ends}"


def paragraph(finding: Finding) -> Iterator[str]:
    """What one finding says, in lines."""
    series, change = finding.series, finding.change
    before, after = (figure(level, series.metric, series.unit) for level in (change.before, change.after))
    interval = (
        "" if change.low == change.high else f" (95% interval of the ratio {change.low:.3g} to {change.high:.3g})"
    )
    sure = f", p = {change.p:.1g}" if change.p else ", a count without noise"
    back = f"; back where it was at {finding.back_at}" if finding.back_at else ""
    yield f"{finding.after.release.name}  {series}"
    yield f"  {direction(change.ratio, series.metric)}{interval}: {before} -> {after}{sure}{back}"
    for what, phrases in (("with it", finding.evidence()), ("lock", finding.lock()), ("between", finding.skipped())):
        if phrases:
            yield f"  {what}: {'; '.join(phrases)}"
