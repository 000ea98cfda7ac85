"""Counts of what was drawn, held against what was promised."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Drawn
from ringfence.testing.rings import Key
from ringfence.timeline import Timeline
from ringfence.timeline.timeline import TIME_BITS

SIGMAS = 4.5
"""A right draw exceeds the bound of a chi-squared test once in 300,000 times; with a fixed seed never or always."""
FEW = 5.0
"""Draws to expect of a cell; cells with fewer are counted together."""


class Tally:
    """Count the anchors that an idle ring's draws give, and note what probability each was said to have.

    Args:
        legal: what may be drawn, in order.
        steady: whether probabilities stay as they are; where not, none is noted.
    """

    def __init__(self, legal: list[Key], *, steady: bool = True) -> None:
        self._steady = steady
        self.legal = {key: cell for cell, key in enumerate(legal)}
        self._ids = np.array([stream << TIME_BITS | time for stream, time in legal])
        self.counts = np.zeros(len(legal), np.int64)
        self._claims: NDArray[np.float64] = np.full(len(legal), np.nan)

    def note(self, drawn: Drawn) -> None:
        """Count a batch."""
        ids, probabilities = Timeline.ids(drawn.anchors), drawn.probabilities
        cells = np.minimum(self._ids.searchsorted(ids), len(self._ids) - 1)
        strange = ids[self._ids[cells] != ids]
        assert not len(strange), f"drew the ids {strange.tolist()}, no legal anchors"
        self.counts += np.bincount(cells, minlength=len(self.counts))
        if not self._steady:
            return
        if probabilities is None:  # each is as likely as any other
            probabilities = np.full(len(cells), 1 / len(self.counts))
        told = ~np.isnan(probabilities)  # the others were not drawn by chance
        cells, probabilities = cells[told], probabilities[told]
        known = self._claims[cells]
        moved = ~np.isnan(known) & ~np.isclose(known, probabilities, rtol=1e-6, atol=0)
        assert not moved.any(), f"probabilities of an idle ring changed from {known[moved]}"
        self._claims[cells] = probabilities

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """What each anchor's probability was said to be; 0 of those never drawn, and where nothing was ever said."""
        return np.nan_to_num(self._claims)

    def check_reach(self, where: str) -> None:
        """Require that every anchor was drawn, but for what is so unlikely that it may not have come."""
        total, draws = float(self.probabilities.sum()), int(self.counts.sum())
        missing = [key for key, cell in self.legal.items() if not self.counts[cell]]
        if not total:
            assert not self._steady or not missing, f"never drew {missing} in {draws} draws {where}"
            return
        # the probability of what was never drawn is unknown, but together it must be what is missing to 1
        left = 1 - total
        assert left > -1e-6, f"probabilities sum to {total} {where}"
        bound = 10 * len(missing) / draws + 1e-6
        assert left < bound, f"never drew {missing} in {draws} draws, whose probabilities are {left:.3g} {where}"

    def check_law(self, where: str) -> None:
        """Require that frequencies follow the probabilities and that those sum to 1."""
        self.check_reach(where)
        assert self.probabilities.any(), f"no probability was said {where}"
        worst = excess(self.counts, self.probabilities)
        assert worst < 1, f"frequencies do not follow the probabilities (chi-squared {worst:.2f} x the bound) {where}"

    def check_order(self, priorities: dict[Key, float]) -> None:
        """Require that of two anchors the one with the higher priority is no less likely."""
        cells = [self.legal[key] for key in sorted(priorities, key=priorities.__getitem__)]
        rising: Any = self.probabilities[cells][self.counts[cells] > 0]
        falls = np.flatnonzero(np.diff(rising) < -1e-9)
        assert not len(falls), f"a higher priority has the lower probability: {rising[falls]}, then {rising[falls + 1]}"


def excess(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Give Pearson's statistic over what a right draw stays below; above 1 is a failure.

    One-sided: a stratified draw, or one without replacement, is less scattered than chance and passes.
    """
    expected = probabilities / probabilities.sum() * counts.sum()
    rare = expected < FEW
    seen = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    keep = wanted > 0
    degrees = max(int(keep.sum()) - 1, 1)
    return float((((seen - wanted) ** 2)[keep] / wanted[keep]).sum() / quantile(degrees))


def quantile(degrees: int) -> float:
    """Give the chi-squared value that a right draw stays below; Wilson and Hilferty's formula (1931)."""
    spread = 2 / (9 * degrees)
    return float(degrees * (1 - spread + SIGMAS * spread**0.5) ** 3)
