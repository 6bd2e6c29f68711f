"""Compare detectors of change on labelled series: asv's own, Apache Otava's, and Stepline's.

    .venv/bin/python -m pip install --target OTAVA apache-otava==0.8.0
    PYTHONPATH=.venv/lib/python3.11/site-packages:OTAVA .venv/bin/python scripts/detection.py

Prints a Markdown table. Seven kinds of series are drawn, the eighth is of processes of one release that were really
measured. A series has one step at a known release or none; a detector finds it when it reports a change of at least 5%
at exactly that release, and every other report is a false alarm, counted a series.
"""

import functools
import itertools
import json
import pathlib

import numpy
from asv.step_detect import detect_steps
from otava.analysis import compute_change_points

from env_matrix import judge

SERIES = 1000
SEED = 9
KINDS = ["quiet", "noisy", "very noisy", "heavy tails", "drift", "few releases", "newest release", "real"]
POOL = pathlib.Path(__file__).parent / "noise" / "pool.json"  # one release, many processes: see noise.py


def make(kind, step, rng):
    """A series: processes' figures a release, and the index of the first slower release (None without a step)."""
    if kind == "real":
        return real(step, rng)
    releases, processes, sigma = (8 if kind == "few releases" else 20), 2, 0.02
    sigma = {"quiet": 0.01, "noisy": 0.03, "very noisy": 0.05}.get(kind, sigma)
    shape = (releases, processes)
    between = rng.normal(0, sigma / 2, (releases, 1))  # what all processes of a release share
    within = sigma * (rng.standard_t(3, shape) if kind == "heavy tails" else rng.standard_normal(shape))
    trend = 0.002 * numpy.arange(releases)[:, None] if kind == "drift" else 0.0
    at = releases - 1 if kind == "newest release" else int(rng.integers(2, releases - 1))
    level = numpy.where(numpy.arange(releases) >= at, numpy.log1p(step), 0.0)[:, None]
    return numpy.exp(between + within + trend + level), (at if step else None)


def real(step, rng):
    """A series of processes of one release, taken one after another from some place on, in the order of two rounds."""
    pool = list(json.loads(POOL.read_text()).values())
    figures = pool[rng.integers(len(pool))]
    taken = numpy.roll(figures, -rng.integers(len(figures)))[:40]
    values = numpy.stack([part[rng.permutation(20)] for part in (taken[:20], taken[20:])], axis=1)
    at = int(rng.integers(2, 19))
    values[at:] *= 1 + step
    return values, (at if step else None)


def by_asv(values):
    steps = detect_steps([float(value) for value in numpy.median(values, axis=1)])
    return [
        after[0]
        for before, after in itertools.pairwise(steps)
        if abs(numpy.log(after[2] / before[2])) >= numpy.log1p(judge.THRESHOLD)
    ]


def by_otava(values):
    found = compute_change_points(numpy.median(values, axis=1))
    points = found[0] if isinstance(found, tuple) else found
    return [point.index for point in points if abs(point.stats.forward_rel_change()) >= judge.THRESHOLD]


def by_us(values, alpha):
    return [change.index for change in judge.changes([list(release) for release in values], alpha=alpha)]


DETECTORS = {
    "asv 0.6.6": by_asv,
    "Otava 0.8.0": by_otava,
    "Stepline": functools.partial(by_us, alpha=judge.ALPHA),
    "Stepline, p at most 0.05": functools.partial(by_us, alpha=0.05),  # with false alarms nearer to Otava's
}


def main():
    print("| series | detector | false alarms, no step | 5% found | 10% found | 30% found | false alarms beside 10% |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    every = {name: [] for name in DETECTORS}
    for kind in KINDS:
        drawn = {}
        for step in (0.0, 0.05, 0.10, 0.30):
            rng = numpy.random.default_rng([SEED, KINDS.index(kind), int(step * 100)])
            drawn[step] = [make(kind, step, rng) for _ in range(SERIES)]
        for name, detect in DETECTORS.items():
            said = {step: [(detect(values), at) for values, at in many] for step, many in drawn.items()}
            hits = {step: sum(at in found for found, at in many) / SERIES for step, many in said.items() if step}
            alarms = sum(bool(found) for found, _ in said[0.0]) / SERIES
            beside = sum(any(index != at for index in found) for found, at in said[0.10]) / SERIES
            every[name].append([alarms, *hits.values(), beside])
            show(kind, name, every[name][-1])
    for name, shares in every.items():
        show("**all**", name, numpy.mean(shares, axis=0))


def show(kind, name, shares):
    print(f"| {kind} | {name} | " + " | ".join(f"{share:.1%}" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
