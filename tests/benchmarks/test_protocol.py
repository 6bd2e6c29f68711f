"""The arithmetic of a sample, on a clock that the test turns."""

import inspect
import json
import math

import pytest

from benchmarks import evidence, protocol


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(protocol.time, "perf_counter", clock)
    return clock


def test_what_a_call_costs_once_is_no_part_of_a_step(clock):
    def run(steps):
        clock.now += 7.0 + 0.25 * steps

    step = protocol.StepClock()
    step.time(run, steps=10)
    assert step() == pytest.approx(0.25)
    step.time(run, steps=4, short=2)
    assert step() == pytest.approx(0.5)  # it adds up, as a timer has to


def test_noise_larger_than_the_steps_is_an_error_not_a_figure(clock):
    lengths = iter([5.0, 1.0])

    def run(steps):
        clock.now += next(lengths)

    with pytest.raises(RuntimeError, match="too noisy"):
        protocol.StepClock().time(run, steps=10)


def test_the_workload_is_built_once(monkeypatch, clock, capsys):
    built = []

    class Toy(protocol.Cell):
        def build(self, scale, batch=None):
            built.append(scale)
            self.loop = {"steps": 4, "short": 1}

            def run(steps):
                clock.now += 1.0 + 0.5 * steps

            return protocol.Workload(run, 1, 1, {}, new_tokens=lambda: 3)

        def time_step(self, scale):
            self.sample()

    toy = Toy()
    for _ in range(3):  # asv calls setup before every sample
        toy.setup("tiny")
        toy.time_step("tiny")
    assert built == ["tiny"]
    assert toy.timer() == pytest.approx(3 * 0.5)
    last = json.loads(capsys.readouterr().out.splitlines()[-1].removeprefix("stepline: "))
    assert last["facts"] == {"new_tokens": 3}
    assert last["metrics"]["first_step"] == pytest.approx(1.5)
    assert set(last["metrics"]) <= set(evidence.METRICS)
    assert last["conditions"].keys() >= {"load_before", "load_after", "canary_s", "warm_up_s"}


def test_a_cell_without_a_step_is_no_benchmark():
    assert inspect.isabstract(protocol.Cell)  # asv passes abstract classes over


def test_every_metric_is_a_benchmark_with_a_unit():
    for metric, unit in evidence.METRICS.items():
        assert getattr(protocol.Cell, f"track_{metric}").unit == unit


def test_a_metric_that_a_process_does_not_have_is_not_applicable():
    class Toy(protocol.Cell):
        metrics = {"operators": 12}

        def time_step(self, scale):
            """Never called."""

    assert Toy().track_operators("tiny") == 12
    assert math.isnan(Toy().track_graphs("tiny"))


def test_drift_compares_the_halves_of_a_process():
    assert evidence.drift([1.0, 1.0, 1.0, 1.1, 1.1, 1.1]) == pytest.approx(10)
    assert evidence.drift([1.0, 2.0]) is None


def test_memory_is_read_from_this_process():
    before = evidence.resident()
    held = bytearray(64_000_000)
    assert evidence.added(before, evidence.resident()) == pytest.approx(64, rel=0.2)
    assert evidence.peak() >= len(held)


def test_conditions_are_stated_before_a_framework_is_imported(monkeypatch):
    monkeypatch.setattr(protocol.os, "environ", {})
    protocol.isolate("jax", 1)
    said = protocol.os.environ
    assert said["KERAS_BACKEND"] == "jax"
    assert said["OMP_NUM_THREADS"] == said["TF_NUM_INTRAOP_THREADS"] == said["TF_NUM_INTEROP_THREADS"] == "1"
    assert "--xla_cpu_multi_thread_eigen=false" in said["XLA_FLAGS"]
    assert said["HF_HUB_OFFLINE"] == said["TRANSFORMERS_OFFLINE"] == "1"


def test_both_scales_have_the_same_fields_for_every_model():
    for model, scales in protocol.SIZES["models"].items():
        assert scales["tiny"].keys() == scales["paper"].keys(), model
        assert list(protocol.SIZES["scales"]) == list(scales)
