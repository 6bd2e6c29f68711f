"""The asv plugin, named in asv.conf.json: releases as commits, and a home for what asv does not keep.

`setup` runs when asv loads the plugin. It changes asv in five places, each in a function of its own below.
"""

import contextlib
import fcntl
import inspect
import itertools
import math
import os
import pathlib
import shutil
import statistics
import sys

from asv.benchmarks import Benchmarks
from asv.commands import Command
from asv.commands.continuous import Continuous
from asv.commands.publish import Publish
from asv.commands.run import Run
from asv.machine import Machine, MachineCollection
from asv.repo import NoSuchNameError, Repo
from asv.results import Results, get_existing_hashes
from asv.runner import BenchmarkResult
from asv.util import UserError as AsvError
from asv.util import iter_subclasses

from . import machine, names, outcomes, releases, stacks
from .errors import UserError

__all__ = ["ReleaseRepo", "names", "setup"]  # asv finds the publisher in names once it is imported

GAP = 3


class ReleaseRepo(Repo):
    """asv's view of env_matrix: a branch is a library, a commit is one of its releases.

    Checking a release out lays its locks down for the installer.
    """

    dvcs = "stepline"
    _default_branch = releases.REFERENCE

    def __init__(self, url, mirror_path):
        with as_asv_errors():
            self.history = releases.History.load()
            self.stacks = stacks.load()

    @classmethod
    def url_match(cls, url):
        return False  # only ever chosen by "dvcs" in asv.conf.json

    def pull(self):
        """Nothing to fetch: the locks are in the repository."""

    def checkout(self, path, commit_hash):
        """Lay down a lock for every stack that the release concerns, and the reason for every other one."""
        release = self._release(commit_hash)
        folder = pathlib.Path(path)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in self.stacks:
            if name in release.locks:
                shutil.copy(release.locks[name], folder / f"{name}.txt")
            else:
                reason = release.refused.get(name, f"{release.library} is no part of {name}")
                (folder / f"{name}.na").write_text(f"{release.name}: {reason}\n")

    def _release(self, commit):
        if commit not in self.history.by_id:
            raise NoSuchNameError(commit)
        return self.history.by_id[commit]

    def get_hash_from_name(self, name):
        try:
            return self.history.one(name).id
        except UserError as error:
            # asv asks for its branches in this way, and wants its own error; other names are a person's.
            raise AsvError(f"stepline: {error}") from error

    def get_name_from_hash(self, commit):
        release = self.history.by_id.get(commit)
        return release.name if release else None

    def get_decorated_hash(self, commit, hash_length=8):
        return self.get_name_from_hash(commit) or commit[:hash_length]

    def get_date(self, hash):
        return machine.javascript_time(self._release(hash).uploaded)

    def get_date_from_name(self, name):
        return self.get_date(self.get_hash_from_name(name))

    def get_hashes_from_range(self, range):
        with as_asv_errors():
            return [release.id for release in reversed(self.history.range(range))]

    def get_range_spec(self, commit_a, commit_b):
        return f"{commit_a}..{commit_b}"

    def get_new_range_spec(self, latest_result, branch=None):
        return f"{latest_result}..{self.history.branch(self.get_branch_name(branch))[-1].id}"

    def get_tags(self):
        """The last release of every major version, and of 0.x: few, since each tag is a line on every graph."""
        last = {}
        for release in self.history.releases:
            last[release.library, release.version.partition(".")[0]] = release
        return Tags({release.name: release.id for release in last.values()})

    def get_branch_commits(self, branch):
        with as_asv_errors():
            return [release.id for release in reversed(self.history.branch(self.get_branch_name(branch)))]

    def get_revisions(self, commits):
        """A block of numbers a library, with a gap, so that graphs keep libraries apart."""
        numbers, number = {}, 0
        for branch in self.history.branches.values():
            for release in branch:
                numbers[release.id] = number
                number += 1
            number += GAP
        return {commit: numbers[commit] for commit in commits}


class Tags(dict):
    """Names to ids, but for `asv run TAGS`, which takes the keys for ids."""

    def keys(self):
        return self.values()


@contextlib.contextmanager
def as_asv_errors():
    """Our errors as asv's, which prints them without a traceback."""
    try:
        yield
    except UserError as error:
        raise AsvError(f"stepline: {error}") from error


def setup():
    """Prepare this asv process."""
    state_conditions()
    name_the_machine()
    keep_outcomes()
    spare_processes()
    fill_configuration()


def state_conditions():
    """What every benchmark process inherits from this one."""
    os.environ["PATH"] = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
    os.environ["PYTHONHASHSEED"] = "0"
    # Environments may keep their compiled modules: what is timed is not the parsing of source.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def name_the_machine():
    """Results are filed under a name of the hardware, never of the host, unless the user has named one."""
    facts = machine.facts()
    Machine.hardcoded_machine_name = facts["machine"]
    MachineCollection.save(facts["machine"], facts)


