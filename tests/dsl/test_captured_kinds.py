"""Captures that change without a name bound anew: classes, bases, registrations, settings of Python, patterns, iterators.

Python itself is the oracle: a body multiplies by a number that a function of Python computes, before and after the change.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import decimal
import enum
import functools
import itertools
import statistics
import types
import typing
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

ONE = np.ones(3, np.float32)
Case = tuple[Callable[[], float], Callable[[], object]]  # a number, and what changes it
CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__.replace("_", " ").strip()] = make
    return make


class Two:
    k = 2.0

    def number(self):
        return 2.0


class Three:
    k = 3.0

    def number(self):
        return 3.0


def with_state() -> typing.Any:
    return types.SimpleNamespace(k=2.0)


# --- classes ------------------------------------------------------------------------------------------------------------


@case
def an_object_gets_another_class():
    it = Two()
    return lambda: it.k, lambda: setattr(it, "__class__", Three)


@case
def a_method_of_an_object_that_gets_another_class():
    it = Two()
    return lambda: it.number(), lambda: setattr(it, "__class__", Three)


@case
def an_instance_of_another_class():
    it = Two()
    return lambda: 2 if isinstance(it, Two) else 3, lambda: setattr(it, "__class__", Three)


@case
def an_object_in_a_list_gets_another_class():
    it = [Two()]
    return lambda: it[0].k, lambda: setattr(it[0], "__class__", Three)


@case
def an_object_of_a_partial_gets_another_class():
    it = Two()
    part = functools.partial(lambda x: x.k, it)
    return lambda: part(), lambda: setattr(it, "__class__", Three)


@case
def an_object_with_slots_gets_another_class():
    kinds = [type(f"Slotted{n}", (), {"__slots__": ("x",), "number": lambda self, n=n: n}) for n in (2, 3)]
    it = kinds[0]()
    return lambda: it.number(), lambda: setattr(it, "__class__", kinds[1])


@case
def an_own_attribute_that_another_class_hides():
    it = type("Plain", (), {})()
    it.k = 2
    return lambda: it.k, lambda: setattr(it, "__class__", type("Hiding", (), {"k": property(lambda self: 3)}))


@case
def an_own_attribute_that_a_property_hides():
    it = type("Plain", (), {})()
    it.k = 2
    return lambda: it.k, lambda: setattr(type(it), "k", property(lambda self: 3))


@case
def an_own_attribute_that_the_class_looks_up_itself():
    it = type("Plain", (), {})()
    it.k = 2
    look = object.__getattribute__
    return lambda: it.k, lambda: setattr(
        type(it), "__getattribute__", lambda self, name: 3 if name == "k" else look(self, name)
    )


@case
def a_module_gets_another_class():
    it = types.ModuleType("it")
    it.k = 2
    hiding = type("Hiding", (types.ModuleType,), {"k": property(lambda self: 3)})
    return lambda: it.k, lambda: setattr(it, "__class__", hiding)


@case
def a_class_gets_another_class():
    first = type("First", (type,), {})
    it = first("It", (), {})
    return lambda: 2 if type(it) is first else 3, lambda: setattr(it, "__class__", type("Second", (first,), {}))


@case
def a_field_of_a_tuple_that_a_property_hides():
    it = collections.namedtuple("It", "k")(2)
    return lambda: it.k, lambda: setattr(type(it), "k", property(lambda self: 3))


@case
def a_tuple_gets_another_class():
    base = collections.namedtuple("Base", "k")
    one, other = (type(n, (base,), {"__slots__": (), **more}) for n, more in (("A", {}), ("B", {"k": property(len)})))
    it = one(2)
    return lambda: it.k, lambda: setattr(it, "__class__", other)


@case
def a_slot_that_was_empty():
    it = type("Slotted", (), {"__slots__": ("k",)})()
    return lambda: getattr(it, "k", 2), lambda: setattr(it, "k", 3)


def derived() -> type:
    return type("Derived", (type("Base", (Two,), {}),), {"twice": lambda self: super(type(self), self).k * 2})


@case
def a_class_gets_other_bases():
    it = derived()
    return lambda: it.k, lambda: setattr(it, "__bases__", (Three,))


@case
def a_base_gets_other_bases():
    it = derived()()
    return lambda: it.k, lambda: setattr(type(it).__bases__[0], "__bases__", (Three,))


@case
def a_subclass_of_other_bases():
    it = derived()
    return lambda: 2 if issubclass(it, Two) else 3, lambda: setattr(it, "__bases__", (Three,))


@case
def an_overridden_attribute_of_other_bases():
    it = derived()()
    return lambda: it.twice(), lambda: setattr(type(it), "__bases__", (Three,))


@case
def a_name_of_a_class():
    it = derived()
    return lambda: len(it.__name__), lambda: setattr(it, "__name__", "Short")


@case
def a_name_of_the_class_of_an_object():
    it = derived()()
    return lambda: len(type(it).__qualname__), lambda: setattr(type(it), "__qualname__", "Short")


@case
def a_number_of_subclasses():
    it, references = derived(), []
    return lambda: 1 + len(it.__subclasses__()), lambda: references.append(type("More", (it,), {}))


@case
def an_attribute_of_a_class_that_a_function_makes():
    it = dataclasses.make_dataclass("It", [("k", int, 2)])
    return lambda: it.k, lambda: setattr(it, "k", 3)


# --- registrations ------------------------------------------------------------------------------------------------------


def abstract() -> typing.Any:
    return abc.ABCMeta("Abstract", (), {})


@case
def an_object_of_a_registered_class():
    it, kind = Two(), abstract()
    return lambda: 2 if isinstance(it, kind) else 3, lambda: kind.register(Two)


@case
def a_number_of_a_registered_class():
    kind = abstract()
    return lambda: 2 if isinstance(3, kind) else 3, lambda: kind.register(int)


@case
def a_class_that_a_subclass_registers():
    kind, it = abstract(), derived()
    below = abc.ABCMeta("Below", (kind,), {})
    return lambda: 2 if issubclass(it, kind) else 3, lambda: below.register(it)


@case
def an_abstract_class_of_the_library():
    it = derived()()
    return lambda: 2 if isinstance(it, collections.abc.Sequence) else 3, lambda: collections.abc.Sequence.register(
        type(it)
    )


@case
def a_hook_of_an_abstract_class():
    state = with_state()
    hook = classmethod(lambda cls, other: state.k == 2)
    kind, it = abc.ABCMeta("Abstract", (), {"__subclasshook__": hook}), Two()

    def change():
        state.k = 3
        kind._abc_caches_clear() if hasattr(kind, "_abc_caches_clear") else kind.register(type("Other", (), {}))

    return lambda: 2 if isinstance(it, kind) else 3, change


# --- patterns, and special methods --------------------------------------------------------------------------------------


class Pair:
    __match_args__ = ("a",)

    def __init__(self):
        self.a, self.b = 2, 3

    def __len__(self):
        return 1

    def __getitem__(self, place):
        if place:
            raise IndexError
        return self.b


@case
def an_attribute_of_a_pattern():
    it = Pair()

    def number():
        match it:
            case Pair(a=k):
                return k

    return number, lambda: setattr(it, "a", 5)


@case
def positions_of_a_pattern():
    kind = type("Positions", (Pair,), {})
    it = kind()

    def number():
        match it:
            case kind(k):
                return k

    return number, lambda: setattr(kind, "__match_args__", ("b",))


@case
def a_position_of_a_pattern():
    it = Pair()

    def number():
        match it:
            case Pair(k):
                return k

    return number, lambda: setattr(it, "a", 7)


@case
def a_sequence_of_a_pattern():
    kind = type("Sequential", (Pair,), {})
    it = kind()

    def number():
        match it:
            case [k]:
                return k
        return 2

    return number, lambda: collections.abc.Sequence.register(kind)


@case
def a_special_method_that_is_static():
    state = with_state()
    it = type("It", (), {"__call__": staticmethod(lambda: state.k)})()
    return lambda: it(), lambda: setattr(state, "k", 3)


@case
def a_special_method_that_is_an_object():
    inner = type("Inner", (), {"__call__": lambda self: self.k})()
    inner.k = 2
    it = type("It", (), {"__call__": inner})()
    return lambda: it(), lambda: setattr(inner, "k", 3)


@case
def a_special_method_that_is_a_partial():
    items = [1, 2]
    it = type("It", (), {"__len__": functools.partial(len, items)})()
    return lambda: len(it), lambda: items.append(3)


@case
def a_special_method_of_the_class():
    state = with_state()
    it = type("It", (), {"__getitem__": classmethod(lambda cls, place: state.k)})()
    return lambda: it[0], lambda: setattr(state, "k", 3)


@case
def an_assignment_that_the_class_makes():
    state = with_state()
    kind = type("It", (), {"__setattr__": lambda self, name, value: object.__setattr__(self, name, value * state.k)})

    def number():
        it = kind()
        it.k = 1.0
        return it.k

    return number, lambda: setattr(state, "k", 3.0)


@case
def a_class_that_is_derived_in_the_body():
    state = with_state()

    class Base:
        def __init_subclass__(cls):
            cls.k = state.k

    def number():
        class It(Base):
            pass

        return It.k

    return number, lambda: setattr(state, "k", 3.0)


@case
def a_function_of_a_cached_property():
    class It:
        @functools.cached_property
        def k(self):
            return 2

    return lambda: It().k, lambda: setattr(vars(It)["k"], "func", lambda self: 3)


@case
def a_value_of_an_enum():
    kind = enum.Enum("It", {"A": 2})
    return lambda: kind.A.value, lambda: setattr(kind.A, "_value_", 3)


@case
def a_name_of_an_enum():
    kind = enum.Enum("It", {"AB": 2})
    return lambda: len(kind.AB.name), lambda: setattr(kind.AB, "_name_", "ABC")


# --- functions, and settings of Python ----------------------------------------------------------------------------------


def annotated() -> typing.Any:
    def function(a: int) -> int:
        """Two."""
        return a

    function.__annotations__ = {"a": int, "return": int}
    return function


FUNCTIONS = {"__annotations__": {"a": float}, "__doc__": "", "__name__": "f", "__qualname__": "f", "__module__": "m"}


@pytest.fixture(params=FUNCTIONS)
def attribute_of_a_function(request):
    function, name = annotated(), request.param
    reads = {
        "__annotations__": lambda: 2 if function.__annotations__["a"] is int else 3,
        "__doc__": lambda: 1 + len(function.__doc__),
        "__name__": lambda: len(function.__name__),
        "__qualname__": lambda: len(function.__qualname__),
        "__module__": lambda: len(function.__module__),
    }
    return reads[name], lambda: setattr(function, name, FUNCTIONS[name])


@case
def an_annotation_of_a_function():
    function = annotated()
    return lambda: 2 if function.__annotations__["a"] is int else 3, lambda: function.__annotations__.update(a=float)


@case
def an_annotation_of_a_class():
    kind = type("It", (), {"__annotations__": {"a": int}})
    return lambda: 2 if kind.__annotations__["a"] is int else 3, lambda: kind.__annotations__.update(a=float)


@case
def hints_of_a_class():
    kind = type("It", (), {"__annotations__": {"a": int}})
    return lambda: 2 if typing.get_type_hints(kind)["a"] is int else 3, lambda: kind.__annotations__.update(a=float)


@case
def builtins_of_a_function():
    scope = {"__builtins__": {"round": 2.0}}
    exec("def number(): return round", scope)
    return scope["number"], lambda: scope["__builtins__"].update(round=3.0)


@case
def the_precision_of_decimals():
    ten = decimal.Decimal(10)
    return lambda: float(ten / 3), lambda: setattr(decimal.getcontext(), "prec", 2)


@case
def the_rounding_of_decimals():
    decimal.getcontext().prec = 3
    ten = decimal.Decimal(10)
    return lambda: float(ten / 3), lambda: setattr(decimal.getcontext(), "rounding", decimal.ROUND_UP)


@case
def a_context_of_decimals():
    ten = decimal.Decimal(10)
    return lambda: float(ten / 3), lambda: decimal.setcontext(decimal.Context(prec=3))


@case
def decimals_of_the_library():
    numbers = [decimal.Decimal(1), decimal.Decimal(2), decimal.Decimal(2)]
    return lambda: float(statistics.mean(numbers)), lambda: setattr(decimal.getcontext(), "prec", 2)


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with decimal.localcontext(), gp.use_device("reference"):
        yield


def check_change(number, change):
    """Operators and pipelines record once while nothing changes, and what Python computes after a change."""
    field, counts = gp.ScalarField(ONE), [0, 0]
    multiplied = gp.operator(lambda f: _readTensor(f) * float(number()))
    piped = gp.pipeline(lambda x: gp.ScalarField(x) * float(number()))
    for place, (owner, name) in enumerate(((multiplied, "_record"), (piped, "_trace_results"))):
        original = getattr(owner, name)

        def counted(*args, place=place, original=original, **kwargs):
            counts[place] += 1
            return original(*args, **kwargs)

        setattr(owner, name, counted)
    before = np.float32(number())
    assert [multiplied(field).numpy()[0] for _ in range(3)] == [piped(ONE)[0] for _ in range(3)] == [before] * 3
    unchanged = list(counts)
    change()
    after = np.float32(number())
    assert before != after
    assert multiplied(field).numpy()[0] == piped(ONE)[0] == after
    return unchanged


ASKED_EACH_TIME = {"a number of subclasses", "hints of a class", "a class gets another class"}


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_seen_and_the_unchanged_is_recorded_once(name: str) -> None:
    assert check_change(*CASES[name]()) == ([3, 3] if name in ASKED_EACH_TIME else [1, 1])


def test_attributes_of_functions(attribute_of_a_function) -> None:
    assert check_change(*attribute_of_a_function) == [1, 1]


ITERATORS: dict[str, Callable[[], typing.Any]] = {
    "count": lambda: itertools.count(2),
    "cycle": lambda: itertools.cycle(range(2, 9)),
    "chain": lambda: itertools.chain([2, 3], [4, 5]),
    "islice": lambda: itertools.islice(range(9), 2, 9),
    "map": lambda: map(abs, [2, 3, 4]),
    "zip": lambda: (first for first, _ in zip([2, 3, 4], [0, 0, 0], strict=True)),
    "iterator of a list": lambda: iter([2, 3, 4]),
    "accumulate": lambda: itertools.accumulate([2, 1, 1]),
    "generator": lambda: (n for n in (2, 3, 4)),
}


@pytest.mark.parametrize("name", ITERATORS)
@pytest.mark.parametrize("place", ["variable", "default", "partial", "attribute", "method"])
def test_iterators_give_their_next_number(name: str, place: str) -> None:
    it = ITERATORS[name]()
    part, holder, method = functools.partial(next, it), types.SimpleNamespace(it=it), it.__next__
    numbers = {
        "variable": lambda: next(it),
        "default": lambda it=it: next(it),
        "partial": lambda: part(),
        "attribute": lambda: next(holder.it),
        "method": lambda: method(),
    }
    number, field = numbers[place], gp.ScalarField(ONE)
    multiplied = gp.operator(lambda f: _readTensor(f) * number())
    assert [multiplied(field).numpy()[0] for _ in range(3)] == [2, 3, 4]


def test_registrations_elsewhere_record_nothing_anew() -> None:
    it, kind, calls = Two(), abstract(), []
    body = gp.operator(lambda f: _readTensor(f) * (2 if isinstance(it, kind) else 3))
    field, record = gp.ScalarField(ONE), body._record
    body._record = lambda *args, **kwargs: (calls.append(args), record(*args, **kwargs))[1]
    body(field)
    abstract().register(Three)
    assert body(field).numpy()[0] == 3 and len(calls) == 1


def test_the_reason_is_said() -> None:
    it, kind, ten = derived()(), abstract(), decimal.Decimal(10)
    piped = gp.pipeline(lambda x: gp.ScalarField(x) * (it.k + isinstance(it, kind) + float(ten / 3)))

    def said() -> str:
        (line,) = [line for line in piped.explain(ONE).splitlines() if "traced again" in line]
        return line.removeprefix("traced again: ")

    piped(ONE)
    it.__class__ = other = type("Other", (Two,), {})
    assert said() == "a `Derived` is of class `Other` now"
    piped(ONE)
    other.__bases__ = (Three,)
    assert said() == "class `Other` has other bases"
    piped(ONE)
    decimal.getcontext().prec = 2
    assert said() == "the context of `decimal` has changed"
    piped(ONE)
    kind.register(Three)
    assert said() == "a class was registered with an abstract class"
