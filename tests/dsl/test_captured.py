"""Captured objects of operators and pipelines: changes leave no stale result, and objects that cannot change cost no recording."""

from __future__ import annotations

import collections
import contextlib
import decimal
import enum
import functools
import gc
import importlib.util
import itertools
import json
import logging
import math
import operator as python_operators
import os
import random
import re
import statistics
import textwrap
import time
import types
import typing
import warnings
import weakref
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from scipy import interpolate, ndimage, signal, stats
from skimage import morphology, transform

import gpuop as gp
from gpuop.base.errors import Loc
from gpuop.dsl import *
from gpuop.dsl import __all__ as VOCABULARY
from gpuop.dsl.guards.trace_constants import PURE_PARTS, is_constant

ONE = np.ones(3, np.float32)
SIZE = 1.0
NUMBER, LIST, NESTED, TABLE, SET, ARRAY = 2, [2], ([0, [2]],), {"k": {"n": 2}}, {2}, np.array([2.0])
LARGE = np.full(100_000, 2.0)
module = types.ModuleType("module")
module.inner = types.ModuleType("inner")
POLY = np.poly1d([2.0])
settings = types.SimpleNamespace(k=2)


class Plain:
    k = 2


class Flagged(float):
    k = 2


class Named(str):
    k = 2


class Point(typing.NamedTuple):
    x: int

    def k(self):
        return NUMBER * self.x


class Mode(enum.IntEnum):
    A = 1


@dataclass(frozen=True)
class Frozen:
    held: list


SERIES = np.polynomial.Polynomial([2.0])


class OwnSeries(np.polynomial.Polynomial):
    pass


class Shift(transform.AffineTransform):
    pass


def number_of(*values):
    return NUMBER


OWN_SERIES, SHIFT = OwnSeries([2.0]), Shift(translation=(2, 0))
SPLINE = interpolate.CubicSpline([0.0, 1, 2], [2.0, 0, 0])
VECTORIZED = np.vectorize(number_of)
SEEDS_OF_SCIPY = {stats.randint(0, 10).rvs(random_state=n): n for n in range(100)}
SEEDS = {np.random.RandomState(n).randint(10): n for n in range(100)}  # by the first number
INSTANCE_OF_ITS_OWN, TWICE = types.SimpleNamespace(n=1), functools.partial(pow, 2)
INSTANCE, FLAGGED, NAMED, POINT, FROZEN = Plain(), Flagged(1.0), Named("a"), Point(1), Frozen([2])


def helper():
    return NUMBER


def with_attribute():
    return with_attribute.k


def with_default(k=2, *, more=1):
    return k * more


class Counter:
    """A callable with a state."""

    def __init__(self):
        self.k = 2

    def __call__(self, *_):
        return self.k


class Slotted:
    __slots__ = ("k",)


class Base:
    def total(self):
        return self.k


class Derived(Base):
    """An object whose values come from a base, a property, a method of a class, and another object."""

    k, other = 2, Plain()
    doubled = property(lambda self: self.k)

    def total(self):
        return super().total()

    @classmethod
    def own(cls):
        return cls.k

    def of_other(self):
        return self.other.k


class Indexed:
    """Attributes that its own code finds."""

    def __getattr__(self, name):
        return TABLE["k"]["n"]

    def __getitem__(self, place):
        return LIST[place]


@dataclass
class Options:
    k: int = 2
    held: list = field(default_factory=lambda: [LIST[0]])

    def __post_init__(self):
        self.first = self.held[0]


def through_local():
    here = module
    return here.k


def attribute_k(owner):
    return owner.k


def all_names(owner):
    """Names that are computed."""
    return sum(getattr(owner, name * 1) for name in ["k"])


def imported():
    import math as m

    return m.k


def imported_name():
    from math import k

    return k


@functools.lru_cache
def cached():
    return NUMBER + TURNED[0]


TURNED = [0]  # what a cached function has not seen
SLOTTED, DERIVED, INDEXED = Slotted(), Derived(), Indexed()
SLOTTED.k = 2
COUNTER = Counter()
UFUNC = np.frompyfunc(COUNTER, 1, 1)
PARTIAL = functools.partial(python_operators.getitem, LIST)
PARAMETER = gp.Parameter(2.0)


@gp.operator
def by_number(field):
    return _readTensor(field) * NUMBER


def set_global(name, make=lambda k: k):
    return lambda k: globals().__setitem__(name, make(k))


def set_pi(k):
    np.pi = math.pi * k / 2


def set_file(path):
    return lambda k: np.save(path, np.array(k))


