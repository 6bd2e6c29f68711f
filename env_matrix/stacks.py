"""The stacks and the reference release set, as data."""

import dataclasses
import datetime
import difflib
import pathlib
import tomllib

from .errors import UserError

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent
LOCKS = HERE / "locks"
SIDE = "STEPLINE_SIDE"  # environment variable: which of two sets of environments asv is to use


@dataclasses.dataclass(frozen=True)
class Stack:
    """One column family of the table: an environment on disk, run in one or more modes.

    Attributes:
        as_of: the day whose newest releases its reference lock was resolved to.
        modes: the modes of one environment (eager, compiled), or (None,) where there is only one.
        held: packages that stay at their reference pin while another library moves.
        held_needs: what those need, and may therefore be newer than the release.
        caps: requirements that hold whatever moves.
        overrides: requirements in place of what packages say they need.
    """

    name: str
    python: str
    backend: str
    requires: tuple[str, ...]
    as_of: datetime.date
    modes: tuple[str | None, ...]
    held: tuple[str, ...] = ()
    held_needs: tuple[str, ...] = ()
    caps: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()

    @property
    def lock(self) -> pathlib.Path:
        """Its lock at the reference release set."""
        return LOCKS / f"{self.name}.txt"

    def environment(self, mode: str | None) -> str:
        """The name that asv gives the environment of this stack in one mode (asv run -E NAME)."""
        chosen = f"-STEPLINE_MODE{mode}" if mode else ""
        return f"virtualenv-py{self.python}{chosen}-STEPLINE_STACK{self.name}"


def load(path: pathlib.Path = HERE / "stacks.toml") -> dict[str, Stack]:
    """Read the stacks, in the order of the file.

    Raises UserError when the file is not what it has to be.
    """
    try:
        data = tomllib.loads(path.read_text())
        reference = data["reference"]["as_of"]
        return {
            name: Stack(
                name=name,
                python=entry["python"],
                backend=entry["backend"],
                requires=tuple(entry["requires"]),
                as_of=entry.get("as_of", reference),
                modes=tuple(entry.get("modes", [None])),
                held=tuple(entry.get("held", ())),
                held_needs=tuple(entry.get("held_needs", ())),
                caps=tuple(entry.get("caps", ())),
                overrides=tuple(entry.get("overrides", ())),
            )
            for name, entry in data["stacks"].items()
        }
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path.name} cannot be read ({error}): restore it or mend that entry") from error


def reference_date(path: pathlib.Path = HERE / "stacks.toml") -> datetime.date:
    return tomllib.loads(path.read_text())["reference"]["as_of"]


def harness(path: pathlib.Path = HERE / "stacks.toml") -> list[str]:
    """What asv itself puts into every environment, pinned."""
    return tomllib.loads(path.read_text())["harness"]["packages"]


def choose(names: list[str], known: list[str], what: str) -> list[str]:
    """The named ones of `known`, all of them when none is named.

    Raises UserError that names the nearest when one is unknown.
    """
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.3)
            hint = f"did you mean {near[0]}? " if near else ""
            raise UserError(f"unknown {what} {name!r}: {hint}known are {', '.join(known)}")
    return [name for name in known if not names or name in names]
