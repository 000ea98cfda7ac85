"""A sum tree: a number of mass for each of many leaves, and the leaf in which a point of their sum lies.

A node is the sum of 16 children, and a level lies behind the one below it, in one array. The topmost level has up to
4096 nodes and is searched by its running sums, so that a million leaves need two levels below it. Measured on 1 M
leaves, 256 found and 256 set, in µs, compiled and with NumPy, on two cores that were busy with other work, so that the
ratios are what matters:

=======================================  ==========  =========  ============
way                                      find        set        bytes a leaf
=======================================  ==========  =========  ============
16 children, running sums of up to 4096  22 and 90   8 and 28   8.6
16 children, running sums of up to 1024  20 and 91   10 and 35  8.5
16 children, up to a single root         20 and 99   11 and 43  8.5
2 children, running sums of 4096         NumPy: 73   NumPy: 46  16.8
2 children, up to a single root          41 and 84   13 and 99  16.8
=======================================  ==========  =========  ============

A node is computed from its children whenever one of them changes; nothing is ever added to it or taken from it, so that
it is the same after any history that leads to the same leaves. One thread at a time may use a tree.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ringfence.kernels.load import native

FAN = 16
SHIFT = 4  # 2**4 children
TOP = 4096  # nodes of the topmost level, at most
ALIGN = 8 * FAN  # bytes; the children of a node then lie in two cache lines, not three

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def levels(leaves: int) -> list[int]:
    """Give the size of each level, the leaves first; all are whole nodes."""
    sizes = [-(-leaves // FAN) * FAN]
    while sizes[-1] > TOP:
        sizes.append(-(-(sizes[-1] // FAN) // FAN) * FAN)
    return sizes


def cost(leaves: int, *, minimum: bool = False) -> int:
    """Give the bytes that a tree takes: about 8.5 a leaf, and half a byte more where the smallest leaf is kept."""
    sizes = levels(leaves)
    return 8 * (sum(sizes) + sizes[-1] + 1 + (sum(sizes[1:]) if minimum else 0)) + ALIGN


class SumTree:
    """Keep a mass of 0 or more for each leaf.

    Costs what :func:`cost` says, all of it from the start.

    Args:
        leaves: How many; all are 0 at first.
        minimum: Also know the smallest leaf that is not 0.
    """

    def __init__(self, leaves: int, *, minimum: bool = False) -> None:
        sizes = levels(leaves)
        self.size = leaves
        self.starts = np.array([0, *np.cumsum(sizes)], np.int64)
        self._memory = np.empty(sum(sizes) * 8 + ALIGN, np.uint8)
        self._memory[:] = 0  # written once, so that memory is taken now and not as the tree fills
        skipped = -self._memory.ctypes.data % ALIGN
        self.nodes: Floats = self._memory[skipped:][: sum(sizes) * 8].view(np.float64)
        self.lows: Floats = np.full(sum(sizes[1:]) if minimum else 0, math.inf)
        edges = self.starts.tolist()
        self.levels = [self.nodes[first:last] for first, last in pairwise(edges)]
        self.low_levels = [
            self.lows[first - sizes[0] : last - sizes[0]] for first, last in pairwise(edges[1:]) if minimum
        ]
        self.groups = [level.reshape(-1, FAN) for level in self.levels]
        self._leaves, self._minimum = self.levels[0][:leaves], minimum
        self.from_zero: Floats = np.zeros(sizes[-1] + 1)
        self.prefix = self.from_zero[1:]
        self._summed = True

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        return self._memory.nbytes + self.lows.nbytes + self.from_zero.nbytes

    @property
    def leaves(self) -> Floats:
        """Every leaf, to be read only."""
        return self._leaves

    @property
    def total(self) -> float:
        """The sum of all leaves."""
        if not self._summed:
            running(self)
            self._summed = True
        return float(self.prefix[-1])

    @property
    def smallest(self) -> float:
        """The smallest leaf that is not 0; infinite where there is none. For trees made with ``minimum``."""
        assert self._minimum
        if self.low_levels:
            return float(self.low_levels[-1].min())
        return float(_lowest(self.levels[0][:, None])[0])

    def set(self, rows: Ints, values: Floats) -> None:
        """Set leaves; of a leaf that is named twice the last value stays.

        Args:
            rows: (n,) numbers of leaves.
            values: (n,) finite and not negative.

        Raises:
            IndexError: There is no such leaf; none was set.
        """
        put(self, rows, values)
        self._summed = False

    def set_range(self, first: int, last: int, values: float | Floats) -> None:
        """Set the leaves from ``first`` to ``last - 1``, to one value or to one each.

        Raises:
            IndexError: There are no such leaves; none was set.
        """
        if not 0 <= first <= last <= self.size:
            raise IndexError(f"expected leaves among {self.size}, got {first} to {last}")
        if first < last:
            self._leaves[first:last] = values
            mend(self, first, last)
            self._summed = False

    def find(self, masses: Floats) -> tuple[Ints, Floats]:
        """Give the leaf in which each mass lies, as if all leaves were laid end to end, and the leaf's value.

        Never a leaf of 0: a mass at a border belongs to the next leaf that has some, and one at the end of all, or
        beyond it by rounding, to the last leaf that has some.

        Args:
            masses: (n,) of 0 or more; the tree's total is not 0.
        """
        assert self.total > 0
        return find(self, masses)


def running_numpy(tree: SumTree) -> None:
    """Sum up the topmost level with NumPy, in order."""
    np.cumsum(tree.levels[-1], out=tree.prefix)


def put_numpy(tree: SumTree, rows: Ints, values: Floats) -> None:
    """Set leaves with NumPy; see :meth:`SumTree.set`."""
    if len(rows) and rows.min() < 0:  # NumPy would count from the end
        raise IndexError(f"expected leaves among {tree.size}, got {rows.min()}")
    tree.leaves[rows] = values
    nodes, children = np.empty((len(rows), FAN)), np.empty((FAN, len(rows)))
    for at, group in enumerate(tree.groups[:-1]):
        rows = rows >> SHIFT
        group.take(rows, axis=0, out=nodes, mode="clip")  # three times faster than group[rows]
        children[:] = nodes.T  # adding up long rows is four times faster than adding along short ones
        tree.levels[at + 1][rows] = _sums(children)
        if tree.low_levels:
            tree.low_levels[at][rows] = _lows(tree, at, rows, children)


def mend_numpy(tree: SumTree, first: int, last: int) -> None:
    """Compute the nodes above a range of leaves with NumPy."""
    last -= 1
    for at, level in enumerate(tree.levels[:-1]):
        first, last = first >> SHIFT, last >> SHIFT
        if first == last:
            _mend_one(tree, at, first)
            continue
        above = slice(first, last + 1)
        children = level[first * FAN : (last + 1) * FAN].reshape(-1, FAN).T
        tree.levels[at + 1][above] = _sums(children)
        if tree.low_levels:
            tree.low_levels[at][above] = _lows(tree, at, np.arange(first, last + 1), children)


def _mend_one(tree: SumTree, at: int, node: int) -> None:
    """Compute one node of the level above ``at``: of so few numbers Python is three times faster than NumPy."""
    span = slice(node * FAN, (node + 1) * FAN)
    values: list[float] = tree.levels[at][span].tolist()
    half = [one + other for one, other in zip(values[:8], values[8:], strict=True)]
    quarter = [half[0] + half[4], half[1] + half[5], half[2] + half[6], half[3] + half[7]]
    tree.levels[at + 1][node] = (quarter[0] + quarter[2]) + (quarter[1] + quarter[3])
    if tree.low_levels:
        lows = tree.low_levels[at - 1][span].tolist() if at else [value for value in values if value > 0]
        tree.low_levels[at][node] = min(lows, default=math.inf)


def find_numpy(tree: SumTree, masses: Floats) -> tuple[Ints, Floats]:
    """Find leaves with NumPy, level by level for the whole batch; see :meth:`SumTree.find`."""
    count, each = len(masses), np.arange(len(masses))
    nodes = np.empty((count, FAN))
    sums = np.empty((FAN + 1, count))  # running sums of the children, one column a mass, from 0 on
    sums[0] = 0
    children, first, *others = sums[1:], *sums[1:]
    rows = tree.prefix.searchsorted(masses, "right")
    left = masses - tree.from_zero.take(rows)
    beyond = np.flatnonzero(rows == len(tree.prefix))
    if len(beyond):
        rows[beyond], left[beyond] = np.flatnonzero(tree.levels[-1])[-1], np.inf
    for group in tree.groups[-2::-1]:
        group.take(rows, axis=0, out=nodes, mode="clip")
        children[:] = nodes.T
        before = first
        for child in others:  # cumsum(axis=0) is six times slower, cumsum along short rows four times
            np.add(child, before, child)
            before = child
        passed = np.add.reduce((children <= left).view(np.uint8), axis=0, dtype=np.uint8)
        places = passed.astype(np.int64)
        left -= sums.take(places * count + each)
        if FAN in passed.tobytes():
            beyond = np.flatnonzero(passed == FAN)
            places[beyond] = FAN - 1 - (nodes[beyond, ::-1] > 0).argmax(axis=1)
            left[beyond] = np.inf
        rows = (rows << SHIFT) + places
    return rows, tree.levels[0].take(rows)


def _sums(children: Floats) -> Floats:
    """Add up 16 children each, half to half: the order that the compiled loop keeps, to the last bit."""
    half = children[:8] + children[8:]
    half = half[:4] + half[4:]
    half = half[:2] + half[2:]
    return half[0] + half[1]


def _lows(tree: SumTree, at: int, nodes: Ints, children: Floats) -> Floats:
    """Give the smallest leaf below nodes of the level above ``at``."""
    if not at:
        return _lowest(children)
    return tree.low_levels[at - 1].reshape(-1, FAN)[nodes].min(axis=1)


def _lowest(leaves: Floats) -> Floats:
    """Give the smallest of each column that is not 0."""
    return np.where(leaves > 0, leaves, np.inf).min(axis=0)


def _running_native(tree: SumTree) -> None:
    native.tree_running(tree.nodes, tree.starts, tree.prefix)


def _put_native(tree: SumTree, rows: Ints, values: Floats) -> None:
    native.tree_put(tree.nodes, tree.lows, tree.starts, tree.size, rows, values)


def _mend_native(tree: SumTree, first: int, last: int) -> None:
    native.tree_mend(tree.nodes, tree.lows, tree.starts, first, last)


def _find_native(tree: SumTree, masses: Floats) -> tuple[Ints, Floats]:
    rows, leaves = np.empty(len(masses), np.int64), np.empty(len(masses))
    native.tree_find(tree.nodes, tree.starts, tree.prefix, masses, rows, leaves)
    return rows, leaves


running, put, mend, find = (
    (running_numpy, put_numpy, mend_numpy, find_numpy)
    if native is None
    else (_running_native, _put_native, _mend_native, _find_native)
)