# By what is captured: a number that depends on it, and what changes it to 2 or 3.
CASES = {
    "a global": (lambda: NUMBER, set_global("NUMBER")),
    "a global of a helper": (lambda: helper(), set_global("NUMBER")),
    "a global of a function within": (lambda: sum((lambda: NUMBER)() for _ in range(1)), set_global("NUMBER")),
    "a global that is a function": (lambda: helper2(), lambda k: globals().__setitem__("helper2", lambda: k)),
    "a builtin that is hidden": (lambda: len("ab"), lambda k: globals().__setitem__("len", lambda _: k)),
    "an item of a list": (lambda: LIST[0], lambda k: LIST.__setitem__(0, k)),
    "an item of a list in a list in a tuple": (lambda: NESTED[0][1][0], lambda k: NESTED[0][1].__setitem__(0, k)),
    "an entry of a dict in a dict": (lambda: TABLE["k"]["n"], lambda k: TABLE["k"].__setitem__("n", k)),
    "a member of a set": (lambda: max(SET), lambda k: (SET.clear(), SET.add(k))),
    "an element of an array": (lambda: float(ARRAY[0]), lambda k: ARRAY.__setitem__(0, k)),
    "an attribute of a module": (lambda: module.k, lambda k: setattr(module, "k", k)),
    "an attribute of a module in a module": (lambda: module.inner.k, lambda k: setattr(module.inner, "k", k)),
    "a module in a module": (lambda: module.inner.k, lambda k: setattr(module, "inner", types.SimpleNamespace(k=k))),
    "an attribute of NumPy": (lambda: round(2 * np.pi / math.pi), set_pi),
    "an attribute of a namespace": (lambda: settings.k, lambda k: setattr(settings, "k", k)),
    "an attribute of a function": (with_attribute, lambda k: setattr(with_attribute, "k", k)),
    "a default": (lambda: with_default(), lambda k: setattr(with_default, "__defaults__", (k,))),
    "a default of a keyword": (lambda: with_default(), lambda k: with_default.__kwdefaults__.update(more=k / 2)),
    "an attribute of a class": (lambda: Plain.k, lambda k: setattr(Plain, "k", k)),
    "an attribute of an object": (lambda: INSTANCE.k, lambda k: setattr(INSTANCE, "k", k)),
    "an attribute of a number": (lambda: FLAGGED.k, lambda k: setattr(FLAGGED, "k", k)),
    "an attribute of a text": (lambda: NAMED.k, lambda k: setattr(NAMED, "k", k)),
    "a method of a tuple": (lambda: POINT.k(), set_global("NUMBER")),
    "an attribute of an enum": (lambda: Mode.A.extra, lambda k: setattr(Mode.A, "extra", k)),
    "what a frozen object holds": (lambda: FROZEN.held[0], lambda k: FROZEN.held.__setitem__(0, k)),
    "an object that is called": (lambda: COUNTER(), lambda k: setattr(COUNTER, "k", k)),
    "a local name of a module": (through_local, lambda k: setattr(module, "k", k)),
    "a module that a helper gets": (lambda: attribute_k(module), lambda k: setattr(module, "k", k)),
    "an object that a helper gets": (lambda: attribute_k(INSTANCE), lambda k: setattr(INSTANCE, "k", k)),
    "a class that a helper gets": (lambda: attribute_k(Plain), lambda k: setattr(Plain, "k", k)),
    "an object in a container": (lambda: attribute_k([INSTANCE][0]), lambda k: setattr(INSTANCE, "k", k)),
    "a text for an attribute": (lambda: getattr(module, "k"), lambda k: setattr(module, "k", k)),  # noqa: B009
    "a text that is computed": (lambda: all_names(INSTANCE), lambda k: setattr(INSTANCE, "k", k)),
    "a text that is computed, of a module": (lambda: all_names(module), lambda k: setattr(module, "k", k)),
    "a slot": (lambda: SLOTTED.k, lambda k: setattr(SLOTTED, "k", k)),
    "a property": (lambda: DERIVED.doubled, lambda k: setattr(Derived, "k", k)),
    "a method of a base": (lambda: DERIVED.total(), lambda k: setattr(Derived, "k", k)),
    "a method that is replaced": (lambda: DERIVED.total(), lambda k: setattr(Base, "total", lambda self: k)),
    "a method of a class": (lambda: Derived.own(), lambda k: setattr(Derived, "k", k)),
    "an object of an object": (lambda: DERIVED.of_other(), lambda k: setattr(Derived.other, "k", k)),
    "an attribute that code finds": (lambda: INDEXED.k, lambda k: TABLE["k"].__setitem__("n", k)),
    "an item that code finds": (lambda: INDEXED[0], lambda k: LIST.__setitem__(0, k)),
    "an object that is made": (lambda: Options(k=1).first, lambda k: LIST.__setitem__(0, k)),
    "an object of the same class": (lambda: type(DERIVED)().k, lambda k: setattr(Derived, "k", k)),
    "a method that is held": (DERIVED.own, lambda k: setattr(Derived, "k", k)),
    "a module that is imported": (imported, lambda k: setattr(math, "k", k)),
    "a name that is imported": (imported_name, lambda k: setattr(math, "k", k)),
    "what a cache is told to forget": (lambda: cached(), lambda k: (cached.cache_clear(), set_global("NUMBER")(k))),
    "a polynomial": (lambda: float(POLY(0)), lambda k: POLY.__setitem__(0, k)),
    "a polynomial with a domain": (lambda: float(SERIES(0)), lambda k: SERIES.coef.__setitem__(0, k)),
    "a polynomial of the user": (lambda: float(OWN_SERIES(0)), lambda k: OWN_SERIES.coef.__setitem__(0, k)),
    "a transform of the user": (lambda: float(SHIFT([[0, 0]])[0, 0]), lambda k: SHIFT.params.__setitem__((0, 2), k)),
    "a spline": (lambda: float(SPLINE(0)), lambda k: SPLINE.c.__setitem__((-1, 0), k)),
    "a vectorized function": (lambda: int(VECTORIZED(0)), set_global("NUMBER")),
    "a function that a library calls": (lambda: int(np.apply_along_axis(number_of, 0, ONE)), set_global("NUMBER")),
    "a random number of a library": (
        lambda: int(stats.randint(0, 10).rvs()), lambda k: np.random.seed(SEEDS_OF_SCIPY[k])  # noqa: NPY002
    ),
    "a ufunc of Python's": (lambda: UFUNC(0), lambda k: setattr(COUNTER, "k", k)),
    "a partial": (lambda: PARTIAL(0), lambda k: LIST.__setitem__(0, k)),
    "a random number": (lambda: int(np.random.randint(10)), lambda k: np.random.seed(SEEDS[k])),  # noqa: NPY002
    "a state of NumPy's": (lambda: np.get_printoptions()["precision"], lambda k: np.set_printoptions(precision=k)),
    "an import": (lambda: __import__("math").k, lambda k: setattr(math, "k", k)),
    "a value of a field": (lambda: float(PARAMETER), PARAMETER.set),
}  # fmt: skip


