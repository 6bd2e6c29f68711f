"""Releases of the tracked libraries: what asv takes for commits.

A release's id is a digest of its name and of every lock it has, so a figure filed under an id was taken with exactly
those packages. The reference release set is a release, too: of everything at once.
"""

import dataclasses
import datetime
import difflib
import functools
import hashlib
import json
import os
import pathlib
import tomllib

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from . import pins as lockfiles
from . import stacks
from .errors import UserError

REFERENCE = "reference"
SET = "set"  # the library of points at which several packages move at once
LOCAL = stacks.HERE / "local"  # points made on this machine, a folder each; local.py makes them
SHORT = 8  # characters of an id by which asv names result files


@dataclasses.dataclass(frozen=True)
class Library:
    """A tracked library, and which of its releases are kept. See libraries.toml for the fields."""

    name: str
    stacks: tuple[str, ...]
    models: tuple[str, ...]
    first: Version
    before: Version | None = None
    all_patches_of: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    extra: str = ""
    fresh: tuple[str, ...] = ()
    as_of: dict[str, datetime.date] = dataclasses.field(default_factory=dict)
    needs: dict[Version, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def needed_by(self, version: Version) -> tuple[str, ...]:
        """Requirements that one of its releases has beside what it asks for itself."""
        return tuple(text for since, texts in self.needs.items() if since <= version for text in texts)

    def keeps(self, versions: list[Version]) -> list[Version]:
        """Those of all published versions that the history keeps, oldest first."""
        stable = [version for version in versions if not version.is_prerelease and version >= self.first]
        newer = sorted(version for version in stable if self.before is None or version < self.before)
        last = {version.release[:2]: version for version in newer}
        also = {Version(text) for text in self.also}
        minors = {tuple(Version(text).release[:2]) for text in self.all_patches_of}
        return [v for v in newer if v == last[v.release[:2]] or v.release[:2] in minors or v in also]


@dataclasses.dataclass(frozen=True, eq=False)  # one object a release: compared and hashed as such
class Release:
    """One version of one library, the reference release set, or a point made on this machine.

    Attributes:
        refused: stack to the reason why it has no lock.
        moves: the tracked libraries whose tasks it concerns, where that is not its own library.
        source: git+URL@COMMIT where it is a git revision.
        asked: how that revision was named when it was added.
    """

    library: str
    version: str
    uploaded: datetime.datetime
    id: str
    locks: dict[str, pathlib.Path]
    refused: dict[str, str]
    moves: tuple[str, ...] = ()
    source: str = ""
    asked: str = ""

    @property
    def name(self) -> str:
        return self.version if self.library == SET else f"{self.library}=={self.version}"

    @property
    def order(self) -> tuple[Version, datetime.datetime]:
        """Its place along its branch; git revisions that call themselves by one version follow by date."""
        return Version(Version(self.version).public), self.uploaded


def libraries(path: pathlib.Path = stacks.HERE / "libraries.toml") -> dict[str, Library]:
    """The tracked libraries.

    Raises UserError when the file is not what it has to be.
    """
    try:
        return {
            name: Library(
                name=name,
                stacks=tuple(entry["stacks"]),
                models=tuple(entry["models"]),
                first=Version(entry["first"]),
                before=Version(entry["before"]) if "before" in entry else None,
                all_patches_of=tuple(entry.get("all_patches_of", ())),
                also=tuple(entry.get("also", ())),
                extra=entry.get("extra", ""),
                fresh=tuple(entry.get("fresh", ())),
                as_of=dict(entry.get("as_of", {})),
                needs={Version(since): tuple(texts) for since, texts in entry.get("needs", {}).items()},
            )
            for name, entry in tomllib.loads(path.read_text()).items()
        }
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError, InvalidVersion) as error:
        raise UserError(f"{path.name} cannot be read ({error}): restore it or mend that entry") from error


def uploads(path: pathlib.Path = stacks.HERE / "releases.toml") -> dict[str, dict[Version, datetime.datetime]]:
    """When each kept release was uploaded: library to version to moment (UTC), oldest version first.

    Raises UserError when a version is there twice, or a date is none or lies in the future.
    """
    try:
        data = tomllib.loads(path.read_text()) if path.exists() else {}
        now = datetime.datetime.now(datetime.UTC)
        found: dict[str, dict[Version, datetime.datetime]] = {}
        for library, dates in data.items():
            for text, moment in dates.items():
                version = Version(text)
                if version in found.setdefault(library, {}):
                    raise UserError(f"{path.name} has {library} {version} twice: remove one of them")
                if not isinstance(moment, datetime.datetime) or moment.tzinfo is None or moment > now:
                    raise UserError(f"{path.name}: {library} {version} has an impossible date, {moment}: mend it")
                found[library][version] = moment
        return {library: dict(sorted(dates.items())) for library, dates in found.items()}
    except (OSError, tomllib.TOMLDecodeError, InvalidVersion, AttributeError) as error:
        raise UserError(f"{path.name} cannot be read ({error}): restore it or mend that entry") from error


