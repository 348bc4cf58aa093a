"""Values that a work-group puts in the order of a digit in local memory.

They are known there by words of a digit and a position above it, which threads split by two bits at a time: each has some
neighbouring words, counts them by these bits in the four parts of one number, and a scan of it says where each word goes
(N. Satish, M. Harris, M. Garland, Designing efficient sorting algorithms for manycore GPUs, IPDPS 2009). Splits are stable.
"""

from __future__ import annotations

from typing import Any

import gpuop.dsl as k

SPLIT = 2  # bits of a digit at a time
PART = 16  # bits of a number that count the words of equal ones
BANKS = 16  # words after which one is left out, so that threads with as many each use different banks of memory


def single() -> Any:
    """Whether one thread does what a work-group does elsewhere: on CPUs, but not in the interpreter, to which lanes are cheap."""
    return (k._target.device == "cpu") & (k._target.backend == "opencl")


class OrderedTile:
    """The words of a work-group.

    Args:
        lanes: its threads, side by side.
        each: the words of a thread.
        bits: of a digit.
    """

    def __init__(self, lanes: int, each: int, bits: int) -> None:
        self.lanes, self.each, self.size = lanes, each, lanes * each
        self.bits = bits + bits % SPLIT  # a split looks at no position
        self.words = k._local(k._uintArray(self.size + self.size // BANKS))

    def put(self, at: Any, digit: Any, position: Any) -> None:
        self.words[_apart(at)] = k._convert_uint(digit | position << self.bits)

    def digit(self, at: Any) -> Any:
        return k._convert_int(self.words[_apart(at)] & ((1 << self.bits) - 1))

    def position(self, at: Any) -> Any:
        return k._convert_int(self.words[_apart(at)] >> self.bits)

    def order(self) -> None:
        """Put the words in the order of their digits; all threads have put theirs, and come here together."""
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
            places = k._var(before + less)  # of the next word of each kind
            k._syncThreadsLocal()
            with k._for(self.each, unroll=True) as j:
                part = _part(own[j], shift)
                self.words[_apart(k._convert_int((places >> part) & ((1 << PART) - 1)))] = own[j]
                places.assign(places + (_one() << part))
            k._syncThreadsLocal()


def _one() -> Any:
    return k._convert(1, "uint64")


def _part(word: Any, shift: Any) -> Any:
    """Where in a number words of a kind are counted."""
    return k._convert_ulong(((word >> k._convert_uint(shift)) & ((1 << SPLIT) - 1)) * PART)


def _apart(at: Any) -> Any:
    return at + at / BANKS