def check(function, change):
    """The function gives what the last change made of it."""
    try:
        for k in (2, 2, 3, 3, 2):
            change(k)
            assert function() == k
    finally:
        change(2)


@pytest.fixture(autouse=True)
def reference(monkeypatch):
    monkeypatch.setattr(np, "pi", math.pi)
    monkeypatch.setattr(math, "k", 2, raising=False)
    with np.printoptions(), gp.use_device("reference"):
        yield


@pytest.mark.parametrize("captured", CASES)
def test_a_change_is_seen(captured, monkeypatch):
    number, change = CASES[captured]
    field = gp.ScalarField(ONE)
    multiplied = gp.operator(lambda f: _readTensor(f) * number())
    by_argument = gp.operator(lambda f, given: _readTensor(f) * given())
    piped = gp.pipeline(lambda x: gp.ScalarField(x) * number())
    check(lambda: multiplied(field).numpy()[0], change)
    check(lambda: by_argument(field, number).numpy()[0], change)
    check(lambda: piped(ONE)[0], change)
    globals().pop("len", None)


def first(piped):
    return piped(ONE)[0]


def nowhere(field):
    with _if(_column < 0):
        _writeTensor(_out0, _readTensor(field))


def test_defaults_may_be_set():
    field = gp.ScalarField(ONE)

    def scaled(f, n=2, *, g=field):
        return _readTensor(f) * n + _readTensor(g)

    def scaled_array(a, n=2, *, m=1):
        return gp.ScalarField(a) * n + m

    multiplied, piped = gp.operator(scaled), gp.pipeline(scaled_array)
    assert multiplied(field).numpy()[0] == piped(ONE)[0] == 3
    scaled.__defaults__ = scaled_array.__defaults__ = (5,)
    assert multiplied(field).numpy()[0] == piped(ONE)[0] == 6
    scaled.__kwdefaults__["g"] = gp.ScalarField(4 * ONE)
    scaled_array.__kwdefaults__["m"] = 4
    assert multiplied(field).numpy()[0] == piped(ONE)[0] == 9


def test_a_file_is_read_again(tmp_path):
    path = tmp_path / "k.npy"
    multiplied = gp.operator(lambda f: _readTensor(f) * float(np.load(str_path)))
    str_path = str(path)
    check(lambda: multiplied(gp.ScalarField(ONE)).numpy()[0], set_file(path))


def test_operators_that_a_pipeline_calls():
    """Their globals, and others in their place, as after a cell of a notebook is run again."""
    scale = by_number

    @gp.pipeline
    def inner(x):
        return scale(x if isinstance(x, gp.Field) else gp.ScalarField(x))

    @gp.pipeline
    def outer(x):
        return inner(gp.ScalarField(x))

    def redefine(k):
        nonlocal scale
        scale = gp.operator(lambda f: _readTensor(f) * k)

    def default(k):
        nonlocal scale
        scale = gp.operator(nowhere, outputs=lambda f: f.type, default=k)

    for piped in (inner, outer):
        for change in (set_global("NUMBER"), redefine, default):
            check(functools.partial(first, piped), change)
        scale = by_number