def write_uploads(
    found: dict[str, dict[Version, datetime.datetime]], path: pathlib.Path = stacks.HERE / "releases.toml"
):
    """Write releases.toml beside the old one and put it in its place at once."""
    lines = ["# When each kept release was uploaded to the index. Made by stepline sync and stepline add.\n"]
    for library, dates in sorted(found.items()):
        lines.append(f"\n[{library}]\n")
        lines += [f'"{version}" = {moment:%Y-%m-%dT%H:%M:%SZ}\n' for version, moment in sorted(dates.items())]
    fresh = path.with_suffix(".new")
    fresh.write_text("".join(lines))
    os.replace(fresh, path)


def identify(name: str, pins: dict[str, dict[str, str]]) -> str:
    """A release's id: 40 hex digits over its name and its locks (stack to package to version)."""
    return hashlib.sha256(json.dumps([name, pins], sort_keys=True).encode()).hexdigest()[:40]


def local_points(folder: pathlib.Path = LOCAL) -> list[Release]:
    """The points made on this machine.

    Raises UserError when one of them is not what local.py writes.
    """
    found = []
    for path in sorted(folder.glob("*/point.json")):
        try:
            said = json.loads(path.read_text())
            locks = {lock.stem: lock for lock in sorted(path.parent.glob("*.txt"))}
            pins = {stack: lockfiles.read(lock) for stack, lock in locks.items()}
            uploaded = datetime.datetime.fromisoformat(said["uploaded"])
            point = Release(said["library"], said["version"], uploaded, "", locks, said["refused"])
            more = {"moves": tuple(said["moves"]), "source": said["source"], "asked": said["asked"]}
            found.append(dataclasses.replace(point, id=identify(point.name, pins), **more))
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path.parent} cannot be read ({error}): delete that folder and make it anew") from error
    return found


