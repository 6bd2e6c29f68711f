"""The arithmetic of a sample, on a clock that the test turns."""

import pytest

from benchmarks import protocol


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

            return protocol.Workload(run, 1, 1, {})

    toy = Toy()
    for _ in range(3):  # asv calls setup before every sample
        toy.setup("tiny")
        toy.sample()
    assert built == ["tiny"]
    assert toy.timer() == pytest.approx(3 * 0.5)
    assert capsys.readouterr().out.count("stepline: ") == 1


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
