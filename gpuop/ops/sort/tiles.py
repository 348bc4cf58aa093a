"""Tiles: values that a work-group sorts by a digit in local memory.

A word has a position in its low bits and a digit above. Threads split the words by two bits at a time: each has some
neighbouring words, counts them by these bits in the four parts of one number, and a scan of it gives the place of each word
(N. Satish, M. Harris, M. Garland, Designing efficient sorting algorithms for manycore GPUs, IPDPS 2009). Splits are stable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpuop.dsl as k

PLACES = "int64"  # old places of values, in the dtype of NumPy
SPLIT = 2  # bits of a digit at a time
PART = 16  # bits of a number that count the words of one kind
WARP = 32  # threads of a ballot
BANKS = 16  # one word is skipped after so many, so that threads with as many words use different banks of memory


def single() -> Any:
    """Return whether one thread replaces a work-group: on CPUs, but not in the interpreter, where threads are cheap."""
    return (k._target.device == "cpu") & (k._target.backend == "opencl")


class OrderedTile:
    """The words of a work-group.

    Args:
        lanes: its number of threads, side by side.
        each: the words of a thread.
        bits: the bits of a digit.
    """

    def __init__(self, lanes: int, each: int, bits: int) -> None:
        self.lanes, self.each, self.size = lanes, each, lanes * each
        self.bits = bits + bits % SPLIT  # an even number: a split must not look at positions
        self.words = k._local(k._uintArray(self.size + self.size // BANKS))

    def put(self, at: Any, digit: Any, position: Any) -> None:
        self.words[_apart(at)] = k._convert_uint(digit | position << self.bits)

    def digit(self, at: Any) -> Any:
        return k._convert_int(self.words[_apart(at)] & ((1 << self.bits) - 1))

    def position(self, at: Any) -> Any:
        return k._convert_int(self.words[_apart(at)] >> self.bits)

    def order(self) -> None:
        """Sort the words by digit, once all threads have put theirs; all threads call it together."""
        own = k._uintArray(self.each)
        k._syncThreadsLocal()
        with k._for(0, self.bits, SPLIT) as shift:
            counts = k._ulongVar(0)
            with k._for(self.each, unroll=True) as j:
                own[j] = self.words[_apart(k._localColumn * self.each + j)]
                counts.assign(counts + (_one() << _part(own[j], shift)))
            before = k._scanGroup(counts, "add", inclusive=False)
            total = k._broadcastGroup(before + counts, self.lanes - 1)
            less = sum((total << n for n in range(2 * PART, 4 * PART, PART)), total << PART)
            places = k._var(before + less)  # the place of the next word of each kind
            k._syncThreadsLocal()
            with k._for(self.each, unroll=True) as j:
                part = _part(own[j], shift)
                self.words[_apart(k._convert_int((places >> part) & ((1 << PART) - 1)))] = own[j]
                places.assign(places + (_one() << part))
            k._syncThreadsLocal()


def _one() -> Any:
    return k._convert(1, "uint64")


def _part(word: Any, shift: Any) -> Any:
    """Return the shift of a kind's count in a number."""
    return k._convert_ulong(((word >> k._convert_uint(shift)) & ((1 << SPLIT) - 1)) * PART)


def _apart(at: Any) -> Any:
    return at + at / BANKS


class RankedTile:
    """The places of a work-group's values in the order of a digit; equal ones stay in order.

    Each warp has neighbours, as many at a time as threads. These vote on each bit of the digits, so each thread knows the
    others with its digit, and the last of them adds to the warp's count (D. Merrill, M. Garland, "Single-pass
    parallel prefix scan with decoupled look-back", and A. Adinets, D. Merrill, "Onesweep", arXiv:2206.01784, rank so too).

    Args:
        lanes: its number of threads, side by side.
        each: the values of a thread.
        bits: the bits of a digit.
    """

    def __init__(self, lanes: int, each: int, bits: int) -> None:
        self.lanes, self.each, self.bits, self.size = lanes, each, bits, lanes * each
        self.radix, self.width = 1 << bits, min(lanes, WARP)
        self.warps = lanes // self.width
        self.share = -(-self.radix // lanes)  # digits of a thread
        self.counts = k._local(k._intArray(self.warps * self.radix))
        self.starts = k._local(k._intArray(self.radix))
        self.ranks = k._intArray(each)

    def position(self, j: Any) -> Any:
        """Return the position in the tile of a thread's value."""
        return self._warp() * (self.width * self.each) + j * self.width + self._lane()

    def own_digits(self) -> list[Any]:
        """Return the digits whose counts the thread adds up; the last thread may have fewer."""
        return [k._localColumn * self.share + n for n in range(self.share)]

    def place(self, j: Any) -> Any:
        """Return the place of a thread's value in the order of the tile."""
        rank = k._var(self.ranks[j])
        return self.counts[self._warp() * self.radix + (rank & (self.radix - 1))] + (rank >> self.bits)

    def ahead(self, digit: Any) -> Any:
        """Return the offset from places in the tile's order to places in the row, for a digit."""
        return self.starts[digit]

    def rank(self, digit: Callable[[Any], Any], starts: list[Any]) -> None:
        """Compute all places. All threads call it together.

        Args:
            digit: returns the digit of a thread's value, by number.
            starts: variables with the place in the row of the next value of each of the thread's digits, before and after.
        """
        with k._for(k._localColumn, self.warps * self.radix, self.lanes) as at:
            self.counts[at] = 0
        k._syncThreadsLocal()
        with k._for(self.each, unroll=True) as j:
            self._rank_in_warp(j, digit(j))
        k._syncThreadsLocal()
        totals = [self._of_warps(own) for own in self.own_digits()]
        before = k._var(k._scanGroup(sum(totals[1:], totals[0]), "add", inclusive=False))
        for own, start, total in zip(self.own_digits(), starts, totals, strict=True):
            with k._if(own < self.radix):
                self.starts[own] = start - before
                for warp in range(self.warps):
                    self.counts[warp * self.radix + own] = self.counts[warp * self.radix + own] + before
            start.assign(start + total)
            before.assign(before + total)
        k._syncThreadsLocal()

    def _rank_in_warp(self, j: Any, digit: Any) -> None:
        peers = k._var(k._convert_uint((1 << self.width) - 1))
        for bit in range(self.bits):
            one = ((digit >> bit) & 1) != 0
            votes = k._ballotGroup(one, over=self.width)
            peers.assign(peers & (votes ^ k._where(one, k._convert_uint(0), k._convert_uint(2**32 - 1))))
        lane = k._convert_uint(self._lane())
        before = k._convert_int(k._popcount(peers & ((k._convert_uint(1) << lane) - 1)))
        counted = k._intVar()
        with k._if(peers >> lane == 1):
            at = self._warp() * self.radix + digit
            counted.assign(k._atomic_add(k._pointerTo(self.counts[at]), before + 1))
        last = 31 - k._convert_int(k._clz(peers))
        rank = k._shuffleGroup(counted, last, over=self.width) + before
        self.ranks[j] = rank << self.bits | digit

    def _of_warps(self, own: Any) -> Any:
        """Return the count of a digit; each warp learns the counts of the warps before it."""
        total = k._intVar()
        with k._if(own < self.radix):
            for warp in range(self.warps):
                count = k._var(self.counts[warp * self.radix + own])
                self.counts[warp * self.radix + own] = total
                total.assign(total + count)
        return total

    def _warp(self) -> Any:
        return k._localColumn / self.width

    def _lane(self) -> Any:
        return k._localColumn % self.width