class History:
    """Every release there is, by name, by id, and along its library's branch."""

    def __init__(self, releases: list[Release]):
        self.releases = releases  # a library's block after another, oldest first in each
        self.by_id = {release.id: release for release in releases}
        self.by_name = {release.name: release for release in releases}
        short: dict[str, str] = {}
        for release in releases:
            other = short.setdefault(release.id[:SHORT], release.name)
            if other != release.name:
                raise UserError(
                    f"{other} and {release.name} have ids that begin alike ({release.id[:SHORT]}), and asv would file "
                    f"both under one name: remove one from releases.toml"
                )

    @classmethod
    def load(cls) -> "History":
        """Read the data files and the locks.

        Raises UserError when one of them is missing or malformed.
        """
        every = stacks.load()
        dated = uploads()
        releases: list[Release] = []
        local = local_points()
        for library, kept in libraries().items():
            branch = [point for point in local if point.library == library]
            for version, uploaded in dated.get(library, {}).items():
                locks, refused = {}, {}
                for stack in every.values():
                    if stack.name in kept.stacks:
                        path = lockfiles.place(stack, f"{library}=={version}")
                        if path.exists():
                            locks[stack.name] = path
                        elif path.with_suffix(".failed").exists():
                            refused[stack.name] = path.with_suffix(".failed").read_text().strip()
                name = f"{library}=={version}"
                pins = {stack: lockfiles.read(path) for stack, path in locks.items()}
                branch.append(Release(library, str(version), uploaded, identify(name, pins), locks, refused))
            releases += sorted(branch, key=lambda release: release.order)
        releases += [point for point in local if point.library == SET]
        day = stacks.reference_date()
        pins = {stack.name: lockfiles.read(stack.lock) for stack in every.values()}
        locks = {stack.name: stack.lock for stack in every.values()}
        moment = datetime.datetime.combine(day, datetime.time(), datetime.UTC)
        name = f"{REFERENCE}=={day}"
        releases.append(Release(REFERENCE, str(day), moment, identify(name, pins), locks, {}))
        return cls(releases)

    @functools.cached_property
    def branches(self) -> dict[str, list[Release]]:
        """Library to its releases, oldest first."""
        found: dict[str, list[Release]] = {}
        for release in self.releases:
            found.setdefault(release.library, []).append(release)
        return found

    def branch(self, text: str) -> list[Release]:
        """The releases of a library, oldest first.

        Raises UserError, which names the nearest, when no such library is tracked.
        """
        name = canonicalize_name(text)
        if name not in self.branches:
            near = difflib.get_close_matches(name, self.branches, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise UserError(f"unknown library {text!r}: {hint}tracked are {', '.join(self.branches)}")
        return self.branches[name]

    def one(self, text: str) -> Release:
        """The release that a name, an id or its beginning, or a library (its newest) stands for.

        Raises UserError, which names the nearest, when there is none.
        """
        text = text.strip()
        if text in ("HEAD", REFERENCE):
            return self.branches[REFERENCE][-1]
        if text in self.by_name:
            return self.by_name[text]
        if "git+" in text:
            return self.revision(text)
        if len(text) >= 7 and all(character in "0123456789abcdef" for character in text):
            starting = [release for release in self.releases if release.id.startswith(text)]
            if len(starting) == 1:
                return starting[0]
        library, equals, version = text.partition("==")
        branch = self.branch(library)
        if not equals:
            return branch[-1]
        try:
            wanted = Version(version)
        except InvalidVersion as error:
            raise UserError(f"{version!r} is not a version: write {branch[0].library}==1.2.3") from error
        for release in branch:
            if release.library != REFERENCE and Version(release.version) == wanted:
                return release
        nearest = min(branch, key=lambda release: distance(release.version, wanted))
        raise UserError(
            f"{branch[0].library} {version} is not in env_matrix: the nearest is {nearest.name}; "
            f"to add it say stepline add {branch[0].library}=={version}"
        )

    def revision(self, text: str) -> Release:
        """The point that a git revision, LIBRARY @ git+URL@REV, stands for.

        Raises UserError when it was not added.
        """
        wanted = canonical(text)
        fitting = [
            release
            for release in self.releases
            if release.source and wanted in (release.asked, f"{release.library} @ {release.source}")
        ]
        if fitting:  # a branch's name may have stood for several commits
            return max(fitting, key=lambda release: release.uploaded)
        raise UserError(f'{wanted} is not in env_matrix: to add it say stepline add "{wanted}"')

    def range(self, text: str) -> list[Release]:
        """The releases that a specifier, A..B (A left out, B taken in), or one name stands for, oldest first.

        Raises UserError when it does not parse, is empty or upside down.
        """
        text = text.strip()
        if "git+" in text:
            return [self.revision(text)]
        if ".." in text:
            begin, _, end = (part.strip() for part in text.partition(".."))
            first, last = self.one(begin), self.one(end)
            if first.library != last.library:
                raise UserError(f"{text!r} goes from one library to another: name two releases of one")
            branch = self.branches[first.library]
            if branch.index(first) > branch.index(last):
                raise UserError(f"{text!r} is upside down: write {last.name}..{first.name}")
            return branch[branch.index(first) + 1 : branch.index(last) + 1]
        if not any(sign in text for sign in "<>!~,") and not text.endswith("*"):
            return [self.one(text)]
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise UserError(f"{text!r} is not a range: write one as pip does, transformers>=4.38,<4.40") from error
        branch = self.branch(requirement.name)
        wanted = requirement.specifier
        early = bool(wanted.prereleases)  # pre-releases count only where the range names one
        chosen = [release for release in branch if wanted.contains(release.version, prereleases=early)]
        if not chosen:
            raise UserError(
                f"no release in env_matrix is in {text!r}: {branch[0].library} goes from "
                f"{branch[0].version} to {branch[-1].version}"
            )
        return chosen


def canonical(text: str) -> str:
    """A requirement on a git revision in one spelling: LIBRARY @ git+URL@REV.

    Raises UserError when it is none.
    """
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise UserError(f"{text!r} is no git revision: write LIBRARY @ git+URL@REV") from error
    if not (requirement.url or "").startswith("git+"):
        raise UserError(f"{text!r} is no git revision: write LIBRARY @ git+URL@REV")
    return f"{canonicalize_name(requirement.name)} @ {requirement.url}"


def distance(version: str, wanted: Version) -> tuple[int, ...]:
    """How far apart two versions are, most significant part first."""
    parts = Version(version).release
    width = max(len(parts), len(wanted.release))
    pairs = zip(parts + (0,) * width, wanted.release + (0,) * width, strict=False)
    return tuple(abs(a - b) for a, b in pairs)[:width]
