"""Fixtures: the environments that asv made, and a small copy of the repository to break things in."""

import datetime
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest
from asv.util import load_json
from packaging.version import Version

from env_matrix import pins, releases, stacks
from env_matrix.bench import Bench
from env_matrix.releases import REFERENCE, History

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture(scope="session")
def environment():
    """The function from a stack to its environment's Python, made through asv as a run would make it."""
    bench = Bench(ROOT, {})

    @functools.cache
    def make(stack: stacks.Stack) -> pathlib.Path:
        bench.install(stack, History.load().one(REFERENCE))
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
        raise ValueError(f"this model is broken on purpose in {__file__}")

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


class Package(_Toy):
    """As slow as the installed version of the package `stepslow` says."""

    repeat = 8

    def native(self, size, mode):
        import stepslow

        return Workload(run=lambda steps: time.sleep(stepslow.SECONDS * steps), parameters=1, trainable=1, facts={})

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
requires = ["idna==3.7"]

[harness]
"""


class Toy:
    """A copy of the repository with toy workloads and one stack that has a single small package."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.builds = root / "builds"
        self.variables = {"TOY_BUILDS": str(self.builds), "STEPLINE_MACHINE": "toy-machine"}
        shutil.copytree(ROOT / "env_matrix", root / "env_matrix", ignore=shutil.ignore_patterns("__pycache__"))
        (root / "benchmarks").mkdir()
        (root / "benchmarks" / "__init__.py").touch()
        for module in ("protocol.py", "evidence.py"):
            shutil.copy(ROOT / "benchmarks" / module, root / "benchmarks")
        (root / "benchmarks" / "toy.py").write_text(TOY)
        (root / "benchmarks" / "sizes.json").write_text(json.dumps(TOY_SIZES))
        harness = (ROOT / "env_matrix" / "stacks.toml").read_text().partition("[harness]\n")[2]
        (root / "env_matrix" / "stacks.toml").write_text(TOY_STACKS + harness)
        shutil.rmtree(root / "env_matrix" / "locks")
        (root / "env_matrix" / "releases.toml").unlink(missing_ok=True)
        (root / "env_matrix" / "libraries.toml").write_text(
            '[idna]\nstacks = ["native-toy"]\nmodels = ["toy"]\nfirst = "3.1"\n'
        )
        self.lock({"idna": "3.7"})
        conf = load_json(str(ROOT / "asv.conf.json"), js_comments=True)
        conf["version"] = 1
        conf["matrix"] = {"env": {"STEPLINE_STACK": ["native-toy"]}}
        conf["exclude"] = []
        (root / "asv.conf.json").write_text(json.dumps(conf))

    def lock(self, versions: dict[str, str]) -> None:
        """Write the reference lock of the one stack."""
        pins.write(self.root / "env_matrix" / "locks" / "native-toy.txt", "native-toy", versions)

    def track(self, library: str, first: str) -> pathlib.Path:
        """Make a package that is built here the one tracked library; returns the folder for its wheels."""
        wheels = self.root / "wheels"
        wheels.mkdir()
        self.variables["UV_FIND_LINKS"] = str(wheels)
        data = self.root / "env_matrix"
        changed = (data / "stacks.toml").read_text().replace("idna", library).replace("3.7", first)
        (data / "stacks.toml").write_text(changed)
        (data / "libraries.toml").write_text(
            f'[{library}]\nstacks = ["native-toy"]\nmodels = ["toy"]\nfirst = "{first}"\n'
        )
        self.lock({library: first})
        return wheels

    def release(self, library: str, locks: dict[str, dict[str, str]]) -> None:
        """Write the locks of a library's releases (version to pins), a month between them."""
        data = self.root / "env_matrix"
        dates = {}
        for number, (version, held) in enumerate(locks.items()):
            pins.write(data / "locks" / "native-toy" / f"{library}-{version}.txt", f"{library}=={version}", held)
            dates[Version(version)] = datetime.datetime(2024, 1 + number, 1, tzinfo=datetime.UTC)
        releases.write_uploads({library: dates}, data / "releases.toml")

    def stepline(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        """Run the command line of this copy."""
        return self.python("-m", "env_matrix", *arguments, **variables)

    def start(self, *arguments: str) -> subprocess.Popen:
        """Start the command line of this copy in a process group of its own, to be interrupted or killed."""
        return subprocess.Popen(
            [sys.executable, "-m", "env_matrix", *arguments],
            cwd=self.root,
            env={**os.environ, **self.variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def python(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**os.environ, **self.variables, **variables},
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


SLOW_FROM = "1.5"


def build_wheel(folder: pathlib.Path, name: str, version: str, source: str, needs: tuple[str, ...] = ()) -> None:
    """Build a wheel of a package that is one module with this source."""
    info = f"{name}-{version}.dist-info"
    required = "".join(f"Requires-Dist: {text}\n" for text in needs)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", source)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        names = [f"{name}/__init__.py", f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"]
        wheel.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in names))


def slow_wheel(folder: pathlib.Path, version: str) -> None:
    """Build a wheel of `stepslow`, whose step takes 10 ms, and 15 ms from version 1.5 on."""
    seconds = 0.015 if Version(version) >= Version(SLOW_FROM) else 0.010
    build_wheel(folder, "stepslow", version, f"SECONDS = {seconds}\n")


@pytest.fixture(scope="session")
def toy_history(tmp_path_factory):
    """A toy repository with nine releases of a package built here, slower by half from 1.5 on."""
    toy = Toy(tmp_path_factory.mktemp("history"))
    wheels = toy.track("stepslow", "1.0")
    dates: dict[str, dict[str, str]] = {}
    for minor in range(9):
        version = f"1.{minor}"
        slow_wheel(wheels, version)
        dates[version] = {"stepslow": version}
    toy.release("stepslow", dates)
    return toy


@pytest.fixture(scope="session")
def toy_pair(tmp_path_factory):
    """A toy repository with two releases of `front`; the lock moves two more packages, of which one is the slow one."""
    toy = Toy(tmp_path_factory.mktemp("pair"))
    wheels = toy.track("front", "1.0")
    build_wheel(wheels, "front", "1.0", "", ("stepslow", "helper"))
    build_wheel(wheels, "front", "2.0", "", ("stepslow>=1.5", "helper>=2"))
    for version in ("1.0", "1.5"):
        slow_wheel(wheels, version)
    for version in ("1.0", "2.0"):
        build_wheel(wheels, "helper", version, "")
    before = {"front": "1.0", "helper": "1.0", "stepslow": "1.0"}
    toy.release("front", {"1.0": before, "2.0": {"front": "2.0", "helper": "2.0", "stepslow": "1.5"}})
    toy.lock(before)
    return toy


@pytest.fixture
def toy(tmp_path):
    return Toy(tmp_path)


@pytest.fixture(scope="session")
def toy_run(tmp_path_factory):
    """A toy repository in which the whole matrix has been run once, and what that run said."""
    toy = Toy(tmp_path_factory.mktemp("toy"))
    return toy, toy.stepline("bench")
