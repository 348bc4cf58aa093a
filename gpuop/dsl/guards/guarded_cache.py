"""Cache of recordings and traces, each valid while its captured state is unchanged."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from gpuop.base.lru import BoundedCache
from gpuop.dsl.guards.guard import Snapshot, snapshot_or_reason

EVERY_CALL = "at every call: "
Made = TypeVar("Made")


class Recollection(BoundedCache[Any, tuple[Snapshot, Made]], Generic[Made]):
    """What functions have made, by their arguments, each with what they captured then."""

    __slots__ = ()

    def find_again(
        self, key: Hashable, receiver: tuple[Any, ...], parts: tuple[Any, ...], large_arrays: bool = False
    ) -> tuple[Made | None, Snapshot | str]:
        """What was made with a key, if nothing that was captured has changed, or None; and what is captured now, or why not.

        Args:
            receiver: the object that the function is a method of, if it is one, and functions that the key has the code of: these
                may take turns.
            parts, large_arrays: as of `snapshot_or_reason`.
        """
        own = _with(key, receiver)
        known = self.get(own)
        if known and known[0].holds(*parts):
            return known[1], known[0]
        captured = snapshot_or_reason(*parts, large_arrays=large_arrays)
        for each in (known, self.get(key) if receiver else None):
            if each and each[0] == captured and isinstance(captured, Snapshot):
                self[own] = captured, each[1]
                return each[1], captured
        return None, captured

    def why_again(self, key: Hashable, receiver: tuple[Any, ...], captured: Snapshot | str) -> str:
        """Why something is made once more with a key, of what is captured now; nothing where it was not made before."""
        if isinstance(captured, str):
            return f"{EVERY_CALL}{captured}"
        known = self.get(_with(key, receiver))
        return known[0].changed() if known else ""

    def keep(self, key: Hashable, receiver: tuple[Any, ...], captured: Snapshot, made: Made) -> None:
        """Remember what was made, for the object and for others that are equal to it."""
        self[key] = self[_with(key, receiver)] = captured, made


def _with(key: Hashable, receiver: tuple[Any, ...]) -> Hashable:
    """The key of what was made for an object."""
    return (key, *map(id, receiver)) if receiver else key
