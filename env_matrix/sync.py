"""Bring releases into env_matrix: from the index to a lock on every stack that has the library."""

import datetime
import difflib
from collections.abc import Iterator

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from . import index, lock, pins, releases, stacks
from .errors import UserError


def tracked(name: str) -> releases.Library:
    """The tracked library of a name.

    Raises UserError, which names the nearest, when there is none.
    """
    every = releases.libraries()
    wanted = canonicalize_name(name)
    if wanted not in every:
        near = difflib.get_close_matches(wanted, every, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UserError(f"{name!r} is not tracked: {hint}tracked are {', '.join(every)}; add it to libraries.toml")
    return every[wanted]


def missing(library: releases.Library) -> dict[Version, datetime.datetime]:
    """The releases that its history should keep and env_matrix does not have, oldest first."""
    found = index.published(library.name)
    have = releases.uploads().get(library.name, {})
    return {version: found[version] for version in library.keeps(list(found)) if version not in have}


def add(library: releases.Library, version: Version, uploaded: datetime.datetime) -> Iterator[str]:
    """Lock one release on every stack that has the library; yields a line a stack.

    A stack on which it cannot be locked keeps the reason instead, and does not stop the others.
    """
    name = f"{library.name}=={version}"
    for stack in stacks.load().values():
        if stack.name not in library.stacks:
            continue
        path = pins.place(stack, name)
        start = None if str(version) in library.fresh else predecessor(stack, library.name, version)
        try:
            found = lock.resolve_release(stack, [lock.Move(library, str(version), uploaded)], start)
        except UserError as error:
            if "package index did not answer" in str(error) or "disk is full" in str(error):
                raise
            pins.refuse(path, str(error))
            yield f"{name} on {stack.name}: no lock: {error}"
            continue
        pins.write(
            path, f"{name} on {stack.name}, resolved as of {library.as_of.get(str(version), uploaded.date())}", found
        )
        changed = pins.difference(start, found) if start else []
        yield f"{name} on {stack.name}: {len(found)} packages" + (f"; {', '.join(changed)}" if start else "")
    every = releases.uploads()
    every.setdefault(library.name, {})[version] = uploaded
    releases.write_uploads(every)


def predecessor(stack: stacks.Stack, library: str, version: Version) -> dict[str, str] | None:
    """The lock of the nearest older release of the library on this stack."""
    older = [known for known in releases.uploads().get(library, {}) if known < version]
    for known in sorted(older, reverse=True):
        path = pins.place(stack, f"{library}=={known}")
        if path.exists():
            return pins.read(path)
    return None


def find(library: releases.Library, text: str) -> tuple[Version, datetime.datetime]:
    """A version on the index and when it was uploaded.

    Raises UserError, which names the nearest, when the index does not have it.
    """
    try:
        version = Version(text)
    except InvalidVersion as error:
        raise UserError(f"{text!r} is not a version: write {library.name}==1.2.3") from error
    found = index.published(library.name)
    if version not in found:
        near = min(found, key=lambda known: releases.distance(str(known), version))
        raise UserError(f"the index has no {library.name} {version}, or it was yanked: the nearest is {near}")
    return version, found[version]
