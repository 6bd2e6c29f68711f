"""Moving an environment to the neighbouring release, against a fresh pip install of the same lock in a new one.

    .venv/bin/python scripts/moving.py [STACK LIBRARY RANGE]

Both with warm caches, in turns, a pair a release; prints seconds, their ratio, and what either adds to the disk. The
environment is moved by the installer that asv calls; a cache of its own shows what one more release adds to it.
"""

import itertools
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from env_matrix import pins, releases, stacks

ROOT = pathlib.Path(__file__).parent.parent
ASKED = ["native-torch", "transformers>=4.40.2,<=4.46.3"]
PAIRS = 5


def disk(*folders):
    """Megabytes on disk; what is hard-linked counts once."""
    said = subprocess.check_output(["du", "--summarize", "--total", "--block-size=1K", *folders], text=True)
    return int(said.splitlines()[-1].split()[0]) / 1e3


def run(command, **variables):
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])  # uv lies beside Python
    environment = {**os.environ, "PATH": path, **variables}
    began = time.monotonic()
    said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if said.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed: {said.stderr[-500:]}")
    return time.monotonic() - began


class Sides:
    """The environment that moves, and those that pip makes anew."""

    def __init__(self, folder, stack):
        self.folder, self.stack = folder, stack
        self.cache, self.moved = folder / "cache", folder / "moved"
        self.cache.mkdir()
        subprocess.run([sys.executable, "-m", "virtualenv", "--quiet", str(self.moved)], check=True)
        (self.moved / "asv-env-info.json").write_text("{}")  # the installer touches none but asv's own
        subprocess.run([str(self.moved / "bin/pip"), "install", "--quiet", "--quiet", *stacks.harness()], check=True)

    def move(self, release):
        """Move the environment; seconds."""
        lock = self.folder / f"{self.stack}.txt"
        shutil.copy(release.locks[self.stack], lock)
        command = [self.moved / "bin/python", "-m", "env_matrix.install", self.folder]
        return run(command, STEPLINE_STACK=self.stack, UV_CACHE_DIR=str(self.cache))

    def fresh(self, release):
        """Make a new environment with pip and install the same packages; seconds, and its size in megabytes."""
        new, wanted = self.folder / "fresh", self.folder / "requirements.txt"
        wanted.write_text(pins.lines(pins.read(release.locks[self.stack])))
        took = run([sys.executable, "-m", "venv", new])
        took += run([new / "bin/pip", "install", "--quiet", "--no-deps", "--requirement", wanted])
        size = disk(new)
        shutil.rmtree(new)
        return took, size


def main():
    stack, asked = sys.argv[1:] or ASKED
    some = [one for one in releases.History.load().range(asked) if stack in one.locks][: PAIRS + 1]
    with tempfile.TemporaryDirectory() as name:
        sides = Sides(pathlib.Path(name), stack)
        sizes, added = [], []
        for release in some:  # fills both caches
            before = disk(sides.cache, sides.moved)
            sides.move(release)
            added.append(disk(sides.cache, sides.moved) - before)
            sides.fresh(release)
        sides.move(some[0])
        print("| to | packages that change | moved, s | new with pip, s | ratio | adds, MB | a new one is, MB |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        ratios = []
        for number, (one, other) in enumerate(itertools.pairwise(some)):
            if number % 2:
                took, size = sides.fresh(other)
                moved = sides.move(other)
            else:
                moved = sides.move(other)
                took, size = sides.fresh(other)
            ratios.append(moved / took)
            sizes.append(size)
            changed = len(pins.difference(pins.read(one.locks[stack]), pins.read(other.locks[stack])))
            row = [other.name, changed, f"{moved:.1f}", f"{took:.1f}", f"{ratios[-1]:.3f}", f"{added[number + 1]:.0f}"]
            print("| " + " | ".join(map(str, [*row, f"{size:.0f}"])) + " |", flush=True)
    print(f"\nmedian ratio {statistics.median(ratios):.3f}; the first release took {added[0]:.0f} MB with its cache")


if __name__ == "__main__":
    main()
