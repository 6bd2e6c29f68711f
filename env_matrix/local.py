"""Points made on this machine, beside the committed releases: git revisions, and sets in which several packages move.

Each is a folder of its own in env_matrix/local/, which git ignores, with its locks and a point.json.
"""

import datetime
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

from packaging.version import Version

from . import lock, pins, releases, stacks, sync, uv
from .errors import UserError
from .releases import SET, History, Release

SHA = 8  # characters of a commit that a point's name has


def keep(point: dict, locks: dict[str, dict[str, str]]) -> None:
    """Write a point's folder to the side, and put it in its place at once."""
    name = point["version"] if point["library"] == SET else f"{point['library']}=={point['version']}"
    folder = releases.LOCAL / hashlib.sha256(name.encode()).hexdigest()[:16]
    aside = folder.with_suffix(".new")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    for stack, found in locks.items():
        pins.write(aside / f"{stack}.txt", f"{name} on {stack}", found)
    (aside / "point.json").write_text(json.dumps(point, indent=1) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(aside, folder)


def add_revision(text: str) -> Iterator[str]:
    """Lock a git revision, LIBRARY @ git+URL@REV, on every stack that has the library; yields a line a stack.

    Raises UserError when git or the package's build cannot give its commit, date and version.
    """
    asked = releases.canonical(text)
    name, _, place = asked.partition(" @ ")
    library = sync.tracked(name)
    url, rev = split(place)
    commit, committed = look_up(url, rev)
    source = f"git+{url}@{commit}"
    version = f"{own_version(name, source).public}+g{commit[:SHA]}"
    locks: dict[str, dict[str, str]] = {}
    refused: dict[str, str] = {}
    move = lock.Move(library, version, committed, source)
    for stack in stacks.load().values():
        if stack.name not in library.stacks:
            continue
        start = sync.predecessor(stack, name, Version(version))
        try:
            found = lock.resolve_release(stack, [move], start)
        except UserError as error:
            refused[stack.name] = str(error)
            yield f"{name}=={version} on {stack.name}: no lock: {error}"
            continue
        locks[stack.name] = found
        changed = f"; {', '.join(pins.difference(start, found))}" if start else ""
        yield f"{name}=={version} on {stack.name}: {len(found)} packages{changed}"
    if not locks:
        raise UserError(f"{asked} has no lock on any stack, and was not added")
    keep(
        {
            "library": name,
            "version": version,
            "uploaded": committed.isoformat(),
            "moves": [],
            "source": source,
            "asked": asked,
            "refused": refused,
        },
        locks,
    )


def split(place: str) -> tuple[str, str]:
    """URL and revision of git+URL@REV; without a revision, HEAD."""
    url = place.removeprefix("git+")
    head, _, rev = url.rpartition("@")
    # The @ of git+ssh://git@host/path belongs to the address.
    return (head, rev) if "/" in head.partition("://")[2] else (url, "HEAD")


def look_up(url: str, rev: str) -> tuple[str, datetime.datetime]:
    """The commit that a revision of a git repository is, and when it was committed.

    Raises UserError when git cannot tell.
    """
    if url.startswith("-") or rev.startswith("-"):
        raise UserError(f"{url}@{rev} is no git revision: write LIBRARY @ git+URL@REV")
    with tempfile.TemporaryDirectory() as folder:
        git(["clone", "--quiet", "--bare", "--filter=blob:none", url, folder], f"{url} could not be fetched")
        commit = git(["-C", folder, "rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}"], f"{url} has no {rev}")
        date = git(["-C", folder, "show", "--no-patch", "--format=%cI", commit], f"{url} has no {rev}")
    return commit, datetime.datetime.fromisoformat(date).astimezone(datetime.UTC)


def git(arguments: list[str], failure: str) -> str:
    """What git says.

    Raises UserError with `failure` when it fails or is not there; it never asks for a password.
    """
    settings = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        said = subprocess.run(["git", *arguments], capture_output=True, text=True, env=settings, check=False)
    except FileNotFoundError as error:
        raise UserError("git was not found: install it") from error
    if said.returncode:
        why = re.search(r"^fatal: (.+)", said.stderr, re.MULTILINE)
        raise UserError(f"{failure}: {why[1] if why else 'check its address and the name of the revision'}")
    return said.stdout.strip()


def own_version(name: str, source: str) -> Version:
    """The version by which a git revision calls itself, from its build's metadata.

    Raises UserError when it cannot be built, or is another package.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = ["pip", "install", "--quiet", "--no-deps", "--target", folder, f"{name} @ {source}"]
        said = uv.run([*command, *uv.arguments(uv.pip_settings())])
        if said.returncode:
            raise UserError(f"{source} cannot be built: {uv.explain(said.stderr)}")
        (built,) = importlib.metadata.distributions(path=[folder])
        return Version(built.version)


def named(text: str) -> Release:
    """The release, or the set of releases, that a text names; a set that is new here is locked first.

    Raises UserError when a part is unknown, or no stack has all of them.
    """
    history = History.load()
    parts = [part.replace("@git+", " @ git+", 1) for part in re.sub(r"\s*@\s*git\+", "@git+", text).split()]
    if len(parts) < 2:
        return history.one(text)
    members = sorted((history.one(part) for part in parts), key=lambda release: release.name)
    if len({member.library for member in members}) < len(members):
        raise UserError(f"{text!r} names one library twice: a set has one release of each")
    name = " ".join(member.name for member in members)
    if name not in history.by_name:
        make_set(name, members)
    return History.load().by_name[name]


def make_set(name: str, members: list[Release]) -> None:
    """Lock several releases together, on every stack that has a lock for each of them.

    Raises UserError when there is none.
    """
    tracked = releases.libraries()
    moves = [lock.Move(tracked[one.library], one.version, one.uploaded, one.source) for one in members]
    newest = max(members, key=lambda member: member.uploaded)
    locks: dict[str, dict[str, str]] = {}
    refused: dict[str, str] = {}
    for stack in stacks.load().values():
        if all(stack.name in member.locks for member in members):
            try:
                locks[stack.name] = lock.resolve_release(stack, moves, pins.read(newest.locks[stack.name]))
            except UserError as error:
                refused[stack.name] = str(error)
    if not locks:
        why = next(iter(refused.values()), "no stack has them all")
        raise UserError(f"{name} cannot be installed together: {why}")
    keep_set(name, [member.library for member in members], newest.uploaded, locks, refused)


def keep_set(
    name: str,
    moves: list[str],
    uploaded: datetime.datetime,
    locks: dict[str, dict[str, str]],
    refused: dict[str, str] | None = None,
) -> None:
    """Keep a point at which several packages move; `moves` are the tracked libraries whose tasks it concerns."""
    point = {"library": SET, "version": name, "uploaded": uploaded.isoformat(), "moves": moves}
    keep({**point, "source": "", "asked": "", "refused": refused or {}}, locks)
