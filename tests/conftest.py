"""Fixtures: the environments that asv made, and a small copy of the repository to break things in."""

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from env_matrix import stacks
from env_matrix.bench import Bench

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture(scope="session")
def environment():
    """The function from a stack to its environment's Python, made through asv as a run would make it."""
    bench = Bench(ROOT, {})

    @functools.cache
    def make(stack: stacks.Stack) -> pathlib.Path:
        bench.install(stack)
        return bench.python(stack)

    return make


TOY = '''
"""Toy workloads, one for each way in which a cell can end."""

import os
import pathlib
import time

from .protocol import Cell, Workload


class _Toy(Cell):
    model = "toy"
    task = "fit"
    timeout = 20
    repeat = 3


class Sleep(_Toy):
    def native(self, size, mode):
        with open(os.environ["TOY_BUILDS"], "a") as file:
            file.write("built\\n")
        # A call costs 0.3 s once and 0.02 s a step.
        return Workload(run=lambda steps: time.sleep(0.3 + 0.02 * steps), parameters=1, trainable=1, facts={"toy": 1})

    def time_step(self, scale):
        self.sample()


class Broken(_Toy):
    def native(self, size, mode):
        raise ValueError("this model is broken on purpose")

    def time_step(self, scale):
        self.sample()


class Crash(_Toy):
    def native(self, size, mode):
        import signal

        os.kill(os.getpid(), signal.SIGSEGV)

    def time_step(self, scale):
        self.sample()


class Hang(_Toy):
    timeout = 2

    def native(self, size, mode):
        time.sleep(60)

    def time_step(self, scale):
        self.sample()


class Absent(_Toy):
    def native(self, size, mode):
        raise NotImplementedError("it does not exist for this stack")

    def time_step(self, scale):
        self.sample()
'''

TOY_SIZES = {
    "scales": {"tiny": {"threads": 1, "accelerator_gb": 0}, "paper": {"threads": None, "accelerator_gb": 40}},
    "models": {"toy": {scale: {"fit": {"batch": 1, "steps": 5}} for scale in ("tiny", "paper")}},
}

TOY_STACKS = """
[reference]
as_of = 2026-12-01

[stacks.native-toy]
python = "3.11"
backend = "toy"
tracked = ["idna"]
requires = ["idna==3.7"]

[harness]
"""


class Toy:
    """A copy of the repository with toy workloads and one stack that has a single small package."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.builds = root / "builds"
        shutil.copytree(ROOT / "env_matrix", root / "env_matrix", ignore=shutil.ignore_patterns("__pycache__"))
        (root / "benchmarks").mkdir()
        (root / "benchmarks" / "__init__.py").touch()
        shutil.copy(ROOT / "benchmarks" / "protocol.py", root / "benchmarks")
        (root / "benchmarks" / "toy.py").write_text(TOY)
        (root / "benchmarks" / "sizes.json").write_text(json.dumps(TOY_SIZES))
        harness = (ROOT / "env_matrix" / "stacks.toml").read_text().partition("[harness]\n")[2]
        (root / "env_matrix" / "stacks.toml").write_text(TOY_STACKS + harness)
        (root / "env_matrix" / "locks" / "native-toy.txt").write_text("idna==3.7\n")
        conf = json.loads(
            "\n".join(x for x in (ROOT / "asv.conf.json").read_text().splitlines() if "//" not in x or '"' in x)
        )
        conf["matrix"] = {"env": {"STEPLINE_STACK": ["native-toy"]}}
        conf["exclude"] = []
        (root / "asv.conf.json").write_text(json.dumps(conf))

    def stepline(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        """Run the command line of this copy."""
        return self.python("-m", "env_matrix", *arguments, **variables)

    def python(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**os.environ, "TOY_BUILDS": str(self.builds), "STEPLINE_MACHINE": "toy-machine", **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def outcomes(self) -> dict[str, dict]:
        (file,) = (self.root / "results" / "toy-machine").glob("*.outcomes")
        return json.loads(file.read_text())

    def results(self) -> dict:
        (file,) = (self.root / "results" / "toy-machine").glob("*-virtualenv*.json")
        data = json.loads(file.read_text())
        return {name: dict(zip(data["result_columns"], row, strict=False)) for name, row in data["results"].items()}


@pytest.fixture
def toy(tmp_path):
    return Toy(tmp_path)


@pytest.fixture(scope="session")
def toy_run(tmp_path_factory):
    """A toy repository in which the whole matrix has been run once, and what that run said."""
    toy = Toy(tmp_path_factory.mktemp("toy"))
    return toy, toy.stepline("bench")
