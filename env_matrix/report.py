"""Judgements as sentences."""

import json
import statistics
from collections.abc import Callable, Iterator
from xml.etree import ElementTree

from .judge import FASTER, SAME, SLOWER, UNDECIDED
from .regressions import Finding, sights
from .series import STEP, Series
from .upgrade import ABSENT, FAILED, Comparison, Verdict


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


HEADINGS = ("stack", "task", "before", "after", "ratio (95% interval)", "rounds", "verdict")


def row(verdict: Verdict) -> tuple[str, ...]:
    """One verdict as the columns of HEADINGS."""
    duel, pair = verdict.duel, verdict.pair
    times = [figure(statistics.median(side), STEP, "s") if side else "" for side in (duel.before, duel.after)]
    ratio = ""
    if pair:
        ratio = f"{pair.ratio:.3f}" + (f" ({pair.low:.3f} to {pair.high:.3f})" if pair.low and pair.high else "")
    scale = "" if duel.one.scale == "tiny" else f" {duel.one.scale}"
    return duel.one.column, duel.one.task + scale, *times, ratio, str(duel.rounds), verdict.state


def sentence(verdict: Verdict, threshold: float) -> str:
    """What a verdict says, in words."""
    pair, said = verdict.pair, ""
    if verdict.state in (SLOWER, FASTER) and pair and pair.low and pair.high:
        near, far = sorted((pair.low, pair.high), key=lambda ratio: abs(ratio - 1))
        said = f"{direction(pair.ratio, STEP)}, at least {direction(near, STEP)}, at most {direction(far, STEP)}"
    elif verdict.state == SAME:
        said = f"no change beyond {threshold:.0%}"
    elif verdict.state == UNDECIDED:
        said = f"undecided: {verdict.reason}"
    else:
        said = f"{verdict.state}: {verdict.reason}"
    told = [phrase for phrase in verdict.evidence if phrase.startswith("default changed") or "->" in phrase]
    parts = [f"{verdict.duel.one.column} {verdict.duel.one.task}: {said}", *told, *verdict.warnings]
    return "; ".join(parts)


def text(comparison: Comparison) -> str:
    """For a terminal: the lock difference, the table, a sentence a verdict."""
    rows = [HEADINGS, *(row(verdict) for verdict in comparison.verdicts)]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(HEADINGS))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in rows]
    return "\n".join([*heading(comparison), "", *table, "", *sentences(comparison)])


def markdown(comparison: Comparison) -> str:
    """For a pull request."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (HEADINGS, ["---"] * len(HEADINGS))]
    lines += ["| " + " | ".join(escaped(cell) for cell in row(verdict)) + " |" for verdict in comparison.verdicts]
    title, *locks = heading(comparison)
    listed = [f"- {escaped(line)}" for line in [*locks, *sentences(comparison)]]
    return "\n".join([f"### {escaped(title)}", "", *lines, "", *listed])


def escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    for sign in "\\`*_<>|[]":
        text = text.replace(sign, f"\\{sign}")
    return text


def heading(comparison: Comparison) -> list[str]:
    locks = [f"{stack}: {'; '.join(changed) or 'nothing changes'}" for stack, changed in comparison.locks.items()]
    return [f"{comparison.before.name} -> {comparison.after.name}", *locks]


def sentences(comparison: Comparison) -> list[str]:
    ended = [f"It ended early: {comparison.note}."] if comparison.note else []
    carriers = [f"{label}: {said}" for label, said in comparison.carriers.items()]
    return [sentence(verdict, comparison.threshold) for verdict in comparison.verdicts] + carriers + ended


def as_json(comparison: Comparison) -> str:
    """Everything, times in seconds a step."""
    found = {
        "before": comparison.before.name,
        "after": comparison.after.name,
        "threshold": comparison.threshold,
        "lock_difference": comparison.locks,
        "verdicts": [verdict.as_data() for verdict in comparison.verdicts],
        "carriers": comparison.carriers,
        "note": comparison.note,
        "exit_code": comparison.exit_code,
    }
    return json.dumps(found, indent=1)


def junit(comparison: Comparison) -> str:
    """For a CI server: a test case a task; a slowdown is a failure, no verdict is skipped."""
    kinds = {SLOWER: "failure", FAILED: "error", UNDECIDED: "skipped", ABSENT: "skipped"}
    states = [kinds.get(verdict.state, "") for verdict in comparison.verdicts]
    suite = ElementTree.Element("testsuite", name=f"{comparison.before.name} -> {comparison.after.name}")
    suite.set("tests", str(len(states)))
    for kind, counted in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(counted, str(states.count(kind)))
    for verdict, kind in zip(comparison.verdicts, states, strict=True):
        cell = verdict.duel.one
        case = ElementTree.SubElement(suite, "testcase", classname=cell.column, name=f"{cell.task} {cell.scale}")
        said = sentence(verdict, comparison.threshold)
        if kind:
            ElementTree.SubElement(case, kind, message=said)
        else:
            ElementTree.SubElement(case, "system-out").text = said
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


FORMATS: dict[str, Callable[[Comparison], str]] = {
    "text": text,
    "markdown": markdown,
    "json": as_json,
    "junit": junit,
}
