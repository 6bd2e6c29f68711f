"""Points of this machine: a git revision, from a repository made here, and a set of releases."""

import json
import subprocess

import pytest

BACKEND = """
import pathlib
import zipfile

VERSION = "3.8.dev0"
INFO = f"idna-{VERSION}.dist-info"
META = f"Metadata-Version: 2.1\\nName: idna\\nVersion: {VERSION}\\n"
WHEEL = "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"


def build_wheel(folder, settings=None, metadata=None):
    files = {"idna/__init__.py": pathlib.Path("idna/__init__.py").read_text()}
    files |= {f"{INFO}/METADATA": META, f"{INFO}/WHEEL": WHEEL}
    name = f"idna-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
        wheel.writestr(f"{INFO}/RECORD", "".join(f"{file},,\\n" for file in [*files, f"{INFO}/RECORD"]))
    return name
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


@pytest.fixture
def repository(tmp_path):
    """A git repository of a package that calls itself idna 3.8.dev0, and its one commit."""
    folder = tmp_path / "upstream"
    (folder / "idna").mkdir(parents=True)
    (folder / "idna" / "__init__.py").write_text("")
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "backend.py").write_text(BACKEND)

    def git(*arguments):
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        said = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True)
        return said.stdout.strip()

    git("init", "--quiet", "--initial-branch", "trunk")
    git("add", ".")
    git("commit", "--quiet", "--message", "one")
    return f"git+file://{folder}", git("rev-parse", "HEAD")


def test_a_git_revision_is_a_point(toy, repository):
    url, commit = repository
    said = toy.stepline("add", "idna==3.7", f"idna @ {url}@trunk")
    assert said.returncode == 0, said.stdout + said.stderr
    name = f"idna==3.8.dev0+g{commit[:8]}"
    assert f"{name} on native-toy: 1 packages; idna 3.7 -> git+file://" in said.stdout
    for asked in (f"idna @ {url}@trunk", f"idna @ {url}@{commit}", name):
        said = toy.stepline("diff", "idna==3.7", asked)
        assert said.stdout.startswith("native-toy: idna 3.7 -> git+"), asked
    said = toy.stepline("run", f"idna @ {url}@trunk", "--task", "toy-sleep", "--rounds", "1")
    assert said.returncode == 0, said.stdout + said.stderr
    assert f"native-toy toy-sleep tiny {name}" in said.stdout
    assert [found for found in toy.outcomes().values() if found["state"] == "measured"]
    (python,) = (toy.root / ".asv" / "env").glob("*/bin/python")
    script = "import importlib.metadata; print(importlib.metadata.version('idna'))"
    assert subprocess.check_output([python, "-c", script], text=True) == "3.8.dev0\n"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("idna @ {url}@nowhere", "has no nowhere"),
        ("idna @ {url}-gone@trunk", "could not be fetched"),
        ("idnax @ {url}@trunk", "did you mean idna?"),
        ("attrs @ {url}@trunk", "'attrs' is not tracked"),
    ],
)
def test_a_revision_that_is_none(toy, repository, asked, words):
    said = toy.stepline("add", asked.format(url=repository[0]))
    assert said.returncode == 1
    assert words in said.stderr
    assert said.stderr.count("\n") == 1
    assert not list((toy.root / "env_matrix").glob("local/*"))


def test_a_point_that_was_damaged_is_named(toy):
    folder = toy.root / "env_matrix" / "local" / "0123456789abcdef"
    folder.mkdir(parents=True)
    (folder / "point.json").write_text(json.dumps({"library": "idna"}))
    said = toy.stepline("lock", "--check")
    assert said.returncode == 1
    assert "delete that folder and make it anew" in said.stderr
