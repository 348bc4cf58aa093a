"""`_target`: constants that only a target gives, and expressions of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, NoReturn

from gpuop.base.errors import MissingError, SemanticError, described, here
from gpuop.dsl.recorder.arithmetic import Arithmetic
from gpuop.ir.build import number
from gpuop.ir.target_expressions import (
    ARCHITECTURES,
    ATTRIBUTES,
    KEY,
    OPERATIONS,
    Choice,
    Extent,
    Fact,
    Formula,
    Known,
    Plain,
    architecture_of,
    kind_of,
)

# Target operations by the NumPy name of an operator (see `arithmetic`)
NAMES = {
    "add": "add", "subtract": "sub", "multiply": "mul", "floor_divide": "floordiv", "remainder": "mod", "negative": "neg",
    "bitwise_and": "and", "bitwise_or": "or", "invert": "invert", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
}  # fmt: skip

TEXTS = {"backend": ("opencl", "cuda", "reference"), "device": ("gpu", "cpu")}  # possible values of the text facts


class TargetExpression(Arithmetic["TargetExpression"]):
    """A value that only a target gives: neither a Python number nor a value of a thread."""

    __slots__ = ("fact",)
    __array_ufunc__ = None  # NumPy scalars leave operators to this class

    def __init__(self, fact: Known) -> None:
        self.fact = fact

    def __repr__(self) -> str:
        return repr(self.fact)

    def _operate(self, name: str, *operands: Any) -> TargetExpression:
        return formula(NAMES.get(name, name), *operands)

    def __bool__(self) -> NoReturn:
        raise SemanticError(
            f"`{self!r}` is known only when code is generated: `if`, `and`, `or`, `not`, `min` and `max` of Python cannot "
            "decide on it; use `with _codegenIf(c):`, `&`, `|`, `~`, `_min`, `_max`"
        )

    def _no_number(self) -> NoReturn:
        raise SemanticError(
            f"`{self!r}` is known only when code is generated: it is not a Python number; it may be an extent of "
            "`_localThreads`, of an array or of a `_for`"
        )

    __int__ = __float__ = __index__ = _no_number


def formula(op: str, *operands: Any) -> TargetExpression:
    """An operation on target expressions, numbers and texts."""
    if op not in OPERATIONS:
        advice = "`//` divides" if op == "divide" else "they have + - * // % & | ~ and comparisons"
        raise SemanticError(f"target expressions have no operator for {op.replace('_', ' ')}: {advice}")
    args = tuple(map(_operand, operands))
    if OPERATIONS[op].kind(*map(kind_of, args)) is None:
        kinds = " and ".join("a text" if k is str else f"{k.__name__}" for k in map(kind_of, args))
        raise SemanticError(f"target expressions: `{OPERATIONS[op].sign}` does not take {kinds}")
    _check_texts(args)
    return TargetExpression(Formula(op, args, here()))


def _check_texts(args: tuple[Known, ...]) -> None:
    """Refuse a comparison with a text that a fact never has on any target."""
    for fact in args:
        texts = TEXTS.get(fact.name, ()) if isinstance(fact, Fact) else ()
        strange = [a for a in args if isinstance(a, str) and a not in texts]
        if texts and strange:
            raise SemanticError(f"`{fact!r}` is never {strange[0]!r}; it is {' or '.join(map(repr, texts))}")


def _operand(operand: Any) -> Known:
    if isinstance(operand, TargetExpression):
        return operand.fact
    plain = operand if isinstance(operand, str) else number(operand)
    if plain is None:
        description = "a recorded value" if hasattr(operand, "expr") else described(operand)
        raise SemanticError(
            f"a target expression takes facts of the target, numbers and texts, not {description}; put what depends on the "
            "target into `with _codegenIf(c):` blocks"
        )
    return plain


def misplaced(value: TargetExpression) -> SemanticError:
    """Error for a target expression in the place of a thread value."""
    return SemanticError(
        f"`{value!r}` is known only when code is generated, and is not a value of a thread: decide on it by `with "
        "_codegenIf(c):`; it may be an extent of `_localThreads`, of an array or of a `_for`"
    )


def extent(value: TargetExpression, what: str, *kinds: type) -> Extent:
    """Target expression in the place of an integer, or of a value of one of these kinds."""
    if kind_of(value.fact) not in (kinds or (int,)):
        kind = {str: "a text", bool: "a bool"}.get(kind_of(value.fact), "a float")
        raise SemanticError(f"{what} is an integer, and `{value!r}` is {kind}")
    return value.fact  # type: ignore[return-value]


class Targets:
    """Facts of the device that code is generated for: constants for `_codegenIf`.

    `.backend` ("opencl", "cuda" or "reference"), `.architecture` (90 for sm_90, 0 but for CUDA), `.device` ("gpu" or "cpu"),
    `.simd_width`, `.local_memory_bytes`, `.has_fp16`, `.has_fp64`, `.has_arrays` (libraries get its memory as arrays), and
    `.choose(table)`. They combine with numbers and texts.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> TargetExpression:
        if name in ATTRIBUTES:
            return TargetExpression(Fact(name))
        if name.startswith("__"):  # Python asks for these
            raise AttributeError(name)
        raise MissingError(f"`_target` has no attribute {name!r}; it has {', '.join(ATTRIBUTES)}, and choose")

    def __repr__(self) -> str:
        return "_target"

    def choose(self, table: Any, default: Any = None) -> Any:
        """The entry of a table that fits the target best.

        Args:
            table: numbers or texts by target: "opencl", "cuda", "reference", and architectures as "cuda:sm_80", which stand
                for those above them too, up to the next entry. Or records of them, as `{"cuda:sm_80": {"nt": 256, "vt": 7}}`:
                what this gives then has a target expression for each member, as `p.nt`.
            default: what other targets get; without it they are an error when code is generated for them. Of records it also
                has the members that there are, with what they are where an entry leaves them out.
        """
        if not isinstance(table, Mapping) or not table:
            raise SemanticError(
                f'a table is a dict such as {{"opencl": 64, "cuda:sm_80": 128}} with an entry, not {described(table)}'
            )
        for key in table:
            if not isinstance(key, str) or not KEY.fullmatch(key):
                raise SemanticError(f"{key!r} names no target: entries are for opencl, cuda, cuda:sm_80 or reference")
            _check_architecture(key)
        if any(isinstance(value, Mapping) for value in (*table.values(), default)):
            return _record(table, default)
        return _chosen(table, default)


