"""Sum trees: every node is its children's sum, every mass finds its leaf, and both ways give the same bits."""

from __future__ import annotations

from contextlib import nullcontext
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.kernels import sumtree
from ringfence.kernels.load import native
from ringfence.kernels.sumtree import FAN, SumTree, cost

NUMPY = {name: getattr(sumtree, f"{name}_numpy") for name in ("running", "put", "mend", "find")}
SIZES = [1, 15, 16, 17, 300, 4096, 4097, 70_000]
WAYS = ["numpy", pytest.param("compiled", marks=pytest.mark.skipif(native is None, reason="no compiled loops"))]
compiled = pytest.mark.skipif(native is None, reason="no compiled loops")


def using(way):
    """Run what follows with the compiled loops or with their twins."""
    return patch.multiple(sumtree, **NUMPY) if way == "numpy" else nullcontext()


def tree_of(leaves, **options):
    """Make a tree of these leaves."""
    tree = SumTree(len(leaves), **options)
    tree.set_range(0, len(leaves), np.asarray(leaves, np.float64))
    return tree


def half_to_half(values):
    """Add up 16 numbers in the order that the tree promises, in plain Python."""
    while len(values) > 1:
        half = len(values) // 2
        values = [one + other for one, other in zip(values[:half], values[half:], strict=True)]
    return values[0]


def assert_whole(tree):
    """Compare every node, running sum and smallest leaf with what the leaves alone say."""
    for below, above in zip(tree.levels, tree.levels[1:], strict=False):
        expected = [half_to_half(group) for group in below.reshape(-1, FAN).tolist()]
        assert above[: len(expected)].tolist() == expected
        assert not above[len(expected) :].any()
    sums, total = [], 0.0
    for value in tree.levels[-1].tolist():
        total += value
        sums.append(total)
    assert tree.total == total
    assert tree.prefix.tolist() == sums
    exact = sum(map(Fraction, tree.leaves.tolist()))
    # 4 roundings a level and one for each node on top, each of at most half a unit in the last place
    depth = 4 * (len(tree.levels) - 1) + len(tree.levels[-1])
    assert abs(Fraction(total) - exact) <= exact * depth * Fraction(1, 2**53)


def random_history(tree, generator, steps=12):
    """Set leaves and ranges of leaves at random, many of them to 0, over 18 orders of magnitude."""
    for _ in range(steps):
        count = int(generator.integers(1, 60))
        rows = generator.integers(0, tree.size, count)
        values = generator.random(count) * (generator.random(count) < 0.6) * 10.0 ** generator.integers(-9, 9, count)
        tree.set(rows, values)
        first, last = sorted(generator.integers(0, tree.size + 1, 2).tolist())
        tree.set_range(first, min(last, first + 500), float(generator.random()) * int(generator.integers(0, 2)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", SIZES)
def test_every_node_is_the_sum_of_its_children_after_any_history(way, size):
    """Nothing is left of what leaves were before: nodes are recomputed, in one documented order of additions."""
    with using(way):
        for seed in range(3):
            tree = SumTree(size)
            random_history(tree, np.random.default_rng(seed))
            assert_whole(tree)


@pytest.mark.parametrize("way", WAYS)
def test_two_histories_of_the_same_leaves_end_in_the_same_bits(way):
    """A tree that has seen a million times as much mass is the same as a new one."""
    with using(way):
        old = SumTree(5000)
        for seed in range(5):
            random_history(old, np.random.default_rng(seed))
            old.set_range(0, 5000, 1e300)
            leaves = np.random.default_rng(seed).random(5000)
            old.set_range(0, 5000, leaves)
            new = tree_of(leaves)
            assert old.nodes.tobytes() == new.nodes.tobytes()
            assert old.total == new.total


@compiled
@pytest.mark.parametrize("minimum", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_compiled_loops_give_the_bits_of_their_twins(size, minimum):
    """Nodes, smallest leaves, running sums and what is found are equal to the last bit."""
    ours, twins = SumTree(size, minimum=minimum), SumTree(size, minimum=minimum)
    for seed in range(3):
        random_history(ours, np.random.default_rng(seed))
        with using("numpy"):
            random_history(twins, np.random.default_rng(seed))
            assert ours.total == twins.total
        assert ours.nodes.tobytes() == twins.nodes.tobytes()
        assert ours.lows.tobytes() == twins.lows.tobytes()
        if ours.total:
            masses = np.append(np.random.default_rng(seed).random(301), [0, 1, 1.5]) * ours.total
            found, leaves = ours.find(masses)
            with using("numpy"):
                others, values = twins.find(masses)
            assert found.tolist() == others.tolist()
            assert leaves.tolist() == values.tolist() == ours.leaves[found].tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [5, 40, 5000])
def test_a_mass_lies_in_the_leaf_whose_exact_interval_holds_it(way, size):
    """Whole numbers are summed up without rounding, so that each leaf gets exactly the masses it should."""
    generator = np.random.default_rng(size)
    leaves = generator.integers(0, 4, size).astype(np.float64)
    ends = leaves.cumsum()
    with using(way):
        tree = tree_of(leaves)
        masses = np.arange(ends[-1] * 2) / 2  # borders, and the middle between two
        found, values = tree.find(masses)

    assert found.tolist() == ends.searchsorted(masses, "right").tolist()
    assert values.tolist() == leaves[found].tolist()


@pytest.mark.parametrize("way", WAYS)
@given(
    leaves=st.lists(st.sampled_from([0.0, 5e-324, 1e-300, 1e-9, 1.0, 3.0, 1e9]), min_size=1, max_size=80),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=9),
    gap=st.sampled_from([1, 7, 100]),
)
def test_a_leaf_of_nothing_is_never_found(way, leaves, shares, gap):
    """Wherever zeros lie, and however small what lies between, only leaves with mass are found."""
    spread = np.zeros(len(leaves) * gap)
    spread[::gap] = leaves
    with using(way):
        tree = tree_of(spread)
        if not tree.total:
            return
        found, values = tree.find(np.array(shares) * tree.total)

    assert (values > 0).all()
    assert values.tolist() == spread[found].tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", SIZES)
def test_the_whole_mass_and_what_is_beyond_fall_to_the_last_leaf_that_has_any(way, size):
    """Also where that leaf is too small to change the sum, and zeros lie behind it."""
    leaves = np.random.default_rng(size).random(size)
    last = size * 2 // 3
    leaves[last + 1 :], leaves[last] = 0, 1e-200
    with using(way):
        tree = tree_of(leaves)
        found, _ = tree.find(np.array([tree.total, np.nextafter(tree.total, np.inf), 2 * tree.total, np.inf]))

    assert found.tolist() == [last] * 4


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [30, 5000])
def test_of_a_leaf_that_is_named_twice_the_last_value_stays(way, size):
    """As if they had been set one after the other."""
    with using(way):
        tree = SumTree(size)
        tree.set(np.array([3, 7, 3, 7, 3]), np.array([1.0, 2.0, 3.0, 4.0, 5.0]))

        assert tree.leaves[[3, 7]].tolist() == [5.0, 4.0]
        assert tree.total == 9.0
        assert_whole(tree)