def test_fields_that_a_pipeline_captures():
    gain = gp.Parameter(2.0)
    live = gp.pipeline(lambda x: gp.ScalarField(x) * gain)
    check(lambda: live(ONE)[0], gain.set)
    bound = gp.pipeline(lambda x: gp.ScalarField(x) * other)
    other = gain

    def rebind(k):
        nonlocal other
        other = gp.ScalarField(np.full(3, k, np.float32))

    check(lambda: bound(ONE)[0], rebind)


def test_what_is_captured_is_compared_by_type_and_sign():
    value = 0.0
    signed = gp.operator(lambda f: _copysign(_readTensor(f), np.real(value)))
    source = gp.operator(lambda f, z: _copysign(_readTensor(f), max(z.imag for z in z)))
    piped = gp.pipeline(lambda x: np.copysign(gp.ScalarField(x), 1) * (1 if math.copysign(1, value) > 0 else -1))
    field = gp.ScalarField(ONE)
    for value in (0.0, -0.0, 0.0, np.float32(-0.0)):
        assert signed(field).numpy()[0] == piped(ONE)[0] == np.copysign(1, value)
    for imaginary in (0.0, -0.0, 0.0):
        assert source(field, frozenset([complex(0, imaginary)])).numpy()[0] == np.copysign(1, imaginary)


def test_large_arrays_are_constants_of_pipelines():
    """To compare them at every call would cost more than the call; operators are recorded again."""
    field, x = gp.ScalarField(ONE), np.ones(LARGE.shape)
    multiplied = gp.operator(lambda f: _readTensor(f) * LARGE[7])
    check(lambda: multiplied(field).numpy()[0], lambda k: LARGE.__setitem__(7, k))
    piped = gp.pipeline(lambda a: gp.ScalarField(a) * gp.ScalarField(LARGE))
    assert piped(x)[7] == 2
    globals()["LARGE"] = np.full(100_000, 3.0)  # another one is seen
    assert piped(x)[7] == 3


# --- not again ----------------------------------------------------------------------------------------------------------


def pure(k):
    return k + 0.5


def test_large_arrays_of_objects_may_change_in_place():
    """An object is there to change: its array is looked at again, whatever its size, and `explain` says that it is."""

    class Camera:
        def __init__(self):
            self.dark = np.zeros((129, 128), np.float32)

        @gp.pipeline
        def corrected(self, picture):
            return gp.ScalarField(picture) - gp.ScalarField(self.dark)

    camera, picture = Camera(), np.ones((129, 128), np.float32)
    assert (camera.corrected(picture) == 1).all()
    camera.dark += 5
    assert (camera.corrected(picture) == -4).all()
    assert "`dark`, an array of more than 64 KiB" in camera.corrected.explain(picture)


def test_what_cannot_change_is_recorded_once():
    weights, table, edge = [0.25, 0.5], np.arange(9.0), {"mode": "wrap"}

    def number(pair=(1, 2)):
        total = sum(weights) + math.sqrt(pair[1]) + np.float32(1) + np.pi + float(np.sum(table)) + pure(1)
        total += settings.k + Plain.k + INSTANCE_OF_ITS_OWN.n + POINT.x + TWICE(2)
        total += sum(i * j for i, j in np.ndindex(2, 3)) + np.linalg.norm([3.0, 4.0]) + np.mgrid[:2, :2].sum()
        total += np.finfo(np.float32).eps + np.array([1, 2]).mean() + max(itertools.accumulate([1, 2]))
        return float(total if isinstance(total, float) else np.exp(0)) * len(edge["mode"])

    def body(f, k):
        if not isinstance(f, gp.Field) or k is None:
            raise ValueError(k)
        return _readTensor(f, _column + 1) * number() + k

    result = gp.operator(body)
    piped = gp.pipeline(
        lambda x: np.clip(np.sqrt(result(gp.ScalarField(x), 2)), 0, gp.ScalarField(table[:3], dtype="f"))
    )
    counts = {"operator": 0, "pipeline": 0}
    record, trace = result._record, piped._trace_results

    def counted(what, call):
        def calling(*arguments):
            counts[what] += 1
            return call(*arguments)

        return calling

    result._record, piped._trace_results = counted("operator", record), counted("pipeline", trace)
    results = [piped(ONE).tolist() for _ in range(4)]
    assert counts == {"operator": 1, "pipeline": 1} and results[0] == results[3]
    weights = list(weights)  # another one that is equal
    piped(ONE)
    assert counts == {"operator": 1, "pipeline": 1}
    weights.append(0.0)
    piped(ONE)
    assert counts == {"operator": 2, "pipeline": 2}


