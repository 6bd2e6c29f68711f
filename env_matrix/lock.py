"""Make locks: the full set of exact pins that a stack has at a release, resolved with uv as of a day."""

import dataclasses
import datetime
import functools
import pathlib
import tempfile
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from . import index, uv
from .errors import UserError
from .pins import commit, lines, parse
from .stacks import Stack

if TYPE_CHECKING:
    from .releases import Library


@dataclasses.dataclass(frozen=True)
class Question:
    """What a lock is resolved from.

    Attributes:
        requirements: in pip's syntax.
        until: uploads after this moment, where there is one, do not exist for the resolver.
        newer: packages that may be newer, up to `newest`: what is held, and what it needs.
        start: pins to keep where the requirements allow.
        overrides: requirements in place of what packages say they need.
    """

    python: str
    requirements: tuple[str, ...]
    until: datetime.datetime | None = None
    newer: tuple[str, ...] = ()
    newest: datetime.datetime | None = None
    start: dict[str, str] | None = None
    overrides: tuple[str, ...] = ()


def resolve(question: Question) -> dict[str, str]:
    """Resolve with uv.

    Raises UserError when it finds no solution or no index.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, output = pathlib.Path(folder) / "requirements.in", pathlib.Path(folder) / "lock.txt"
        source.write_text("\n".join(question.requirements) + "\n")
        if question.start:
            output.write_text(lines(question.start))  # uv keeps what an existing output file pins
        command = ["pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python-version", question.python]
        command += ["--prerelease", "explicit"]  # only what is named may be one
        command += [str(source), "--output-file", str(output)]
        if question.until:
            command += ["--exclude-newer", question.until.isoformat()]
        if question.overrides:
            (pathlib.Path(folder) / "overrides.txt").write_text("\n".join(question.overrides) + "\n")
            command += ["--override", f"{folder}/overrides.txt"]
        if question.newest:
            for package in question.newer:
                command += ["--exclude-newer-package", f"{package}={question.newest.isoformat()}"]
        said = uv.run([*command, *uv.arguments(uv.pip_settings(), dated=bool(question.until))])
        if said.returncode:
            raise UserError(uv.explain(said.stderr))
        pins = parse(output.read_text(), "uv's answer")
    return {
        # A local label comes from the user's own wheels.
        name: pin if commit(pin) else pin.partition("+")[0]
        for name, pin in pins.items()
        if not name.startswith(uv.ACCELERATOR_PREFIXES)
    }


def end_of(day: datetime.date) -> datetime.datetime:
    """The last moment of a day, UTC, as the resolver's limit."""
    return datetime.datetime.combine(day + datetime.timedelta(days=1), datetime.time(), datetime.UTC)


def resolve_reference(stack: Stack) -> dict[str, str]:
    """The lock of a stack's own requirements, as of its day.

    Raises UserError when there is none.
    """
    try:
        return resolve(Question(stack.python, stack.requires, end_of(stack.as_of)))
    except UserError as error:
        raise UserError(f"no lock for {stack.name}: {error}") from error


@dataclasses.dataclass(frozen=True)
class Move:
    """A library that goes to one version, or to a git commit (git+URL@COMMIT) that calls itself by that version."""

    library: "Library"
    version: str
    uploaded: datetime.datetime
    source: str = ""

    @property
    def requirement(self) -> str:
        extra = f"[{self.library.extra}]" if self.library.extra else ""
        return f"{self.library.name}{extra}" + (f" @ {self.source}" if self.source else f"=={self.version}")

    @property
    def until(self) -> datetime.datetime:
        """As of when its lock is resolved: the day after its upload, or as libraries.toml says."""
        return end_of(self.library.as_of.get(self.version, self.uploaded.date()))


def resolve_release(stack: Stack, moves: list[Move], start: dict[str, str] | None) -> dict[str, str]:
    """The lock of a stack with one library, or several, moved; as of the latest of their days.

    The stack's framework is held at its reference pin, and free to be of its time only where nothing else fits.
    Raises UserError with the reason when there is no lock.
    """
    others: dict[str, str] = {canonicalize_name(Requirement(text).name): text for text in stack.requires}
    for move in moves:
        others.pop(move.library.name, None)
    until = max(move.until for move in moves)
    # What had no release yet at that moment, a stack of that time did without.
    loose = tuple(name if "==" in text else text for name, text in others.items() if first_upload(name) < until)
    held = tuple(name for name in stack.held if name in others)
    needed = tuple(text for move in moves for text in move.library.needed_by(Version(move.version)))
    asked = (*(move.requirement for move in moves), *loose, *stack.caps, *needed)
    # An override would take the place of the release, too.
    moved = {move.library.name: move.requirement for move in moves}
    overrides = tuple(moved.get(Requirement(text).name, text) for text in stack.overrides)
    firmly = Question(
        stack.python,
        (*asked, *(others[name] for name in held)),
        until,
        newer=(*held, *stack.held_needs) if held else (),
        newest=end_of(stack.as_of),
        start=start,
        overrides=overrides,
    )
    try:
        return resolve(firmly)
    except UserError:
        if not held:
            raise
    return resolve(Question(stack.python, asked, until, start=start, overrides=overrides))


@functools.cache
def first_upload(name: str) -> datetime.datetime:
    """When the index got its first release of a package; asked once a process."""
    return min(index.published(name).values())


def check(stack: Stack, pins: dict[str, str]) -> None:
    """Raise UserError unless every direct requirement of the stack is met by its reference lock."""
    for text in stack.requires:
        requirement = Requirement(text)
        version = pins.get(canonicalize_name(requirement.name))
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            raise UserError(
                f"the lock of {stack.name} has {requirement.name} {version or 'nowhere'}, "
                f"but stacks.toml asks for {text}: run stepline lock --stack {stack.name}"
            )
