"""The run of a matrix, end to end, on toy workloads: every way in which a cell can end."""

import json
import os
import signal
import time


def test_one_broken_cell_does_not_stop_the_others(toy_run):
    toy, said = toy_run
    assert said.returncode == 1
    states = {name.split(".")[1]: outcome["state"] for name, outcome in toy.outcomes().items()}
    assert states == {
        "Sleep": "measured",
        "Broken": "failed",
        "Crash": "failed",
        "Hang": "timed out",
        "Package": "failed",
        "Absent": "n/a",
    }
    assert "6 cells: 3 failed, 1 measured, 1 n/a, 1 timed out" in said.stdout


def test_every_cell_without_a_figure_says_why(toy_run):
    toy, said = toy_run
    reasons = {name.split(".")[1]: outcome["reason"] for name, outcome in toy.outcomes().items()}
    assert reasons["Broken"] == "ValueError: this model is broken on purpose in ./benchmarks/toy.py"
    assert reasons["Absent"] == "it does not exist for this stack"
    assert reasons["Crash"] == "its process was killed by signal 11"
    assert reasons["Hang"] == "it did not end within 2 s"
    for reason in reasons.values():
        assert reason in said.stdout


def test_the_value_is_the_time_of_a_step_and_the_build_happens_once(toy_run):
    toy, _ = toy_run
    row = toy.results()["toy.Sleep.time_step"]
    assert len(row["samples"][0]) == 3
    # Calls cost 0.3 s, steps 0.02 s: a value near a step's time has no share of the call in it.
    assert 0.01 < row["result"][0] < 0.05
    assert toy.builds.read_text() == "built\n"


def test_the_scale_that_needs_an_accelerator_is_refused_with_the_reason(toy_run):
    toy, _ = toy_run
    said = toy.stepline("bench", "--scale", "paper", "--task", "toy-sleep")
    assert said.returncode == 0
    assert "n/a: the paper scale needs an accelerator with 40 GB of memory; this machine has 0 GB" in said.stdout


def test_a_second_run_installs_nothing_and_keeps_the_samples(toy_run):
    toy, _ = toy_run
    python = next((toy.root / ".asv" / "env").glob("*/bin/python"))
    stamp = (python.parent.parent / "asv-install-status.json").stat().st_mtime_ns
    before = toy.results()["toy.Sleep.time_step"]["samples"][0]
    said = toy.stepline("bench", "--quick", "--task", "toy-sleep")
    assert said.returncode == 0, said.stdout + said.stderr
    assert (python.parent.parent / "asv-install-status.json").stat().st_mtime_ns == stamp
    after = toy.results()["toy.Sleep.time_step"]["samples"][0]
    assert after[: len(before)] == before
    assert len(after) == len(before) + 1


def test_a_rerun_that_fails_keeps_the_figure_and_says_that_it_failed(toy_run):
    toy, _ = toy_run
    before = toy.results()["toy.Sleep.time_step"]
    said = toy.stepline("bench", "--task", "toy-sleep", TOY_BUILDS="/no/such/folder/file")
    assert said.returncode == 1
    assert "FileNotFoundError" in toy.outcomes()["toy.Sleep.time_step('tiny')"]["reason"]
    assert toy.results()["toy.Sleep.time_step"]["samples"] == before["samples"]


def test_nothing_committed_names_the_host_or_a_path(toy_run):
    toy, _ = toy_run
    for file in (toy.root / "results").rglob("*"):
        if file.is_file():
            assert str(toy.root) not in file.read_text()
    machine = json.loads((toy.root / "results" / "toy-machine" / "machine.json").read_text())
    assert machine["os"] == "Linux"


def test_the_site_has_the_figures(toy_run):
    toy, _ = toy_run
    index = json.loads((toy.root / "html" / "index.json").read_text())
    assert "toy.Sleep.time_step" in index["benchmarks"]
    assert index["machines"].keys() == {"toy-machine"}


def test_interrupted_runs_keep_finished_cells_and_leave_a_site(toy):
    process = toy.start("bench", "--task", "toy-absent", "--task", "toy-hang")
    for line in process.stdout:
        if "toy-hang tiny (cell 2" in line:
            break
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait(timeout=60) == 130
    assert "interrupted; finished cells are kept" in rest
    assert "Traceback" not in rest
    assert toy.outcomes()["toy.Absent.time_step('tiny')"]["state"] == "n/a"
    assert (toy.root / "html" / "index.json").exists()


def test_plain_asv_commands_work(toy_run):
    toy, _ = toy_run
    for command in (
        ["check", "-E", "virtualenv"],
        ["show", "reference"],
        ["run", "-b", "toy.Sleep.*tiny", "-a", "repeat=1"],
    ):
        said = toy.python("-m", "asv", *command)
        assert said.returncode == 0, said.stdout + said.stderr
    assert "reference==2026-12-01" in toy.python("-m", "asv", "run", "--bench", "toy.Absent", "reference").stdout
