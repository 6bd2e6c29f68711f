"""asv along releases, end to end, on a package built here whose versions differ in speed."""

import json
import os
import signal

CELL = "toy.Package.time_step"


def asv(toy, *arguments):
    return toy.python("-m", "asv", *arguments)


def measured(toy):
    """Release names that have a figure of the package's cell, and how many processes gave it."""
    found = {}
    names = json.loads(toy.python("-c", NAMES).stdout)
    for file in (toy.root / "results" / "toy-machine").glob("*.outcomes"):
        outcome = json.loads(file.read_text()).get(f"{CELL}('tiny')")
        if outcome and outcome["state"] == "measured":
            found[names[file.name[:8]]] = len(outcome["processes"])
    return found


NAMES = """
import json
from env_matrix.releases import History
print(json.dumps({release.id[:8]: release.name for release in History.load().releases}))
"""


def test_asv_runs_a_range_and_compares_by_name(toy_history):
    said = asv(toy_history, "run", "stepslow>=1.3,<=1.4", "--bench", "toy.Package.*tiny")
    assert said.returncode == 0, said.stdout + said.stderr
    assert "stepslow==1.3" in said.stdout
    said = asv(toy_history, "compare", "stepslow==1.3", "stepslow==1.4")
    assert said.returncode == 0, said.stdout + said.stderr
    assert CELL in said.stdout
    assert "stepslow==1.3" in said.stdout


def test_asv_continuous_sees_the_known_slowdown(toy_history):
    said = asv(toy_history, "continuous", "stepslow==1.4", "stepslow==1.5", "--bench", "toy.Package.*tiny")
    assert said.returncode == 1, said.stdout + said.stderr
    assert "PERFORMANCE DECREASED" in said.stdout


def test_asv_find_names_the_release(toy_history):
    said = asv(toy_history, "find", "stepslow==1.0..stepslow==1.8", "toy.Package.time_step\\('tiny'\\)")
    assert said.returncode == 0, said.stdout + said.stderr
    assert "Greatest regression found: stepslow==1.5" in said.stdout


def test_stepline_run_goes_on_where_it_was(toy_history):
    toy = toy_history
    asked = ["run", "stepslow>=1.6", "--task", "toy-package", "--rounds", "2"]

    def processes():
        return sum(count for name, count in measured(toy).items() if name >= "stepslow==1.6")

    at_first = processes()  # asv find has saved what it measured
    process = toy.start(*asked)
    for line in process.stdout:
        if line.startswith("[2/"):
            os.killpg(process.pid, signal.SIGKILL)
            break
    process.wait(timeout=60)
    assert processes() == at_first + 2
    said = toy.stepline(*asked)
    assert said.returncode == 0, said.stdout + said.stderr
    assert f"{4 - at_first} cells: {4 - at_first} measured" in said.stdout
    assert processes() == 6
    assert "0 cells: none" in toy.stepline(*asked).stdout


def test_the_site_and_its_feed_name_releases(toy_history):
    toy = toy_history
    assert toy.stepline("site").returncode == 0
    script = (toy.root / "html" / "names.js").read_text()
    assert '"stepslow==1.5"' in script
    assert 'src="names.js"' in (toy.root / "html" / "index.html").read_text()
    index = json.loads((toy.root / "html" / "index.json").read_text())
    assert "stepslow" in index["params"]["branch"]


def test_plain_asv_run_means_the_reference(toy_history):
    said = asv(toy_history, "run", "--bench", "toy.Absent.*tiny")
    assert "reference==2026-12-01" in said.stdout
    assert "1 commits" in said.stdout


def test_two_runs_at_once_are_refused(toy_history):
    toy = toy_history
    script = """
import pathlib
from env_matrix.plugin import only_one
with only_one(pathlib.Path(".asv/run.lock")):
    import subprocess, sys
    said = subprocess.run([sys.executable, "-m", "asv", "run", "-b", "toy.Absent"], capture_output=True, text=True)
    print(said.returncode, said.stdout, said.stderr)
"""
    said = toy.python("-c", script)
    assert "is measuring in this checkout: wait for its end" in said.stdout
    assert "Traceback" not in said.stdout


def test_a_release_that_does_not_concern_the_stack_is_not_applicable(toy_history):
    toy = toy_history
    path = toy.root / "env_matrix" / "locks" / "native-toy" / "stepslow-1.2.txt"
    kept = path.read_text()
    path.rename(path.with_suffix(".failed"))
    path.with_suffix(".failed").write_text("no wheel for this Python\n")
    try:
        said = asv(toy, "run", "stepslow==1.2", "--bench", "toy.Sleep.*tiny", "--show-stderr")
        assert "n/a" in said.stdout
        assert "stepslow==1.2: no wheel for this Python" in said.stdout
    finally:
        path.with_suffix(".failed").unlink()
        path.write_text(kept)


def test_diff_and_its_refusal(toy_history):
    said = toy_history.stepline("diff", "stepslow==1.4", "stepslow==1.5")
    assert said.stdout == "native-toy: stepslow 1.4 -> 1.5\n"
    said = toy_history.stepline("diff", "stepslow==1.4", "stepslow==1.9")
    assert said.returncode == 1
    assert "stepslow 1.9 is not in env_matrix: the nearest is stepslow==1.8" in said.stderr


def test_releases_come_from_the_index_and_older_ones_can_be_inserted(toy):
    """idna, a small real package: sync finds its releases, add inserts one more, ids stay."""
    said = toy.stepline("add", "idna==3.6", "idna==3.7")
    assert said.returncode == 0, said.stdout + said.stderr
    assert "idna==3.7 on native-toy: 1 packages; idna 3.6 -> 3.7" in said.stdout
    before = json.loads(toy.python("-c", NAMES).stdout)
    assert toy.stepline("add", "idna==3.4").returncode == 0
    after = json.loads(toy.python("-c", NAMES).stdout)
    assert before.items() <= after.items()
    assert set(after.values()) - set(before.values()) == {"idna==3.4"}
    said = toy.stepline("add", "idna==3.999")
    assert "the index has no idna 3.999, or it was yanked: the nearest is" in said.stderr
    assert "did you mean idna?" in toy.stepline("add", "idnaa==3.4").stderr


def test_an_index_that_does_not_answer(toy):
    said = toy.stepline("sync", UV_DEFAULT_INDEX="http://127.0.0.1:9/simple")
    assert said.returncode == 1
    assert said.stderr == "stepline: the package index did not answer: check the network and run again\n"
    assert not (toy.root / "env_matrix" / "releases.toml").exists()
