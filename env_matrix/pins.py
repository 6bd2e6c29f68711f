"""Lock files: exact pins, sealed with a digest.

A pin is a version, or git+URL@COMMIT where a git revision of a library is a point of its history.

Needs the standard library and packaging only: the installer reads them inside a stack's environment.
"""

import hashlib
import os
import pathlib
import re

from packaging.utils import canonicalize_name

from .errors import UserError
from .stacks import LOCKS, Stack

PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9][A-Za-z0-9.!_+-]*)$")
GIT = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*) @ (?P<version>git\+\S+@[0-9a-f]{40})$")
SEAL = re.compile(r"^# sha256 (?P<digest>[0-9a-f]{64})$", re.MULTILINE)


def parse(text: str, origin: str) -> dict[str, str]:
    """Read pins: package name to version.

    Raises UserError when a line is not an exact pin or a package is named twice.
    """
    pins: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        match = PIN.match(line) or GIT.match(line)
        if match is None:
            raise UserError(f"{origin} line {number}: {line!r} is not name==version; run stepline lock to make it anew")
        name = canonicalize_name(match["name"])
        if name in pins:
            raise UserError(f"{origin} line {number}: {name} is pinned twice; run stepline lock to make it anew")
        pins[name] = match["version"]
    return pins


def read(path: pathlib.Path) -> dict[str, str]:
    """Read a lock file.

    Raises UserError when it is missing, malformed, or was edited after it was made.
    """
    try:
        text = path.read_text()
    except OSError as error:
        raise UserError(f"there is no lock {path.name}: run stepline lock to make it") from error
    pins = parse(text, path.name)
    sealed = SEAL.search(text)
    if sealed is None or sealed["digest"] != digest(pins):
        raise UserError(f"{path.name} was edited by hand: restore it with git, or run stepline lock to make it anew")
    return pins


def lines(pins: dict[str, str]) -> str:
    """Pins as requirements, one a line."""
    return "".join(f"{name}{' @ ' if commit(pin) else '=='}{pin}\n" for name, pin in sorted(pins.items()))


def commit(pin: str) -> str:
    """The git commit of a pin; empty where it is a version."""
    return pin.rpartition("@")[2] if pin.startswith("git+") else ""


def digest(pins: dict[str, str]) -> str:
    return hashlib.sha256(lines(pins).encode()).hexdigest()


def place(stack: Stack, release: str) -> pathlib.Path:
    """Where a stack's lock at a release (library==version) lies."""
    return LOCKS / stack.name / f"{release.replace('==', '-')}.txt"


def write(path: pathlib.Path, what: str, pins: dict[str, str]) -> None:
    """Write a lock beside the old one and put it in its place at once; `what` says what it is the lock of."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(f"# {what}. Made by stepline; do not edit.\n# sha256 {digest(pins)}\n{lines(pins)}")
    os.replace(fresh, path)
    path.with_suffix(".failed").unlink(missing_ok=True)


def refuse(path: pathlib.Path, reason: str) -> None:
    """Keep the reason why there is no lock, beside where it would be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".failed").write_text(f"{reason}\n")


def difference(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What changes between two locks, one phrase a package: tokenizers 0.15.2 -> 0.19.1."""
    return [
        f"{name} {before.get(name, '(none)')} -> {after.get(name, '(none)')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
