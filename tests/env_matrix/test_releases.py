"""Releases as commits, on small data: order, names, ranges, ids."""

import datetime
import hashlib

import pytest
from packaging.version import Version

from env_matrix import pins, releases, stacks
from env_matrix.errors import UserError
from env_matrix.plugin import ReleaseRepo
from env_matrix.releases import History, Library, Release


def release(library, version, day=1, pins=None):
    name = f"{library}=={version}"
    identity = releases.identify(name, {"s": {library: version, **(pins or {})}})
    moment = datetime.datetime(2024, 1, day, tzinfo=datetime.UTC)
    return Release(library, version, moment, identity, {}, {})


@pytest.fixture
def history():
    # keras 3.0.5 was uploaded after 3.1.0: the branch goes by version, not by date.
    return History(
        [
            *(release("keras", version, day) for version, day in [("3.0.4", 1), ("3.0.5", 9), ("3.1.0", 5)]),
            *(release("keras-nlp", version) for version in ["0.8.2", "0.9.0"]),
            release("reference", "2026-12-01"),
        ]
    )


def names(found):
    return [one.name for one in found]


def test_a_branch_goes_by_version_also_when_a_patch_comes_after_a_newer_minor(history):
    assert names(history.branch("keras")) == ["keras==3.0.4", "keras==3.0.5", "keras==3.1.0"]


def test_two_libraries_of_one_prefix_are_two_branches(history):
    assert names(history.range("keras>=3")) == ["keras==3.0.4", "keras==3.0.5", "keras==3.1.0"]
    assert names(history.range("Keras_NLP>=0.8.2,<0.9")) == ["keras-nlp==0.8.2"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("keras>=3.0.5,<3.1", ["keras==3.0.5"]),
        ("keras ~= 3.0.4", ["keras==3.0.4", "keras==3.0.5"]),
        ("keras!=3.0.5", ["keras==3.0.4", "keras==3.1.0"]),
        ("keras==3.0.*", ["keras==3.0.4", "keras==3.0.5"]),
        ("keras==3.0.4..keras==3.1.0", ["keras==3.0.5", "keras==3.1.0"]),
        ("keras", ["keras==3.1.0"]),
        ("keras==3.1", ["keras==3.1.0"]),
        ("reference", ["reference==2026-12-01"]),
    ],
)
def test_ranges_are_pips(history, text, found):
    assert names(history.range(text)) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kers>=3", "unknown library 'kers': did you mean keras"),
        ("keras==3.0.7", "keras 3.0.7 is not in env_matrix: the nearest is keras==3.0.5"),
        ("keras>=9", "no release in env_matrix is in 'keras>=9': keras goes from 3.0.4 to 3.1.0"),
        ("keras==3.1.0..keras==3.0.4", "upside down: write keras==3.0.4..keras==3.1.0"),
        ("keras==3.0.4..keras-nlp==0.9.0", "from one library to another"),
        ("keras>>3", "not a range"),
        ("keras==three", "is not a version"),
    ],
)
def test_a_wrong_range_says_what_to_write(history, text, words):
    with pytest.raises(UserError, match=words):
        history.range(text)


def test_an_id_or_its_beginning_names_a_release(history):
    wanted = history.one("keras==3.0.5")
    assert history.one(wanted.id) == history.one(wanted.id[:8]) == wanted


def test_ids_depend_on_the_locks_and_on_nothing_else():
    same = releases.identify("keras==3", {"s": {"a": "1", "b": "2"}})
    assert same == releases.identify("keras==3", {"s": {"b": "2", "a": "1"}})
    assert same != releases.identify("keras==3", {"s": {"a": "1", "b": "3"}})
    assert same != releases.identify("keras-nlp==3", {"s": {"a": "1", "b": "2"}})


def test_ids_stay_when_older_releases_are_inserted(history):
    before = {one.name: one.id for one in history.releases}
    after = History([release("keras", "3.0.1"), *history.releases])
    assert {name: after.by_name[name].id for name in before} == before


