"""Memory that windows are read into, in turns: to get new memory takes longer than to copy a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.runtime.base.backend import Array
from gpuop.streaming.overlapping import AHEAD
from gpuop.streaming.stores import mapping
from gpuop.windows.footprint import Place
from gpuop.windows.pieces import window_of

TURNS = AHEAD + 1  # windows that are read ahead, and the one that is computed


class WindowMemory:
    """What windows were read into is used again when so many others have been read."""

    def __init__(self) -> None:
        self.turn, self.kept = 0, dict[tuple[int, int], Array]()

    def next_turn(self) -> None:
        self.turn = (self.turn + 1) % TURNS

    def read(
        self, number: int, source: Any, index: Place, ends: Sequence[tuple[int, int]] | None, grid: Place
    ) -> Array:
        """The window of a source, as of `window_of`; of a mapped file too it is here then."""

        def made(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
            known = self.kept.get((self.turn, number))
            if known is None or known.shape != shape:
                known = self.kept[self.turn, number] = np.empty(shape, dtype)
            return known

        return window_of(source, index, ends, grid, made, mapping(source) is not None)
