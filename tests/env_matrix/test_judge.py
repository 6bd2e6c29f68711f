"""The judgements, by their properties: what must hold of any figures."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from env_matrix import judge
from env_matrix.judge import FASTER, SAME, SLOWER, UNDECIDED

FIGURES = st.floats(1e-4, 1e4)
SIDES = st.lists(FIGURES, min_size=1, max_size=12)
HISTORIES = st.lists(st.lists(FIGURES, min_size=1, max_size=3), min_size=3, max_size=15)
SCALES = st.floats(1e-3, 1e3)
MIRROR = {SLOWER: FASTER, FASTER: SLOWER, SAME: SAME, UNDECIDED: UNDECIDED}


def close(one, other):
    return one == other or (one is not None and other is not None and math.isclose(one, other, rel_tol=1e-6))


@given(SIDES, SIDES, SCALES)
def test_a_pair_does_not_depend_on_the_unit(before, after, scale):
    one = judge.pair(before, after)
    other = judge.pair([scale * value for value in before], [scale * value for value in after])
    assert close(one.ratio, other.ratio)
    assert close(one.low, other.low)
    assert close(one.high, other.high)
    assert math.isclose(one.p, other.p, rel_tol=1e-3, abs_tol=1e-9)


@given(SIDES, SIDES)
def test_a_pair_does_not_depend_on_the_order_of_rounds(before, after):
    assert close(judge.pair(before, after).ratio, judge.pair(before[::-1], sorted(after)).ratio)


@given(SIDES, SIDES)
def test_the_other_direction_is_the_inverse(before, after):
    one, other = judge.pair(before, after), judge.pair(after, before)
    assert close(one.ratio, 1 / other.ratio)
    assert close(one.low, other.high and 1 / other.high)
    (said,), (back,) = judge.verdicts([one]), judge.verdicts([other])
    assert back == MIRROR[said]


@given(SIDES, SIDES)
def test_an_interval_holds_its_ratio_and_p_is_a_probability(before, after):
    one = judge.pair(before, after)
    assert 0 <= one.p <= 1
    if one.low is not None:
        assert one.low * (1 - 1e-9) <= one.ratio <= one.high * (1 + 1e-9)


@given(SIDES)
def test_equal_sides_are_never_slower_or_faster(side):
    assert judge.verdicts([judge.pair(side, side)])[0] in (SAME, UNDECIDED)


@given(FIGURES, st.integers(2, 10))
def test_ties_without_any_noise_are_no_change_and_a_step_between_them_is_found(level, count):
    assert judge.verdicts([judge.pair([level] * count, [level] * count)]) == [SAME]
    assert judge.verdicts([judge.pair([level] * count, [2 * level] * count)]) == [SLOWER]


@given(FIGURES, FIGURES)
def test_one_round_decides_nothing(before, after):
    assert judge.verdicts([judge.pair([before], [after])]) == [UNDECIDED]


@given(SIDES, SIDES, st.integers(1, 30))
def test_more_pairs_beside_it_never_turn_an_undecided_one_into_a_slowdown(before, after, others):
    one = judge.pair(before, after)
    alone = judge.verdicts([one])[0]
    among = judge.verdicts([one, *[None] * others])[0]
    assert among in (alone, UNDECIDED)


def test_a_missing_pair_is_undecided_and_none_give_none():
    assert judge.verdicts([None]) == [UNDECIDED]
    assert judge.verdicts([]) == []


@pytest.mark.parametrize("side", [[], [0.0], [-1.0], [math.nan], [math.inf, 1.0]])
def test_figures_that_are_none_are_refused(side):
    with pytest.raises(ValueError, match="positive, finite figures"):
        judge.pair(side, [1.0])
    with pytest.raises(ValueError, match="positive, finite figures"):
        judge.changes([[1.0], [1.0], side])


@given(HISTORIES, SCALES)
def test_changes_do_not_depend_on_the_unit(values, scale):
    # Noise so near to nothing that rounding decides is no figure that a clock gives.
    assume(judge.noise(values) > 10 * judge.FLOOR)
    other = [[scale * value for value in release] for release in values]
    assert [c.index for c in judge.changes(values)] == [c.index for c in judge.changes(other)]


@given(HISTORIES)
def test_changes_are_in_order_beyond_the_threshold_and_significant(values):
    found = judge.changes(values)
    assert [c.index for c in found] == sorted({c.index for c in found})
    for change in found:
        assert 0 < change.index < len(values)
        assert change.p <= judge.ALPHA
        assert not 1 / (1 + judge.THRESHOLD) < change.ratio < 1 + judge.THRESHOLD
        assert change.low <= change.high


@given(FIGURES, st.integers(3, 20), st.integers(1, 3))
def test_a_flat_history_has_no_change(level, releases, processes):
    assert judge.changes([[level] * processes] * releases) == []


@given(st.integers(3, 12), st.integers(3, 12))
def test_a_step_in_a_quiet_history_is_found_where_it_is(before, after):
    def level(number):
        return (1.0 if number < before else 1.5) * (1 + 0.002 * (-1) ** number)

    (change,) = judge.changes([[level(number)] * 2 for number in range(before + after)])
    assert change.index == before


def test_fewer_than_three_releases_are_no_history():
    assert judge.changes([[1.0], [9.0]]) == []


@given(st.lists(st.integers(0, 5), min_size=1, max_size=9))
def test_every_difference_of_a_count_is_a_change(counts):
    found = judge.steps([[count] for count in counts])
    assert [c.index for c in found] == [i for i in range(1, len(counts)) if counts[i] != counts[i - 1]]


def test_processes_that_disagree_on_a_count_are_refused():
    with pytest.raises(ValueError, match="disagree"):
        judge.steps([[1, 2]])


@given(st.lists(st.floats(0, 1), max_size=30))
def test_what_is_believed_is_never_more_than_without_a_correction(p):
    kept = judge.believed(p)
    assert len(kept) == len(p)
    assert all(value <= judge.ALPHA for value, stand in zip(p, kept, strict=True) if stand)