def test_ids_that_begin_alike_are_refused_by_name():
    one, other = release("keras", "3.0.4"), release("keras", "3.0.5")
    twin = Release(other.library, other.version, other.uploaded, one.id[:8] + "0" * 32, {}, {})
    with pytest.raises(UserError, match=r"keras==3.0.4 and keras==3.0.5 have ids that begin alike"):
        History([one, twin])


def test_a_history_keeps_the_last_patch_of_every_minor_and_what_is_asked_besides():
    library = Library("x", (), (), Version("1.0"), None, ("1.1",), ("1.2.0",))
    every = ["0.9", "1.0.0", "1.0.1", "1.1.0", "1.1.1", "1.2.0", "1.2.1", "1.2.2", "1.3.0rc1", "1.3.0.dev1"]
    kept = library.keeps([Version(text) for text in every])
    assert [str(version) for version in kept] == ["1.0.1", "1.1.0", "1.1.1", "1.2.0", "1.2.2"]


def test_a_prerelease_is_found_only_when_it_is_named(history):
    history = History([*history.branch("keras"), release("keras", "3.2.0rc1")])
    assert "keras==3.2.0rc1" not in names(history.range("keras>=3.1"))
    assert names(history.range("keras==3.2.0rc1")) == ["keras==3.2.0rc1"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[x]\n"1.0" = 2024-01-01T00:00:00Z\n"1.0.0" = 2024-01-02T00:00:00Z\n', "x 1.0.0 twice"),
        ('[x]\n"1.0" = 2999-01-01T00:00:00Z\n', "impossible date"),
        ('[x]\n"1.0" = "yesterday"\n', "impossible date"),
        ('[x]\n"one" = 2024-01-01T00:00:00Z\n', "cannot be read"),
        ('[x\n"1.0" = 2024-01-01T00:00:00Z\n', "cannot be read"),
    ],
)
def test_a_broken_releases_file_is_named(tmp_path, text, words):
    path = tmp_path / "releases.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=words):
        releases.uploads(path)


def test_what_is_written_is_read_back(tmp_path):
    path = tmp_path / "releases.toml"
    moment = datetime.datetime(2024, 2, 29, 12, 30, 15, tzinfo=datetime.UTC)
    releases.write_uploads({"x": {Version("1.10"): moment, Version("1.9"): moment}}, path)
    assert list(releases.uploads(path)["x"]) == [Version("1.9"), Version("1.10")]
    assert releases.uploads(path)["x"][Version("1.10")] == moment


def test_the_difference_between_two_locks_names_every_package():
    before, after = {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "3", "d": "4"}
    assert pins.difference(before, after) == ["b 2 -> 3", "c 3 -> (none)", "d (none) -> 4"]


def test_the_committed_history_reads_and_every_id_is_its_own():
    history = History.load()
    assert len({one.id[:8] for one in history.releases}) == len(history.releases)
    for one in history.releases:
        for stack in one.locks:
            assert stack in stacks.load()


def test_asv_sees_newest_first_numbers_in_blocks_and_few_tags():
    repo = ReleaseRepo(None, None)
    history = repo.history
    for library, branch in history.branches.items():
        commits = repo.get_branch_commits(library)
        assert commits == [one.id for one in reversed(branch)]
        numbers = repo.get_revisions(commits)
        assert sorted(numbers.values()) == list(range(min(numbers.values()), min(numbers.values()) + len(branch)))
    tags = repo.get_tags()
    assert set(tags.keys()) <= set(history.by_id)
    assert set(dict(tags.items())) <= set(history.by_name)


def test_a_digest_seals_a_lock(tmp_path):
    path = tmp_path / "x.txt"
    pins.write(path, "x", {"a": "1"})
    assert pins.read(path) == {"a": "1"}
    assert hashlib.sha256(b"a==1\n").hexdigest() in path.read_text()
    path.write_text(path.read_text().replace("a==1", "a==2"))
    with pytest.raises(UserError, match="edited by hand"):
        pins.read(path)