class Chosen(enum.Enum):
    A = 1
    B = 2


class Bounded(typing.NamedTuple):
    low: float = 0.5
    high: float = 2.5


@dataclass(frozen=True)
class Sizes:
    near: float = 1.0
    far: Bounded = field(default_factory=Bounded)

    def mean(self):
        return (self.near + self.far.high) / 2


class Blurring:
    sizes = Sizes()

    def __init__(self, by):
        self.by = by

    @property
    def doubled(self):
        return 2 * self.by

    def __call__(self, f):
        return gp.ndimage.gaussian_filter(f, self.sizes.mean()) * self.doubled


def blurred_by(library, f):
    return library.gaussian_filter(f, 1.0)


def by_import(f):
    from gpuop import ndimage as nd

    return nd.gaussian_filter(f, 1.0)


def by_local_name(f):
    nd, la, xp = gp.ndimage, gp.linalg, np
    return nd.gaussian_filter(f, 1.0) * xp.pi + la.norm(f)


def by_random(f):
    r = gp.random
    return f + r.uniform(r.key(3), f.field_shape)


class Near(enum.IntFlag):
    NEAR = 1
    FAR = 2


class Titled(str, enum.Enum):
    SHARP = "sharp"


LOG, PLACE, WORD, PRICE = logging.getLogger("gpuop.tests"), Path("/data/in"), re.compile("a+"), decimal.Decimal("1.5")


def by_warning(f):
    warnings.warn("the picture is dark", UserWarning, stacklevel=2)
    return f * 2


def by_log(f):
    LOG.info("blurs %s", f.field_shape)
    logging.debug("by %s", 2)
    logging.getLogger(__name__).debug("again")
    return f * 2


def by_path(f):
    return f * len((PLACE / "a.npy").with_suffix(".txt").name) * (Path("b").suffix == "") * len(os.path.join("a", "b"))


def by_text(f):
    number = len(WORD.sub("b", "caat")) + len(re.split(",", "a,b")) + len(json.dumps({"a": [1]})) + float(PRICE)
    with contextlib.suppress(KeyError):
        number += statistics.mean([1, 2]) + len(textwrap.dedent(" a")) + len(collections.Counter("aab"))
    return f * number


SIZES, BLURRING = Sizes(), Blurring(2)
AGAIN = {
    "a local name": by_local_name,
    "random numbers by a local name": by_random,
    "an argument of a helper": lambda f: blurred_by(gp.ndimage, f),
    "getattr": lambda f: getattr(gp.ndimage, "gaussian" + "_filter")(f, 1.0),
    "an import": by_import,
    "an object with defaults": lambda f: f * SIZES.near,
    "a method": lambda f: f * SIZES.mean(),
    "an object that is called": lambda f: BLURRING(f),
    "an object that is made": lambda f: f * Sizes(3.0, Bounded(high=4.0)).mean(),
    "a member of an enum": lambda f: f * (2 if Chosen(1) is Chosen.A else len(Chosen)),
    "a partial that is made": lambda f: functools.partial(gp.ndimage.gaussian_filter, sigma=1.0)(f),
    "a member of a flag": lambda f: f * (2 if Near.NEAR | Near.FAR else 3) * len(Titled.SHARP.value),
    "a warning": by_warning,
    "a log": by_log,
    "a path": by_path,
    "functions of text and numbers": by_text,
    "printing": lambda f: print("blurs", end="") or f * 2,  # noqa: T201
    "a cached function": lambda f: f * halved(3.0),
}


@functools.lru_cache
def halved(k):
    return k / 2


def traces(piped, calls):
    """The number of times that calls trace a pipeline."""
    counts, trace = [0], type(piped)._trace_results

    def counted(returned):
        counts[0] += 1
        return trace(piped, returned)

    piped._trace_results = counted
    for call in calls:
        call()
    return counts[0]


@pytest.mark.filterwarnings("ignore:the picture is dark")
@pytest.mark.parametrize("name", AGAIN)
def test_names_that_are_passed_on_are_traced_once(name):
    x = np.linspace(0, 1, 12, dtype="f").reshape(3, 4)
    case = AGAIN[name]
    piped = gp.pipeline(lambda a: case(gp.ScalarField(a)))
    piped(x)  # which may load parts of gpuop
    assert traces(piped, [lambda: piped(x)] * 3) <= 1
    assert traces(piped, [lambda: piped(x)] * 2) == 0
    assert "traced again" not in piped.explain(x) or "is new or gone" in piped.explain(x)


