"""Bad input gets one sentence that says what to do, a non-zero exit and no traceback."""

import os
import pathlib

import pytest

from env_matrix import uv


def assert_one_sentence(said, *words):
    """The command failed, without a traceback, and its last line has the words."""
    assert said.returncode != 0
    assert "Traceback" not in said.stdout + said.stderr
    last = (said.stdout + said.stderr).strip().splitlines()
    text = "\n".join(last)
    for word in words:
        assert word in text, text


def test_unknown_stack_names_the_nearest(toy):
    assert_one_sentence(toy.stepline("bench", "--stack", "native-tory"), "unknown stack", "did you mean native-toy?")


def test_unknown_task_names_the_nearest(toy_run):
    toy, _ = toy_run
    assert_one_sentence(toy.stepline("bench", "--task", "toy-slep"), "unknown task", "did you mean toy-sleep?")


def test_unknown_scale_names_the_known(toy_run):
    toy, _ = toy_run
    assert_one_sentence(toy.stepline("bench", "--scale", "huge"), "unknown scale", "tiny, paper")


def test_missing_interpreter(toy):
    stacks = toy.root / "env_matrix" / "stacks.toml"
    stacks.write_text(stacks.read_text().replace('python = "3.11"', 'python = "3.99"'))
    assert_one_sentence(toy.stepline("bench"), "native-toy needs Python 3.99", "put python3.99 on PATH")


def test_malformed_lock(toy):
    (toy.root / "env_matrix" / "locks" / "native-toy.txt").write_text("idna>=3\n")
    assert_one_sentence(toy.stepline("lock", "--check"), "native-toy.txt line 1", "run stepline lock")


def test_lock_edited_by_hand(toy):
    lock = toy.root / "env_matrix" / "locks" / "native-toy.txt"
    lock.write_text(lock.read_text().replace("3.7", "3.6"))
    assert_one_sentence(toy.stepline("lock", "--check"), "native-toy.txt was edited by hand", "restore it with git")
    assert_one_sentence(toy.python("-m", "asv", "run"), "native-toy.txt was edited by hand")


def test_lock_that_disagrees_with_its_stack(toy):
    toy.lock({"idna": "3.6"})
    assert_one_sentence(toy.stepline("lock", "--check"), "idna 3.6", "asks for idna==3.7")


def test_lock_that_does_not_resolve(toy):
    stacks = toy.root / "env_matrix" / "stacks.toml"
    stacks.write_text(stacks.read_text().replace('"idna==3.7"', '"idna==3.7", "idna==3.6"'))
    assert_one_sentence(toy.stepline("lock"), "no lock for native-toy", "no solution")


def test_package_that_does_not_exist_at_that_version(toy):
    toy.lock({"idna": "3.7777"})
    assert_one_sentence(toy.stepline("bench"), "native-toy could not be set up", "no solution")


def test_no_network_and_a_cold_cache(toy, tmp_path):
    nowhere = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_CACHE_DIR": str(tmp_path / "cold")}
    assert_one_sentence(toy.stepline("lock", UV_INDEX="", UV_HTTP_TIMEOUT="2", **nowhere), "check the network")


def test_no_network_when_an_environment_has_to_be_made(toy, tmp_path):
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    said = toy.stepline("bench", PIP_CACHE_DIR=str(tmp_path / "cold"), PIP_FIND_LINKS="", **nowhere)
    assert_one_sentence(said, "native-toy could not be set up: the package index did not answer")


def test_no_uv(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(uv.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(uv.UserError, match="uv was not found: run make setup"):
        uv.run(["--version"])


@pytest.mark.parametrize(
    ("stderr", "sentence"),
    [
        ("error: failed to write: No space left on device (os error 28)", "the disk is full"),
        ("error: Failed to fetch: `https://x/simple/idna/`\n  Caused by: dns error", "check the network"),
        ("  × No solution found when resolving:\n  ╰─▶ Because a, b.\n\n hint: c", "solution: Because a, b."),
        ("error: No solution found when resolving dependencies\n  cause: Because a, b.", "solution: Because a, b."),
        ("", "uv failed without saying why"),
    ],
)
def test_what_uv_says_becomes_one_sentence(stderr, sentence):
    assert sentence in uv.explain(stderr)
    assert "\n" not in uv.explain(stderr)


def test_full_disk(toy):
    """A file system of 1 MB under results/: cells cannot be recorded, and the run says why."""
    results = toy.root / "results"
    results.mkdir()
    if os.system(f"mount -t tmpfs -o size=4k tmpfs {results} 2>/dev/null"):
        pytest.skip("this test mounts a small file system, which needs more rights")
    try:
        assert_one_sentence(toy.stepline("bench", "--task", "toy-absent"), "the disk is full")
    finally:
        os.system(f"umount {results}")


def test_broken_results_file(toy_run):
    toy, _ = toy_run
    (file,) = (toy.root / "results" / "toy-machine").glob("*-virtualenv*.json")
    whole = file.read_text()
    file.write_text(whole[: len(whole) // 2])
    try:
        said = toy.stepline("bench", "--task", "toy-sleep")
        assert_one_sentence(said, pathlib.Path(file).name)
        assert file.read_text() == whole[: len(whole) // 2]
    finally:
        file.write_text(whole)