class TargetRecord:
    """Result of `_target.choose` on a table of records: a target expression for each member."""

    __slots__ = ("_members",)

    def __init__(self, members: Mapping[str, TargetExpression]) -> None:
        self._members = members

    def __getattr__(self, name: str) -> TargetExpression:
        if name.startswith("__"):  # Python asks for these
            raise AttributeError(name)
        if name in self._members:
            return self._members[name]
        raise MissingError(f"the records of this table have no member {name!r}; they have {', '.join(self._members)}")

    def __repr__(self) -> str:
        return f"record({', '.join(f'{name}={value!r}' for name, value in self._members.items())})"


def _chosen(table: Mapping[str, Any], default: Any) -> TargetExpression:
    entries = tuple((key, _entry(value)) for key, value in table.items())
    otherwise = None if default is None else _entry(default)
    kinds = {type(v) for v in (*(v for _, v in entries), *([] if otherwise is None else [otherwise]))}
    if len(kinds) > 1:
        names = ", ".join(sorted(k.__name__ for k in kinds))
        raise SemanticError(f"the entries of a table are of one type, not of {names}")
    return TargetExpression(Choice(entries, otherwise, here()))


def _record(table: Mapping[str, Any], default: Any) -> TargetRecord:
    """A choice for each member of records: all have the same ones, but for those that the default has for them."""
    records = {**table, "`default=`": {} if default is None else default}
    for key, record in records.items():
        if not isinstance(record, Mapping) or not all(isinstance(name, str) for name in record):
            raise SemanticError(f"the entries of a table are all records, or none: {key} has {described(record)}")
    members = list(dict.fromkeys(name for record in table.values() for name in record) if default is None else default)
    for key, record in table.items():
        missing = [name for name in members if name not in record and default is None]
        if missing:
            raise SemanticError(f"the record for {key} has no {missing[0]}, which others have; give it to `default=`")
        strange = [name for name in record if name not in members]
        if strange:
            raise SemanticError(f"the record for {key} has {strange[0]}, which `default=` lacks")

    def member(name: str) -> TargetExpression:
        entries = {key: record.get(name, (default or {}).get(name)) for key, record in table.items()}
        return _chosen(entries, None if default is None else default[name])

    return TargetRecord({name: member(name) for name in members})


def _check_architecture(key: str) -> None:
    number = architecture_of(key)
    at = bisect_left(ARCHITECTURES, number)
    if 0 < number < ARCHITECTURES[-1] and ARCHITECTURES[at] != number:
        near = " and ".join(f"sm_{n}" for n in ARCHITECTURES[max(at - 1, 0) : at + 1])
        raise SemanticError(f"{key!r} names no target: there is no sm_{number}, the nearest are {near}")


def _entry(value: Any) -> Plain:
    plain = value if isinstance(value, str) else number(value)
    if plain is None:
        raise SemanticError(f"the entries of a table are numbers or texts, not {described(value)}")
    return plain


_target = Targets()
