"""Data classes of gpuop are those of the standard library, in all but the time that it takes to define them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from gpuop.base.records import _dataclass

OPTIONS: dict[str, dict[str, bool]] = {
    "plain": {},
    "frozen": {"frozen": True},
    "slots": {"slots": True},
    "frozen, slots": {"frozen": True, "slots": True},
    "frozen, eq=False": {"frozen": True, "eq": False},
    "eq=False, slots": {"eq": False, "slots": True},
    "repr=False": {"repr": False},
    "kw_only": {"kw_only": True},
}


def classes(decorator: Callable[..., Any], **options: bool) -> list[type[Any]]:
    """Classes of all kinds: no field, one, several; defaults, factories, methods of their own, and a derived class."""

    @decorator(**options)
    class Empty:
        """No fields."""

    @decorator(**options)
    class One:
        value: Any = 1.0

    @decorator(**options)
    class Several:
        first: int
        other: tuple[int, ...] = (1, 2)
        items: list[int] = dataclasses.field(default_factory=list)
        hidden: int = dataclasses.field(default=3, compare=False, repr=False)
        late: int = dataclasses.field(default=5, kw_only=True)
        own: int = dataclasses.field(init=False, default=7)
        shared: ClassVar[int] = 9

    @decorator(**options)
    class Derived(Several):
        more: str = "more"

        def __post_init__(self) -> None:
            object.__setattr__(self, "own", 2 * self.first)

        def __repr__(self) -> str:
            return "derived"

    return [Empty, One, Several, Derived]


def made(kind: type[Any], **values: Any) -> Any:
    return kind(**{"first": 4, **values}) if hasattr(kind, "shared") else kind()


def outcome(action: Callable[[], Any]) -> tuple[str, str]:
    try:
        return "value", repr(action())
    except (TypeError, AttributeError) as failed:
        return type(failed).__name__, str(failed)


def facts(kind: type[Any]) -> list[Any]:
    """All that can be seen of a class and its instances."""
    one, other, third = made(kind), made(kind), made(kind, items=[1])
    names = [field.name for field in dataclasses.fields(kind)]
    others = ["another"] if hasattr(one, "__dict__") else []  # the standard library's `__setattr__` raises TypeError
    found: list[Any] = [
        names,
        kind.__match_args__,
        str(inspect.signature(kind)),
        [repr(each) if kind.__repr__ is not object.__repr__ else "" for each in (one, third)],
        [one == other, one == third, one != other, one == names, kind.__eq__(one, 1)],
        ["" if kind.__hash__ is object.__hash__ else outcome(lambda: hash(one))],
        [outcome(lambda name=name: setattr(made(kind), name, 2)) for name in (*names, *others)],
        [outcome(lambda name=name: delattr(made(kind), name)) for name in (*names, *others)],
        [outcome(lambda: kind(1, 2, 3, 4, 5, 6)), outcome(lambda: kind(wrong=1))],
    ]
    replaced = dataclasses.replace(third, items=[2]) if hasattr(kind, "shared") else dataclasses.replace(third)
    twins = (copy.copy(one), copy.deepcopy(one), replaced)
    found += ([getattr(twin, name) for name in names] for twin in twins)
    found.append(outcome(lambda: made(kind).items is made(kind).items))
    return found


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_they_are_those_of_the_standard_library(options: dict[str, bool]) -> None:
    for ours, theirs in zip(classes(_dataclass, **options), classes(dataclasses.dataclass, **options), strict=True):
        assert facts(ours) == facts(theirs)


def test_not_a_number_equals_itself() -> None:
    nan = float("nan")
    for decorator in (_dataclass, dataclasses.dataclass):
        _, one, *_ = classes(decorator, frozen=True)
        assert one(nan) == one(nan) and one(nan) != one(float("nan"))
        assert hash(one((1, 2))) == hash(((1, 2),))


def test_own_methods_stay() -> None:
    @_dataclass(frozen=True)
    class Own:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

    assert Own(1) == 2 and hash(Own(1)) == 5


def test_an_instance_that_has_itself_is_shown() -> None:
    _, one, *_ = classes(_dataclass)
    each = one()
    each.value = each
    assert repr(each).endswith("One(value=...)")


def test_an_attribute_that_there_is_not_cannot_be_assigned() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'other'"):
        Sent(1).other = 2  # type: ignore[attr-defined]


@_dataclass(frozen=True, slots=True)
class Sent:
    a: int
    b: str = "b"


def test_they_are_pickled() -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(Sent(1), protocol)) == Sent(1)


def test_a_class_derived_otherwise_has_other_attributes() -> None:
    class Loose(Sent):
        pass

    loose = Loose(1)
    loose.note = 2  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        loose.a = 3  # type: ignore[misc]