@pytest.mark.parametrize("way", WAYS)
@given(ends=st.tuples(st.integers(0, 5000), st.integers(0, 5000)), value=st.sampled_from([0.0, 0.3]))
def test_a_range_set_at_once_is_as_if_set_leaf_by_leaf(way, ends, value):
    """Empty ranges too."""
    first, last = sorted(ends)
    start = np.random.default_rng(1).random(5000)
    with using(way):
        one, other = tree_of(start, minimum=True), tree_of(start, minimum=True)
        one.set_range(first, last, value)
        other.set(np.arange(first, last), np.full(last - first, value))

        assert one.nodes.tobytes() == other.nodes.tobytes()
        assert one.lows.tobytes() == other.lows.tobytes()
        assert one.total == other.total


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", SIZES)
def test_the_smallest_leaf_that_is_not_nothing_is_known(way, size):
    """After any history; infinite where there is none."""
    with using(way):
        tree = SumTree(size, minimum=True)
        assert tree.smallest == np.inf
        for seed in range(4):
            random_history(tree, np.random.default_rng(seed), steps=3)
            assert tree.smallest == min(tree.leaves[tree.leaves > 0].tolist(), default=np.inf)
        tree.set_range(0, size, 0.0)
        assert tree.smallest == np.inf


@pytest.mark.parametrize(("first", "last"), [(-1, 3), (5, 4), (0, 31)])
def test_a_range_outside_the_tree_is_refused(first, last):
    """Nothing is set."""
    tree = SumTree(30)

    with pytest.raises(IndexError, match="expected leaves among 30"):
        tree.set_range(first, last, 1.0)

    assert not tree.nodes.any()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", [-1, 30, 31, 2**40])
def test_a_row_outside_the_tree_is_refused_and_nothing_set(way, row):
    """Also one that lies among the zeros that fill up the last node, and whatever stands before it."""
    tree = SumTree(30)

    with using(way), pytest.raises(IndexError, match=r"outside its tree|out of bounds|among 30, got -1"):
        tree.set(np.array([3, row]), np.ones(2))

    assert not tree.nodes.any()


@compiled
def test_compiled_loops_refuse_buffers_that_do_not_fit_each_other():
    """Wrong lengths are errors, and never reads of foreign memory."""
    tree = SumTree(5000)
    masses, rows, leaves = np.zeros(4), np.zeros(4, np.int64), np.zeros(4)
    wrong = tree.starts + np.array([0, 16, 0])

    with pytest.raises(IndexError, match="does not fit"):
        native.tree_find(tree.nodes, tree.starts, tree.prefix[1:], masses, rows, leaves)
    with pytest.raises(IndexError, match="does not fit"):
        native.tree_find(tree.nodes, tree.starts, tree.prefix, masses, rows[1:].copy(), leaves)
    with pytest.raises(IndexError, match="does not fit"):
        native.tree_running(tree.nodes, wrong, tree.prefix)
    with pytest.raises(IndexError, match="outside its tree"):
        native.tree_put(tree.nodes, np.zeros(3), tree.starts, 5000, rows, masses)
    with pytest.raises(IndexError, match="outside its tree"):
        native.tree_put(tree.nodes, tree.lows, tree.starts, 5000, rows, masses[1:].copy())
    with pytest.raises(IndexError, match="outside its tree"):
        native.tree_mend(tree.nodes, tree.lows, tree.starts, 0, 6000)


@pytest.mark.parametrize("minimum", [False, True])
@pytest.mark.parametrize("size", [*SIZES, 1_000_010])
def test_a_tree_costs_what_is_planned(size, minimum):
    """To the byte; for a million leaves 8.6 bytes each, and half a byte for the smallest."""
    tree = SumTree(size, minimum=minimum)

    assert tree.nbytes == cost(size, minimum=minimum)
    if size > 1_000_000:
        assert tree.nbytes < (9.2 if minimum else 8.65) * size