def keep_outcomes():
    """asv forgets why a benchmark has no figure, drops earlier samples when a rerun fails or when it was not told
    to append, and writes its files in place: keep the reasons and the samples, and write to the side."""
    original_add, original_save = Results.add_result, Results.save

    def add_result(self, benchmark, result, *args, selected_idx=None, **kwargs):
        name = benchmark["name"]
        same = name in self._results and self.benchmark_version.get(name) == benchmark["version"]
        before = {}
        if same:
            rows = (self.get_result_value, self.get_result_samples, self.get_result_stats)
            before = dict(enumerate(zip(*(row(name, benchmark["params"]) for row in rows), strict=True)))
        kwargs.update(record_samples=True, append_samples=True, selected_idx=selected_idx)
        original_add(self, benchmark, result, *args, **kwargs)
        for index, (value, samples, stats) in before.items():
            if samples is not None and result.result[index] is None:
                restore(self, name, index, value, samples, stats, len(result.result))
        if benchmark["type"] == "time":
            self.outcomes = [*getattr(self, "outcomes", []), outcomes.of_result(benchmark, result, selected_idx)]

    def restore(self, name, index, *old_and_size):
        *old, size = old_and_size
        for table, value in zip((self._results, self._samples, self._stats), old, strict=True):
            table[name] = table[name] or [None] * size
            table[name][index] = value

    def save(self, result_dir):
        target = pathlib.Path(result_dir) / self._filename
        aside = pathlib.Path(result_dir) / ".aside"
        found = outcomes.merge(outcomes.read(target), getattr(self, "outcomes", []))
        self.outcomes = []
        for benchmark in TRACKS.values():
            values = tracked(benchmark, found)
            if not all(math.isnan(value) for value in values):
                original_add(self, benchmark, untimed(values))
        original_save(self, str(aside))
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(aside / self._filename, target)
        outcomes.write(target, found)

    Results.add_result, Results.save = add_result, save


TRACKS: dict[str, dict] = {}  # asv's track_ benchmarks, by name, as this process discovered them


def spare_processes():
    """The process of a time_step says what its class' track_ benchmarks track: they need none of their own."""
    original = Benchmarks.discover.__func__

    def discover(cls, *args, **kwargs):
        found = original(cls, *args, **kwargs)
        TRACKS.update({name: one for name, one in found._all_benchmarks.items() if one["type"] == "track"})
        for name in [name for name in found if name in TRACKS and sibling(name) in found]:
            del found[name]
        return found

    Benchmarks.discover = classmethod(discover)


def sibling(name):
    """The time_step benchmark of the class of a track_ benchmark."""
    return f"{name.rpartition('.')[0]}.time_step"


def tracked(benchmark, found):
    """The median over processes of a track_ benchmark's metric, one value a parameter set; NaN (n/a) without any."""
    metric = benchmark["name"].rpartition(".track_")[2]
    cells = [f"{sibling(benchmark['name'])}({', '.join(names)})" for names in itertools.product(*benchmark["params"])]
    said = [outcomes.metric(found.get(cell, {}), metric) for cell in cells]
    return [statistics.median(values) if values else math.nan for values in said]


def untimed(values):
    """Values of a track_ benchmark as asv's runner would hand them over."""
    none = [None] * len(values)
    return BenchmarkResult(result=values, samples=none, number=none, errcode=0, stderr="", profile=None)


def fill_configuration():
    """asv.conf.json repeats nothing of env_matrix: the tracked libraries are its branches. Plain `asv run` then means
    the reference release set, not the newest release of each of them; and only one run at a time may measure here."""
    for command in iter_subclasses(Command):
        if not inspect.isabstract(command):
            _fill(command)


def _fill(command):
    original = command.run_from_conf_args.__func__

    def run_from_conf_args(cls, conf, args, **kwargs):
        with as_asv_errors():
            history = releases.History.load()
        conf.branches = [releases.REFERENCE, *(name for name in history.branches if name != releases.REFERENCE)]
        if issubclass(cls, Publish):  # a library without a figure would be an empty choice on every page
            measured = {history.by_id[c].library for c in get_existing_hashes(conf.results_dir) if c in history.by_id}
            shown = measured - {releases.SET}
            conf.branches = [name for name in conf.branches if name in shown] or [releases.REFERENCE]
        if not issubclass(cls, (Run, Continuous)):
            return original(cls, conf, args, **kwargs)
        if issubclass(cls, Run) and args.range is None:
            args.range = releases.REFERENCE
        lock = pathlib.Path(conf.env_dir).parent / "run.lock"
        conf.env_dir += os.environ.get(stacks.SIDE, "")
        with only_one(lock):
            return original(cls, conf, args, **kwargs)

    command.run_from_conf_args = classmethod(run_from_conf_args)


@contextlib.contextmanager
def only_one(path):
    """Hold a lock file: two runs in one checkout would record one release's figures under another.

    Raises asv's UserError when another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise AsvError(
                f"stepline: process {file.read()} is measuring in this checkout: wait for its end"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
