"""Publish asv's site beside the old one and put it in its place at once, so that there always is a whole one."""

import pathlib
import shutil
import subprocess
import sys

from .errors import UserError


def publish(root: pathlib.Path) -> pathlib.Path:
    """Publish the results under `root`; returns the folder of the site.

    Raises UserError when asv cannot; the site that was there then stays.
    """
    site, fresh, old = root / "html", root / "html.new", root / "html.old"
    asked = [sys.executable, "-m", "asv", "publish", "--no-pull", "--html-dir", str(fresh)]
    said = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=False)
    if said.returncode:
        last = [line for line in (said.stdout + said.stderr).splitlines() if line.strip()][-1:]
        raise UserError(f"the site could not be published: {' '.join(last)}")
    shutil.rmtree(old, ignore_errors=True)
    if site.exists():
        site.rename(old)
    fresh.rename(site)
    shutil.rmtree(old, ignore_errors=True)
    return site
