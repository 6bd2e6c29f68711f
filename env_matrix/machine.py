"""What asv is told of this machine: hardware, nothing of the host."""

import datetime
import functools
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess

import psutil

from .stacks import ROOT


def javascript_time(moment: datetime.datetime) -> int:
    """A moment in milliseconds since 1970, as asv wants it."""
    return int(moment.timestamp() * 1000)


def accelerator() -> str | None:
    """Name of the first NVIDIA accelerator, or None."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    asked = [tool, "--query-gpu=name", "--format=csv,noheader", "--id=0"]
    said = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    return said.stdout.strip() or None


@functools.cache
def facts(results: pathlib.Path = ROOT / "results") -> dict[str, str]:
    """asv's machine fields. The kernel's version is left out: asv would start a new series at each update.

    The name is one of hardware. Where results of unlike hardware have it already, the name says more.
    """
    cores = str(len(os.sched_getaffinity(0)))
    chip = accelerator()
    hardware = {
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": " + ".join(filter(None, [processor(), chip])),
        "num_cpu": cores,
        "ram": f"{round(psutil.virtual_memory().total / 2**30)} GB",
    }
    name = slug(chip) if chip else f"cpu-{cores}core"
    if unlike(results / name / "machine.json", hardware):
        name = slug(f"{name} {hardware['cpu']} {hardware['ram']}")
    return {"machine": os.environ.get("STEPLINE_MACHINE") or name, **hardware}


def unlike(known: pathlib.Path, hardware: dict[str, str]) -> bool:
    """Whether a machine file is there and is not of this hardware."""
    try:
        recorded = json.loads(known.read_text())
    except (OSError, ValueError):
        return False
    return any(recorded.get(field) != value for field, value in hardware.items())


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def processor() -> str:
    """The processor's model name."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
