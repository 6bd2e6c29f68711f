"""What asv is told of this machine: hardware, nothing of the host."""

import datetime
import os
import platform
import re
import shutil
import subprocess

import psutil


def javascript_time(day: datetime.date) -> int:
    """Midnight UTC of a day in milliseconds since 1970, as asv wants it."""
    return int(datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC).timestamp() * 1000)


def accelerator() -> str | None:
    """Name of the first NVIDIA accelerator, or None."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    asked = [tool, "--query-gpu=name", "--format=csv,noheader", "--id=0"]
    said = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    return said.stdout.strip() or None


def facts() -> dict[str, str]:
    """asv's machine fields. The kernel's version is left out: asv would start a new series at each update."""
    cores = str(len(os.sched_getaffinity(0)))
    chip = accelerator()
    name = os.environ.get("STEPLINE_MACHINE") or (slug(chip) if chip else f"cpu-{cores}core")
    return {
        "machine": name,
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": " + ".join(filter(None, [processor(), chip])),
        "num_cpu": cores,
        "ram": f"{round(psutil.virtual_memory().total / 2**30)} GB",
    }


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
