"""What this machine can run, and what is missing."""

import dataclasses
import pathlib
import shutil

import psutil

from . import machine, uv
from .errors import UserError
from .stacks import Stack

ENVIRONMENTS_GB = 15  # all of them, with uv's cache on the same disk


@dataclasses.dataclass(frozen=True)
class Check:
    """One thing that was looked at; `advice` says what to do where it is not well."""

    what: str
    found: str
    advice: str = ""


def examine(root: pathlib.Path, stacks: list[Stack]) -> list[Check]:
    """Look at what measuring needs."""
    facts = machine.facts()
    free = shutil.disk_usage(root).free / 2**30
    checks = [
        Check("machine", f"{facts['machine']}: {facts['cpu']}, {facts['num_cpu']} cores, {facts['ram']}"),
        Check(
            "disk",
            f"{free:.0f} GB free",
            "" if free > ENVIRONMENTS_GB else f"the environments want about {ENVIRONMENTS_GB} GB: free some",
        ),
    ]
    for version in dict.fromkeys(stack.python for stack in stacks):
        path = shutil.which(f"python{version}")
        checks.append(Check(f"Python {version}", path or "none", "" if path else f"put python{version} on PATH"))
    try:
        checks.append(Check("uv", uv.run(["--version"]).stdout.strip()))
    except UserError as error:
        checks.append(Check("uv", "none", str(error)))
    compiler = next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), None)
    advice = "" if compiler else "install g++: without it the compiled column of native-torch fails on a CPU"
    checks.append(Check("C++ compiler", compiler or "none", advice))
    chip = machine.accelerator()
    checks.append(Check("accelerator", chip or "none, so only the tiny scale runs"))
    busy = psutil.cpu_percent(interval=1)
    advice = "" if busy < 20 else "something else is running: figures will be noisy until it ends"
    checks.append(Check("load", f"{busy:.0f}% of the processors busy", advice))
    return checks
