"""Make an environment equal to a lock. asv's install_command runs this with the environment's own Python.

Needs the standard library and packaging, which asv puts into every environment. What asv needs beside the lock is
kept, at its pinned version.
"""

import importlib.metadata
import json
import os
import pathlib
import sys
import tempfile

from packaging.utils import canonicalize_name

from . import uv
from .errors import UserError
from .pins import commit, lines, parse, read
from .stacks import harness

NOT_CONCERNED = "stepline-na.txt"  # benchmarks/protocol.py looks for it


def wanted(lock: pathlib.Path) -> dict[str, str]:
    """The lock, and what asv needs where the lock does not name it: package to version."""
    return {**parse("\n".join(harness()), "stacks.toml"), **read(lock)}


def sync(pins: dict[str, str]) -> None:
    """Install exactly `pins` into this interpreter's environment; only what differs is touched.

    Modules are compiled here, or the first process after an install would time that as importing.

    Raises UserError when uv cannot.
    """
    with tempfile.TemporaryDirectory() as folder:
        requirements = pathlib.Path(folder) / "lock.txt"
        requirements.write_text(lines(pins))
        command = ["pip", "sync", "--quiet", "--compile-bytecode", "--python", sys.executable, str(requirements)]
        said = uv.run([*command, *uv.arguments(uv.pip_settings())])
    if said.returncode:
        raise UserError(f"the environment could not be installed: {uv.explain(said.stderr)}")


def differences(pins: dict[str, str]) -> list[str]:
    """What is installed here and is not what the pins say, one phrase each; local labels do not count."""
    found: dict[str, str] = {}
    for installed in importlib.metadata.distributions():
        name: str = canonicalize_name(installed.name)
        found[name] = revision(installed) if commit(pins.get(name, "")) else installed.version.partition("+")[0]
    wrong = [f"{name} {found.get(name, 'missing')} instead of {v}" for name, v in pins.items() if found.get(name) != v]
    return wrong + [f"{name} {found[name]} is not in the lock" for name in sorted(set(found) - set(pins))]


def revision(installed: importlib.metadata.Distribution) -> str:
    """Where a package was installed from (its direct_url.json, PEP 610), as a pin; its version without one."""
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if "vcs_info" not in origin:
        return installed.version
    return f"git+{origin['url']}@{origin['vcs_info']['commit_id']}"


def main() -> int:
    """install.py FOLDER: install the lock of the stack in STEPLINE_STACK that lies in FOLDER.

    Where the release does not concern the stack, leave the environment as it is and note the reason in it: the
    benchmarks then are n/a.
    """
    try:
        if sys.prefix == sys.base_prefix or not (pathlib.Path(sys.prefix) / "asv-env-info.json").exists():
            raise UserError("this would change a Python that is not an environment made by asv: run it through asv")
        lock = pathlib.Path(sys.argv[1]) / f"{os.environ['STEPLINE_STACK']}.txt"
        note = pathlib.Path(sys.prefix) / NOT_CONCERNED
        note.unlink(missing_ok=True)
        if lock.with_suffix(".na").exists():
            note.write_text(lock.with_suffix(".na").read_text())
            return 0
        pins = wanted(lock)
        sync(pins)
        importlib.invalidate_caches()
        if wrong := differences(pins):
            raise UserError(f"the environment is not what its lock says ({'; '.join(wrong[:3])}): delete .asv/env")
    except UserError as error:
        print(f"stepline: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
