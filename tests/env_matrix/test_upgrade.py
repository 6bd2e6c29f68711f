"""stepline upgrade, end to end, on packages built here."""

import json
import os
import signal
from xml.etree import ElementTree

import pytest

PACKAGE = ("--task", "toy-package")


def asked(toy, before, after, *more):
    said = toy.stepline("upgrade", before, after, "--format", "json", *more)
    assert "Traceback" not in said.stderr
    return said.returncode, json.loads(said.stdout)


def test_a_known_slowdown_is_found(toy_history):
    code, found = asked(toy_history, "stepslow==1.4", "stepslow==1.5", *PACKAGE)
    (verdict,) = found["verdicts"]
    assert (code, verdict["verdict"]) == (1, "slower")
    assert verdict["ratio_low"] < 1.5 < verdict["ratio_high"]
    assert found["lock_difference"] == {"native-toy": ["stepslow 1.4 -> 1.5"]}
    assert len(verdict["before_s"]) == len(verdict["after_s"]) >= 3


def test_equal_releases_have_no_slowdown_and_what_fails_says_why(toy_history):
    code, found = asked(
        toy_history, "stepslow==1.3", "stepslow==1.4", *PACKAGE, "--task", "toy-absent", "--task", "toy-broken"
    )
    verdicts = {verdict["task"]: verdict for verdict in found["verdicts"]}
    assert verdicts["toy-package"]["verdict"] in ("no change", "undecided")
    assert verdicts["toy-absent"]["verdict"] == "n/a"
    assert "does not exist for this stack" in verdicts["toy-absent"]["reason"]
    assert verdicts["toy-broken"]["verdict"] == "failed"
    assert "broken on purpose" in verdicts["toy-broken"]["reason"]
    assert code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("stepslow==1.3", "stepslow==1.4", *PACKAGE, "--budget", "0.0001"),
            "before one round: give a longer --budget",
        ),
        (("stepslow==1.3", "stepslow==1.99"), "the nearest is stepslow==1.8"),
        (("stepslow==1.3", "stepslow==1.4 stepslow==1.5"), "names one library twice"),
        (("stepslow==1.3", "stepslow==1.4", "--stack", "native-toi"), "did you mean native-toy?"),
    ],
)
def test_bad_input_is_one_sentence_and_not_the_exit_status_of_a_slowdown(toy_history, arguments, words):
    said = toy_history.stepline("upgrade", *arguments)
    assert said.returncode == 2
    assert words in said.stderr
    assert "Traceback" not in said.stderr
    assert not said.stdout


def test_releases_that_share_no_stack(toy_history):
    path = toy_history.root / "env_matrix" / "locks" / "native-toy" / "stepslow-1.7.txt"
    kept = path.read_text()
    path.unlink()
    try:
        said = toy_history.stepline("upgrade", "stepslow==1.6", "stepslow==1.7")
        assert said.returncode == 2
        assert "stepslow==1.6 and stepslow==1.7 share none of these stacks" in said.stderr
    finally:
        path.write_text(kept)


def test_the_interrupt_key_gives_the_verdicts_so_far(toy_history):
    process = toy_history.start("upgrade", "stepslow==1.4", "stepslow==1.5", *PACKAGE, "--format", "junit")
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("... round 3"):
            os.killpg(process.pid, signal.SIGINT)
            break
    rest = process.stdout.read()
    assert process.wait(timeout=60) in (1, 2)
    suite = ElementTree.fromstring(rest[rest.index("<?xml") :])
    assert suite.get("name") == "stepslow==1.4 -> stepslow==1.5"
    (case,) = suite
    assert case.get("name") == "toy-package tiny"


def test_the_package_that_carries_a_slowdown_is_named(toy_pair):
    code, found = asked(toy_pair, "front==1.0", "front==2.0", *PACKAGE, "--bisect-lock")
    assert code == 1
    assert len(found["lock_difference"]["native-toy"]) == 3
    (said,) = found["carriers"].values()
    assert said.startswith("carried by stepslow 1.0 -> 1.5 (")


def test_markdown_says_the_same_as_text(toy_pair):
    """A table row and a sentence a verdict, in either form."""
    options = ("front==1.0", "front==1.0", *PACKAGE, "--budget", "1")
    for form, row in (("text", "native-toy  toy-package"), ("markdown", "| native-toy | toy-package |")):
        said = toy_pair.stepline("upgrade", *options, "--format", form)
        assert row in said.stdout
        assert "front==1.0 -> front==1.0" in said.stdout.replace("\\", "")
        assert "nothing changes" in said.stdout