@pytest.mark.filterwarnings("ignore:the picture is dark")
@pytest.mark.parametrize("name", ["a warning", "a log", "a path"])
def test_paths_and_logs_as_arguments(name):
    """Equal paths, and the same logger, are the same constants."""
    x, case = np.ones((3, 4), "f"), AGAIN[name]
    piped = gp.pipeline(lambda a, path, log: case(gp.ScalarField(a)) * len(path.name) * len(log.name))
    assert traces(piped, [lambda: piped(x, Path("/a") / "b.npy", LOG)] * 3) == 1, piped.explain(
        x, Path("/a/b.npy"), LOG
    )
    assert piped(x, Path("/a/cd"), LOG)[0, 0] * 5 == piped(x, Path("/a/b.npy"), LOG)[0, 0] * 2


def test_what_the_standard_library_asks_is_asked_again(tmp_path):
    """The time, files, and settings may be others at each call."""
    path, log = tmp_path / "gain.txt", logging.getLogger("gpuop.tests.level")
    read = gp.pipeline(lambda a: gp.ScalarField(a) * float(path.read_text()))
    level = gp.pipeline(lambda a: gp.ScalarField(a) * log.level)
    enabled = gp.pipeline(lambda a: gp.ScalarField(a) * log.isEnabledFor(logging.INFO))
    exists = gp.pipeline(lambda a: gp.ScalarField(a) * os.path.exists(path))
    timed = gp.pipeline(lambda a: gp.ScalarField(a) * time.perf_counter())
    drawn = gp.pipeline(lambda a: gp.ScalarField(a) * random.random())
    for gain in (2, 3):
        path.write_text(str(gain))
        log.setLevel(10 * gain)
        assert (read(ONE)[0], level(ONE)[0], enabled(ONE)[0]) == (gain, 10 * gain, gain == 2)
    assert exists(ONE)[0] == 1
    path.unlink()
    assert exists(ONE)[0] == 0
    assert traces(timed, [lambda: timed(ONE)] * 3) == traces(drawn, [lambda: drawn(ONE)] * 3) == 3
    steps, boxed = collections.deque([2.0], maxlen=3), np.empty(1, object)
    boxed[0] = [2.0]
    last = gp.pipeline(lambda a: gp.ScalarField(a) * steps[-1] * boxed[0][0])
    assert last(ONE)[0] == 4
    steps.append(5.0)
    assert last(ONE)[0] == 10
    boxed[0][0] = 3.0
    assert last(ONE)[0] == 15
    named = gp.pipeline(lambda a: gp.ScalarField(a) * len(logging.getLevelName(17)))
    lengths = [named(ONE)[0]]
    logging.addLevelName(17, "FINE")
    assert [*lengths, named(ONE)[0]] == [len("Level 17"), 4]
    message = "traced again: at every call: `read_text` of a PosixPath, may be another each time"
    path.write_text("1")
    assert said(read.explain(ONE)) == message


def test_objects_take_turns():
    """Each has its own trace; others that are equal share one."""

    class Scaled:
        def __init__(self, k):
            self.k = k

        @gp.pipeline
        def scaled(self, x):
            return gp.ScalarField(x) * self.k

    one, other, equal = Scaled(2), Scaled(3), Scaled(3)
    counts, trace = [0], type(one.scaled)._trace_results
    Scaled.scaled._trace_results = lambda returned: (
        counts.__setitem__(0, counts[0] + 1) or trace(Scaled.scaled, returned)
    )
    assert [each.scaled(ONE)[0] for each in (one, other, equal, one, other, equal)] == [2, 3, 3, 2, 3, 3]
    assert counts == [2]
    one.k = 5
    assert [one.scaled(ONE)[0], other.scaled(ONE)[0]] == [5, 3] and counts == [3]


def said(text):
    (line,) = [line for line in text.splitlines() if "traced again" in line]
    return line


def drawn_by_a_helper(f):
    return f * GENERATOR.random()


GENERATOR = np.random.default_rng(0)


def test_a_third_trace_warns_once():
    """With the object, the function that uses it, and the line; not if arguments differ, or where nothing was traced again."""
    drawn = gp.pipeline(lambda a: drawn_by_a_helper(gp.ScalarField(a)))
    steady = gp.pipeline(lambda a, k: gp.ScalarField(a) * k)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(6):
            steady(ONE, n)
        drawn(ONE), drawn(ONE)
        assert not caught
        for _ in range(4):
            drawn(ONE)
    (warning,) = caught
    message = (
        "pipeline `<lambda>` is traced for the third time with equal arguments: `GENERATOR`, a Generator, which "
        "`drawn_by_a_helper` uses, may be another each time; make it an argument or a gp.Parameter, or compute it outside\n"
    )
    loc = Loc(__file__, drawn_by_a_helper.__code__.co_firstlineno + 1)
    assert warning.filename == __file__
    assert str(warning.message) == f"{message}  at {loc}\n    return f * GENERATOR.random()"


