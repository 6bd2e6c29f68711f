"""The asv plugin, named in asv.conf.json: releases as commits, and a home for what asv does not keep.

`setup` runs when asv loads the plugin. It changes asv in four places, each in a function of its own below.
"""

import hashlib
import os
import pathlib
import sys

from asv.machine import Machine, MachineCollection
from asv.repo import NoSuchNameError, Repo
from asv.results import Results
from asv.util import UserError as AsvError

from . import machine, outcomes, stacks
from .errors import UserError

REFERENCE = "reference"


class ReleaseRepo(Repo):
    """asv's view of env_matrix: one branch, whose one commit is the reference release set.

    A commit's id is a digest of all the locks it stands for; checking it out lays those locks down for the installer.
    """

    dvcs = "stepline"
    _default_branch = REFERENCE

    def __init__(self, url, mirror_path):
        try:
            self._stacks = stacks.load()
            self._date = stacks.reference_date()
            texts = [stack.lock.read_text() for stack in self._stacks.values()]
        except (UserError, OSError) as error:
            raise AsvError(f"stepline: {error}") from error
        self._name = f"{REFERENCE}-{self._date}"
        self._commit = hashlib.sha256("\0".join([self._name, *texts]).encode()).hexdigest()[:40]

    @classmethod
    def url_match(cls, url):
        return False  # only ever chosen by "dvcs" in asv.conf.json

    def pull(self):
        """Nothing to fetch: the locks are in the repository."""

    def checkout(self, path, commit_hash):
        self._check(commit_hash)
        folder = pathlib.Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        for stack in self._stacks.values():
            (folder / stack.lock.name).write_text(stack.lock.read_text())

    def _check(self, commit):
        if commit != self._commit:
            raise NoSuchNameError(commit)

    def get_hash_from_name(self, name):
        if name in (REFERENCE, self._name, "HEAD") or (len(name) >= 7 and self._commit.startswith(name)):
            return self._commit
        raise NoSuchNameError(name)

    def get_name_from_hash(self, commit):
        return self._name if commit == self._commit else None

    def get_date(self, hash):
        self._check(hash)
        return machine.javascript_time(self._date)

    def get_date_from_name(self, name):
        return self.get_date(self.get_hash_from_name(name))

    def get_hashes_from_range(self, range):
        try:
            return [self.get_hash_from_name(range)]
        except NoSuchNameError as error:
            raise AsvError(f"stepline: unknown release {range!r}: the one there is is {self._name}") from error

    def get_range_spec(self, commit_a, commit_b):
        return commit_b

    def get_new_range_spec(self, latest_result, branch=None):
        return self._commit

    def get_tags(self):
        return {self._commit: self._commit}

    def get_branch_commits(self, branch):
        return [self._commit]

    def get_revisions(self, commits):
        return {commit: 0 for commit in commits}


def setup():
    """Prepare this asv process."""
    state_conditions()
    name_the_machine()
    keep_outcomes()


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
        self.outcomes = {**getattr(self, "outcomes", {}), **outcomes.of_result(benchmark, result, selected_idx)}

    def restore(self, name, index, *old_and_size):
        *old, size = old_and_size
        for table, value in zip((self._results, self._samples, self._stats), old, strict=True):
            table[name] = table[name] or [None] * size
            table[name][index] = value

    def save(self, result_dir):
        target = pathlib.Path(result_dir) / self._filename
        aside = pathlib.Path(result_dir) / ".aside"
        original_save(self, str(aside))
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(aside / self._filename, target)
        outcomes.write(target, getattr(self, "outcomes", {}))

    Results.add_result, Results.save = add_result, save
