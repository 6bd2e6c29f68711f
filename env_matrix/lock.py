"""Make a stack's lock: the full set of exact pins, resolved as of a day."""

import datetime
import os
import pathlib
import re
import tempfile

from packaging.requirements import Requirement

from . import uv
from .errors import UserError
from .stacks import Stack

PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9][A-Za-z0-9.!_+-]*)$")


def normal(name: str) -> str:
    """A package name as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse(text: str, origin: str) -> dict[str, str]:
    """Read a lock: package name to version.

    Raises UserError when a line is not an exact pin or a package is named twice.
    """
    pins: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        match = PIN.match(line)
        if match is None:
            raise UserError(f"{origin} line {number}: {line!r} is not name==version; run stepline lock to make it anew")
        name = normal(match["name"])
        if name in pins:
            raise UserError(f"{origin} line {number}: {name} is pinned twice; run stepline lock to make it anew")
        pins[name] = match["version"]
    return pins


def read(path: pathlib.Path) -> dict[str, str]:
    """Read a lock file.

    Raises UserError when it is missing or malformed.
    """
    try:
        return parse(path.read_text(), path.name)
    except OSError as error:
        raise UserError(f"there is no lock {path.name}: run stepline lock to make it") from error


def resolve(stack: Stack) -> dict[str, str]:
    """Resolve a stack's requirements as of the end of its day.

    Raises UserError when uv finds no solution or no index.
    """
    until = (stack.as_of + datetime.timedelta(days=1)).isoformat()
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "requirements.in"
        source.write_text("\n".join(stack.requires) + "\n")
        command = ["pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python-version", stack.python]
        command += ["--exclude-newer", until, str(source), *uv.arguments(uv.pip_settings())]
        said = uv.run(command)
    if said.returncode:
        raise UserError(f"no lock for {stack.name}: {uv.explain(said.stderr)}")
    pins = {}
    for name, version in parse(said.stdout, stack.name).items():
        if not name.startswith(uv.ACCELERATOR_PREFIXES):
            pins[name] = version.partition("+")[0]  # a local label comes from the user's own wheels
    return pins


def write(stack: Stack, pins: dict[str, str]) -> None:
    """Write a stack's lock beside the old one and put it in its place at once."""
    lines = [f"# {stack.name}, resolved as of {stack.as_of}. Made by stepline lock; do not edit.\n"]
    lines += [f"{name}=={version}\n" for name, version in sorted(pins.items())]
    fresh = stack.lock.with_suffix(".new")
    fresh.write_text("".join(lines))
    os.replace(fresh, stack.lock)


def check(stack: Stack, pins: dict[str, str]) -> None:
    """Raise UserError unless every direct requirement of the stack is met by its lock."""
    for text in stack.requires:
        requirement = Requirement(text)
        version = pins.get(normal(requirement.name))
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            raise UserError(
                f"the lock of {stack.name} has {requirement.name} {version or 'nowhere'}, "
                f"but stacks.toml asks for {text}: run stepline lock --stack {stack.name}"
            )