def test_a_name_that_changes_at_each_call_is_told():
    scale = 2
    scaled = gp.pipeline(lambda a: gp.ScalarField(a) * scale)
    assert scaled(ONE)[0] == 2
    scale = 3
    assert scaled(ONE)[0] == 3
    scale = 4
    message = r"`scale`, a variable around the function, is bound anew.*\n  at .*\n.*gp.pipeline"
    with pytest.warns(UserWarning, match=message):
        assert scaled(ONE)[0] == 4


@pytest.mark.parametrize(
    "computed",
    [
        lambda: signal.windows.gaussian(5, 1.0)[2],
        lambda: ndimage.gaussian_filter(np.eye(5), 1.0)[0, 0],
        lambda: ndimage.label(np.eye(5))[1],
        lambda: signal.butter(3, 0.3)[0][0],
        lambda: np.fft.fft(np.ones(4))[0].real,
        lambda: np.polyfit(np.arange(4.0), np.arange(4.0), 1)[0],
        lambda: np.linalg.slogdet(np.eye(3))[0],
        lambda: morphology.disk(3)[0, 3],
        lambda: transform.AffineTransform(rotation=0.3).params[0, 0],
        lambda: float(np.empty(3).size),
    ],
)
def test_functions_of_libraries_are_constants(computed):
    scaled = gp.pipeline(lambda x: gp.ScalarField(x) * float(computed()))
    np.testing.assert_array_equal(scaled(ONE), ONE * np.float32(computed()))
    assert traces(scaled, [lambda: scaled(ONE)] * 3) == 0


def test_types_of_arrays_are_constants():
    checked = gp.pipeline(lambda a: gp.ScalarField(a) * (1 + isinstance(a, np.ndarray)))
    assert traces(checked, [lambda: checked(ONE)] * 3) == 1


def test_why_it_is_traced_again_is_told():
    INSTANCE.k = 2  # an attribute of its own, whichever tests ran before
    scale, weights, rng = 2.0, [1.0], np.random.default_rng(0)
    piped = gp.pipeline(lambda x: gp.ScalarField(x) * (scale * SIZE * weights[0] * INSTANCE.k))
    assert "traced again" not in piped.explain(ONE) + str(piped.profile(ONE, steps=1))
    scale = 3.0
    message = "traced again: `scale`, a variable around the function, is bound anew"
    assert said(piped.explain(ONE)) == said(str(piped.profile(ONE, steps=1))) == message
    weights[0] = 2.0
    assert said(piped.explain(ONE)) == "traced again: `weights` holds something else"
    try:
        for owner, name, whose in ((globals(), "SIZE", f"module `{__name__}`"), (vars(INSTANCE), "k", "a `Plain`")):
            owner[name] = 3.0
            with gp.profile() as times:
                piped(ONE)
            line = said(str(times))
            assert line == f"pipeline `<lambda>` traced again: `{name}` of {whose} is bound anew"
    finally:
        globals().update(SIZE=1.0)
        INSTANCE.k = 2
    drawn = gp.pipeline(lambda x: gp.ScalarField(x) * rng.random())
    message = "traced again: at every call: `rng`, a Generator, which `<lambda>` uses, may be another each time"
    assert said(drawn.explain(ONE)) == message
    assert json.loads(drawn.explain(ONE, format="json"))["traced_again"] == message.removeprefix("traced again: ")
    pipeline = gp.pipeline(lambda x: gp.ScalarField(x) * float(PARAMETER))
    assert said(pipeline.explain(ONE)) == "traced again: at every call: it looks at values of Fields"
    with gp.profile() as times:
        drawn(ONE)
        drawn(ONE)
    assert said(str(times)) == f"pipeline `<lambda>` traced again 2 times: {message.removeprefix('traced again: ')}"


# --- methods ------------------------------------------------------------------------------------------------------------


class Filter:
    gain = 2.0

    def __init__(self, k=1.0):
        self.k = k

    def factor(self):
        return self.k * self.gain

    @gp.operator
    def scaled(self, field, more=1.0):
        """Scales."""
        return _readTensor(field) * self.factor() * more

    @gp.pipeline
    def piped(self, x, more=1.0):
        return self.scaled(gp.ScalarField(x), more=more)

    @gp.operator(outputs=lambda self, field: field.type.replace(dtype=self.dtype))
    def converted(self, field):
        return _readTensor(field)

    @staticmethod
    @gp.operator
    def doubled(field):
        return _readTensor(field) * 2

    @classmethod
    @gp.operator
    def gained(cls, field):
        return _readTensor(field) * cls.gain

    @staticmethod
    @gp.pipeline
    def doubling(x):
        return gp.ScalarField(x) * 2


class Strong(Filter):
    gain = 3.0


@dataclass
class Equal(Filter):
    """Objects that are equal, and cannot be hashed."""

    k: float = 1.0


