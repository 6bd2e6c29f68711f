"""stepline regressions over result files written here: what is found, named, and left out."""

import json

import pytest

TASK = "toy.Package.time_step"
KEY = f"{TASK}('tiny')"


@pytest.fixture
def measured(toy_history, tmp_path, monkeypatch):
    """A results folder with figures of nine releases, half slower again from 1.5 on; and how to ask about it."""
    root = tmp_path / "results"
    folder = root / "toy-machine"
    folder.mkdir(parents=True)
    (root / "benchmarks.json").write_text(json.dumps({TASK: {"version": "v", "params": [["'tiny'"]]}}))
    ids = json.loads(toy_history.python("-c", IDS).stdout)
    for number, commit in enumerate(ids.values()):
        level = 0.010 if number < 5 else 0.015
        samples = [level * (1 + 0.01 * ((number * 7 + k * 3) % 5 - 2)) for k in range(4)]
        write(folder, commit, samples, {"operators": 100 if number < 5 else 140})

    def ask(*arguments):
        kept = toy_history.root / "results"
        aside = toy_history.root / "results.aside"
        if kept.exists():
            kept.rename(aside)
        root.rename(kept)
        try:
            return toy_history.stepline("regressions", *arguments)
        finally:
            kept.rename(root)
            if aside.exists():
                aside.rename(kept)

    return folder, ids, ask


IDS = """
import json
from env_matrix.releases import History
print(json.dumps({r.name: r.id for r in History.load().releases if r.library == "stepslow"}))
"""


def write(folder, commit, samples, metrics):
    stem = f"{commit[:8]}-virtualenv-py3.11-STEPLINE_STACKnative-toy"
    columns = ["result", "params", "version", "samples"]
    data = {
        "commit_hash": commit,
        "env_vars": {"STEPLINE_STACK": "native-toy"},
        "result_columns": columns,
        "results": {TASK: [[samples[0]], [["'tiny'"]], "v", [samples]]},
    }
    (folder / f"{stem}.json").write_text(json.dumps(data))
    processes = [{"samples": 2, "metrics": metrics}, {"samples": 2, "metrics": metrics}]
    outcome = {"state": "measured", "reason": "", "processes": processes, "facts": {}}
    (folder / f"{stem}.outcomes").write_text(json.dumps({KEY: outcome}))


def test_the_release_is_named_with_its_evidence(measured):
    _, _, ask = measured
    said = ask("--json")
    assert said.returncode == 0, said.stderr
    (found,) = json.loads(said.stdout)
    assert found["release"] == "stepslow==1.5"
    assert found["previous"] == "stepslow==1.4"
    assert found["ratio_low"] < 1.5 < found["ratio_high"]
    assert "operators 100 -> 140" in found["evidence"]
    assert found["lock_difference"] == ["stepslow 1.4 -> 1.5"]
    text = ask("--metric", "all").stdout
    assert "40% more: 100" in text
    assert "2 series: 2 changes, 2 of them for the worse" in text


@pytest.mark.parametrize(
    "broken",
    ["", "{", "[]", '{"commit_hash": 1}', "null"],
)
def test_a_broken_file_is_named_and_the_rest_is_judged(measured, broken):
    folder, ids, ask = measured
    file = next(folder.glob(f"{ids['stepslow==1.2'][:8]}*.json"))
    file.write_text(broken)
    said = ask("--json")
    assert said.returncode == 0
    assert f"{file.name} is not a whole result file: left out" in said.stderr
    (found,) = json.loads(said.stdout)
    assert found["release"] == "stepslow==1.5"


def test_missing_samples_are_no_figures(measured):
    folder, ids, ask = measured
    file = next(folder.glob(f"{ids['stepslow==1.6'][:8]}*.json"))
    data = json.loads(file.read_text())
    data["results"][TASK][3] = [[0.9]]
    file.write_text(json.dumps(data))
    said = ask("--json")
    assert "left out" in said.stderr
    (found,) = json.loads(said.stdout)
    assert found["release"] == "stepslow==1.5"


def test_another_version_of_the_benchmark_is_left_out(measured):
    folder, ids, ask = measured
    file = next(folder.glob(f"{ids['stepslow==1.8'][:8]}*.json"))
    file.write_text(file.read_text().replace('"v"', '"older"'))
    said = ask()
    assert "was taken by another version of its benchmark: left out" in said.stderr


def test_other_locks_and_other_machines_never_join(measured):
    folder, ids, ask = measured
    file = next(folder.glob(f"{ids['stepslow==1.8'][:8]}*.json"))
    file.write_text(file.read_text().replace(ids["stepslow==1.8"], "f" * 40))
    assert "of a release or stack with another lock than today's: left out" in ask().stderr
    other = folder.parent / "other-machine"
    folder.rename(other)
    folder.mkdir()
    write(folder, ids["stepslow==1.3"], [9.0, 9.0, 9.0, 9.0], {})
    (found,) = json.loads(ask("--json").stdout)
    assert found["machine"] == "other-machine"


def test_what_is_unknown_gets_the_nearest(measured):
    _, _, ask = measured
    said = ask("--task", "toy-packages")
    assert said.returncode == 1
    assert "did you mean toy-package?" in said.stderr
    assert "did you mean native-toy?" in ask("--stack", "native-toi").stderr


def test_since_leaves_out_what_came_before(measured):
    _, _, ask = measured
    assert json.loads(ask("--json", "--since", "2024-07-01").stdout) == []
    assert len(json.loads(ask("--json", "--since", "2024-06-01").stdout)) == 1
