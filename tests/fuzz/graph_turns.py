"""Operators of random graphs that nothing is fused with: iterations, also of one another, and functions of the host."""

from __future__ import annotations

import numpy as np

import gpuop as gp

from .graph_distant import blur, histogram
from .graph_kinds import KINDS, also, mix, wrapped

TURN = {name: KINDS[name].make for name in ("along", "spread", "level", "looped", "sum None")}


def halfway(f, *more):
    return f * 0.5 + 1


also("iterated", "iteration", "f", lambda f: gp.iterate(halfway, f, times=3))
also("iterated stencil", "iteration", "f", lambda f: gp.iterate(blur, f, times=2), rank=2)
also("iterated with another", "iteration", "ff", lambda f, g: gp.iterate(lambda u: mix(u, g * 2 + 1), f, times=2))
also("iterated once", "iteration", "i", lambda i: gp.iterate(lambda u: wrapped(u, u), i, times=1))
also("iterated number", "iteration", "FF", lambda a, b: gp.iterate(lambda u: TURN["level"](u, b), a, times=2))
also(
    "iterated reduction", "iteration", "f", lambda f: gp.iterate(lambda u: u - TURN["sum None"](u), f, times=2), rank=2
)


@lambda make: also("iterated pair", "iteration", "fi", make, rank=2)
def iterated_pair(f, i):
    return gp.iterate(lambda u, n: (mix(u, KINDS["real"].make(n)), TURN["spread"](n)), (f, i), times=3)


@lambda make: also("iterated until", "iteration", "fF", make)
def iterated_until(f, bound):
    return gp.iterate(lambda u: u + abs(bound) + 0.5, f, times=5, until=lambda u: u.max() > bound, every=2)


@lambda make: also("iterated in turns", "iteration", "ff", make)
def iterated_in_turns(f, g):
    """An iteration each turn of which is one, of a function of the host too."""
    return gp.iterate(lambda u: host_mean(gp.iterate(lambda v: mix(v, u), g, times=2), u), f, times=2)


# --- on the host --------------------------------------------------------------------------------------------------------


def mean(a, b):
    return (a + b) * np.float32(0.5)


def floor_and_sign(a):
    return np.floor(a), (a > 0)


def ranked(a):
    return np.argsort(a, axis=-1, kind="stable").astype("int32")


def host_mean(f, g):
    return gp.HostOperator(mean, f, g, outputs=f.type)


also("host mean", "host", "ff", host_mean)
also("host ranks", "host", "f", lambda f: gp.HostOperator(ranked, f, outputs=f.type.replace(dtype="int32")), rank=2)
also("host number", "host", "f", lambda f: gp.HostOperator(np.max, f, outputs=gp.FieldType(())), rank=2)
also("host of a number", "host", "FF", host_mean)
also(
    "host counts",
    "host",
    "i",
    lambda i: gp.HostOperator(np.sort, histogram(i), outputs=gp.FieldType(20, dtype="int32")),
    rank=2,
)


@lambda make: also("host pair", "host", "f", make)
def host_pair(f):
    return gp.HostOperator(floor_and_sign, f, outputs=(f.type, f.type.replace(dtype="bool")))