class Pair(typing.NamedTuple):
    a: float
    scaled = gp.operator(lambda self, f: _readTensor(f) * self.a)


def test_methods():
    field = gp.ScalarField(ONE)
    for filters in ([Filter(), Filter(5.0)], [Strong(), Strong(5.0)], [Equal(), Equal(5.0)]):
        for each, k in zip(filters, (1, 5), strict=True):
            expected = k * each.gain
            assert each.scaled(field).numpy()[0] == each.piped(ONE)[0] == expected
            assert each.scaled(field, more=2.0).numpy()[0] == each.piped(ONE, more=2.0)[0] == 2 * expected
            assert each.gained(field).numpy()[0] == type(each).gained(field).numpy()[0] == each.gain
            assert each.doubled(field).numpy()[0] == Filter.doubled(field).numpy()[0] == each.doubling(ONE)[0] == 2
            out = np.empty_like(ONE)
            assert each.piped(ONE, out=out) is out and out[0] == expected
    assert Filter.scaled(Strong(5.0), field).numpy()[0] == super(Strong, Strong(5.0)).scaled(field).numpy()[0] == 15
    assert [Pair(2.0).scaled(field).numpy()[0], Pair(3.0).scaled(field).numpy()[0]] == [2, 3]


def test_objects_of_methods_change():
    field = gp.ScalarField(ONE)
    for each in (Filter(), Equal()):
        for change in (
            lambda k, each=each: setattr(each, "k", k / each.gain),
            lambda k: setattr(Filter, "gain", float(k)),
            lambda k, each=each: setattr(each, "factor", lambda: k),
        ):
            each.k = 1.0
            check(lambda each=each: each.scaled(field).numpy()[0], change)
            check(lambda each=each: each.piped(ONE)[0], change)
        each.dtype = "int32"
        assert each.converted(field).dtype == "int32"
        each.dtype = "uint8"
        assert each.converted(field).dtype == "uint8"


def test_methods_look_like_functions():
    bound = Filter().scaled
    assert isinstance(bound, type(by_number)) and bound.__doc__ == "Scales." and bound.__name__ == "scaled"
    assert Filter.scaled is vars(Filter)["scaled"]
    assert "gpuop_scaled" in bound.source(gp.FieldType(3), target="opencl")
    with pytest.raises(gp.SemanticError, match=r"operator `scaled`: missing a required argument: 'field'"):
        bound()
    with pytest.raises(gp.SemanticError, match=r"pipeline `piped`: missing a required argument: 'x'"):
        Filter().piped()
    with pytest.raises(
        gp.SemanticError, match=r"an operator is made of a Python function, not of a staticmethod; write"
    ):
        gp.operator(staticmethod(lambda f: f))


def test_objects_of_methods_are_not_kept():
    each = Filter()
    gone = weakref.ref(each)
    each.scaled(gp.ScalarField(ONE)).numpy()
    each.piped(ONE)
    del each
    gp.device().trim()  # drivers refer to what they run until it is done
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    "call",
    [
        lambda each: gp.operator(lambda f: _readTensor(f) * each.k)(gp.ScalarField(ONE)),
        lambda each: gp.operator(lambda f: (_readTensor(f), _readTensor(f) * each.k))(gp.ScalarField(ONE)),
        lambda each: gp.ndimage.gaussian_filter(gp.ScalarField(ONE), 0.5 * each.k),
        lambda each: gp.pipeline(lambda x: gp.ScalarField(x) * 3)(ONE),
    ],
    ids=["operator", "outputs", "library", "pipeline"],
)
def test_locals_of_callers_are_not_kept(call):
    """Until Python 3.13, the locals of a frame, once looked at, live as long as the frame does."""

    def caller():
        each = Filter()
        gone = weakref.ref(each)
        call(each)
        del each
        gp.device().trim()
        gc.collect()
        return gone() is None

    caller.__code__ = caller.__code__.replace()  # no other call has been from there
    assert caller()


# --- gpuop's own --------------------------------------------------------------------------------------------------------

ASK = {
    "device",
    "devices",
    "evaluate",
    "load_bundle",
    "pinned",
    "profile",
    "queue",
    "release",
    "schedule",
    "set_device",
    "stream",
    "submit",
    "tune",
    "tuning",
    "use_device",
}  # a device, or what the caller has chosen


def test_own_functions_are_constants():
    """The words of kernels and gp's functions that ask no device, wherever their files are."""
    own = {name: getattr(gp, name) for name in gp.__all__ if callable(getattr(gp, name))}
    assert {name for name, function in own.items() if not is_constant(function)} == ASK
    assert [name for name in VOCABULARY if callable(globals()[name]) and not is_constant(globals()[name])] == []
    assert all(importlib.util.find_spec(f"gpuop.{part}") for part in PURE_PARTS)
