"""Call uv with what the user's pip is configured with, so that local wheels and mirrors are found.

Standard library only: the installer runs it with the interpreter of a stack's environment, too.
"""

import ast
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

from .errors import UserError

# What torch and jax bring for one kind of accelerator: the machine's choice, never the lock's.
ACCELERATOR_PREFIXES = ("nvidia-", "cuda-", "triton", "jax-cuda")


SECTIONS = ["global", "install", ":env:"]  # of pip's configuration, the later ones win


REASON = 500  # characters of what uv says that are kept


def pip_settings() -> dict[str, list[str]]:
    """What pip is configured with, from its files and its environment variables: option to values.

    An environment variable comes before a file, as for pip itself.
    """
    said = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    found: dict[str, tuple[int, list[str]]] = {}
    for line in said.stdout.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.rpartition(".")
        rank = SECTIONS.index(section) if section in SECTIONS else -1
        if rank >= 0 and rank >= found.get(option, (0, []))[0]:
            found[option] = (rank, str(ast.literal_eval(value)).split())
    return {option: values for option, (_, values) in found.items()}


def arguments(settings: dict[str, list[str]], dated: bool = False) -> list[str]:
    """uv's options for pip's settings; uv's own environment variables, where set, go before them.

    With `dated`, for a resolution as of a day, extra indexes are left out: a mirror that knows no upload times hides
    releases that the main index has.
    """
    options = []
    if "UV_FIND_LINKS" not in os.environ:
        for place in settings.get("find-links", []):
            options += ["--find-links", place]
    if not any(name in os.environ for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL")):
        for place in settings.get("index-url", []):
            options += ["--default-index", place]
    extra = [] if dated else settings.get("extra-index-url", [])
    if extra and not any(name in os.environ for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL")):
        for place in extra:
            options += ["--index", place]
        options += ["--index-strategy", "unsafe-best-match"]  # pip's rule: the best version wins, not the first index
    if "find-links" not in settings and "UV_FIND_LINKS" not in os.environ and "UV_TORCH_BACKEND" not in os.environ:
        options += ["--torch-backend", "auto"]  # CPU builds where there is no accelerator
    return options


def run(command: list[str], **kwargs) -> subprocess.CompletedProcess:
    """Run uv and return its result, output captured.

    Raises UserError when there is no uv.
    """
    uv = shutil.which("uv") or shutil.which("uv", path=str(pathlib.Path(sys.executable).parent))
    if uv is None:
        raise UserError("uv was not found: run make setup, or pip install uv")
    return subprocess.run([uv, *command], capture_output=True, text=True, check=False, **kwargs)


def explain(stderr: str) -> str:
    """One sentence for what uv said on stderr when it failed."""
    text = " ".join(line.strip(" ×╰─▶│├") for line in stderr.splitlines() if line.strip())
    lowered = text.lower()
    if "no space left" in lowered or "os error 28" in lowered:
        return "the disk is full: free some space (uv cache prune helps) and run the same command again"
    offline = ("dns error", "error sending request", "connection refused", "failed to fetch", "network was disabled")
    if any(sign in lowered for sign in offline):
        return "the package index did not answer and uv's cache does not have it: check the network and run again"
    if "no solution found" in lowered:
        why = text[max(text.find("Because"), 0) :].partition(" hint:")[0]
        return f"the requirements have no solution: {textwrap.shorten(why, REASON, placeholder=' ...')}"
    return textwrap.shorten(text, REASON, placeholder=" ...") or "uv failed without saying why"
