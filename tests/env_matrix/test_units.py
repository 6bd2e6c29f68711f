"""The parts of env_matrix that need no environment."""

import json
import pathlib

import pytest

from env_matrix import lock, machine, outcomes, pins, stacks, uv
from env_matrix.errors import UserError
from env_matrix.plugin import ReleaseRepo

ROOT = pathlib.Path(__file__).parent.parent.parent


def test_asv_runs_the_stacks_of_the_data_file():
    conf = (ROOT / "asv.conf.json").read_text()
    matrix = json.loads("\n".join(line for line in conf.splitlines() if not line.strip().startswith("//")))["matrix"]
    assert matrix["env"]["STEPLINE_STACK"] == list(stacks.load())


def test_asv_conf_names_no_version_of_a_library():
    assert "==" not in (ROOT / "asv.conf.json").read_text()


def test_every_lock_meets_its_stack():
    for stack in stacks.load().values():
        lock.check(stack, pins.read(stack.lock))


def test_locks_hold_no_accelerator_packages_and_no_local_labels():
    for stack in stacks.load().values():
        held = pins.read(stack.lock)
        assert not [name for name in held if name.startswith(uv.ACCELERATOR_PREFIXES)]
        assert not [version for version in held.values() if "+" in version]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("idna>=3", "line 1"),
        ("idna==3.7\nIDNA==3.6", "pinned twice"),
        ("idna==3.7 --hash=sha256:00", "not name==version"),
        ("-e .", "not name==version"),
    ],
)
def test_a_lock_is_exact_pins_only(text, words):
    with pytest.raises(UserError, match=words):
        pins.parse(text, "x.txt")


def test_lock_names_are_normal_and_comments_are_allowed():
    assert pins.parse("# made\nKeras_NLP==0.8.2  # pinned\n\n", "x") == {"keras-nlp": "0.8.2"}


def test_pip_settings_reach_uv(monkeypatch):
    for name in ("UV_FIND_LINKS", "UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    settings = {"find-links": ["/wheels"], "index-url": ["https://a/simple"], "extra-index-url": ["https://b/simple"]}
    assert uv.arguments(settings) == [
        *("--find-links", "/wheels", "--default-index", "https://a/simple", "--index", "https://b/simple"),
        *("--index-strategy", "unsafe-best-match"),
    ]


def test_the_environment_variable_wins_over_pips_files(monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", "/from/the/environment /and/more")
    assert uv.pip_settings()["find-links"] == ["/from/the/environment", "/and/more"]


def test_without_wheels_of_the_user_uv_picks_the_build_for_this_machine(monkeypatch):
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    assert uv.arguments({}) == ["--torch-backend", "auto"]
    monkeypatch.setenv("UV_TORCH_BACKEND", "cu130")
    assert uv.arguments({}) == []


def test_a_release_has_a_hex_id_and_a_name():
    repo = ReleaseRepo(None, None)
    commit = repo.get_hash_from_name("reference")
    assert len(commit) == 40
    assert int(commit, 16) >= 0
    name = repo.get_name_from_hash(commit)
    assert name == f"reference=={stacks.reference_date()}"
    assert repo.get_hash_from_name(name) == repo.get_hash_from_name(commit[:8]) == commit
    assert repo.get_decorated_hash(commit) == name


def test_checking_out_a_release_lays_down_its_locks(tmp_path):
    repo = ReleaseRepo(None, None)
    repo.checkout(tmp_path / "project", repo.get_hash_from_name("HEAD"))
    assert {file.stem for file in (tmp_path / "project").iterdir()} == set(stacks.load())


def test_the_machine_is_named_by_its_hardware(monkeypatch, tmp_path):
    facts = machine.facts.__wrapped__
    monkeypatch.delenv("STEPLINE_MACHINE", raising=False)
    monkeypatch.setattr(machine, "accelerator", lambda: None)
    here = facts(tmp_path)
    assert here["machine"] == f"cpu-{here['num_cpu']}core"
    monkeypatch.setattr(machine, "accelerator", lambda: "NVIDIA A100-SXM4-40GB")
    assert facts(tmp_path)["machine"] == "nvidia-a100-sxm4-40gb"


def test_unlike_hardware_is_never_filed_under_one_name(monkeypatch, tmp_path):
    facts = machine.facts.__wrapped__
    monkeypatch.delenv("STEPLINE_MACHINE", raising=False)
    here = facts(tmp_path)
    known = tmp_path / here["machine"] / "machine.json"
    known.parent.mkdir()
    known.write_text(json.dumps(here))
    assert facts(tmp_path) == here
    known.write_text(json.dumps({**here, "cpu": "another processor"}))
    assert facts(tmp_path)["machine"].startswith(f"{here['machine']}-")


@pytest.mark.parametrize(
    ("value", "errcode", "output", "outcome"),
    [
        (1.5, 0, "", ("measured", "")),
        (float("nan"), 0, "asv: skipped: NotImplementedError('no such model') ", ("n/a", "no such model")),
        (float("nan"), 0, 'asv: skipped: NotImplementedError("it isn\'t there") ', ("n/a", "it isn't there")),
        (None, -256, "\n\nasv: benchmark timed out (timeout 5.0s)\n", ("timed out", "it did not end within 5.0 s")),
        (None, 1, 'Traceback ...\n  File "x"\nValueError: bad\n', ("failed", "ValueError: bad")),
        (None, -11, "", ("failed", "its process was killed by signal 11")),
        (None, 3, "", ("failed", "its process ended with code 3")),
        (
            None,
            1,
            "torch.cuda.OutOfMemoryError: out of memory",
            ("failed", "torch.cuda.OutOfMemoryError: out of memory"),
        ),
    ],
)
def test_four_states_are_told_apart(value, errcode, output, outcome):
    assert outcomes.judge(value, errcode, output) == outcome
