"""Whole-field algebra in NumPy: promotion with float32 where NumPy would turn integers into float64, bools being numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np

from .program import Env, Input, Step
from .values import Rejected, Val

Number = bool | int | float
Operand = Val | Number


@dataclass(frozen=True)
class Op:
    """A function of fields and numbers.

    Attributes:
        form: Python's text of it, with {} for operands.
        compute: of arrays of the common dtype.
        kinds: what operands may be (NumPy's kinds).
        how: "number" (bools count as int32), "real" (integers compute in float32), "same", "truth", or "bits".
        bound: of the result in ULP, for floats, where it is not exact: then `compute` takes and gives mpmath's numbers.
    """

    form: str
    compute: Callable[..., Any]
    kinds: str = "biuf"
    how: str = "number"
    bound: float = 0.0

    @property
    def arity(self) -> int:
        return self.form.count("{}")


def common(operands: tuple[Operand, ...]) -> str:
    """NumPy's common dtype, numbers being weak; float32 for a float64 that integers have become."""
    fields = [o.number.dtype for o in operands if isinstance(o, Val)]
    plain = [o for o in operands if not isinstance(o, Val)]
    result = np.result_type(*fields, *plain)
    if result == np.float64 and np.dtype("float64") not in fields:
        return "float32"
    if result.kind in "iu" and all(f.kind == "b" for f in fields):
        return "int32"
    return result.name


def typed(value: Operand, dtype: str) -> np.ndarray:
    """A field's numbers, or a number, in the dtype."""
    if isinstance(value, Val):
        return value.number.astype(dtype)
    kind = np.dtype(dtype).kind
    if kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise Rejected(f"{value} does not fit")
    if kind == "f" and math.isfinite(value) and abs(value) > np.finfo(dtype).max:
        raise Rejected(f"{value} does not fit")
    return np.asarray(value).astype(dtype)


def aligned(operands: tuple[Operand, ...], arrays: list[np.ndarray]) -> tuple[list[np.ndarray], int]:
    """Arrays that NumPy spreads as fields do: 0D grids over grids, scalars over tensors; and the tensor's order."""
    fields = [o for o in operands if isinstance(o, Val)]
    grids, tensors = {f.grid for f in fields if f.grid}, {f.tensor for f in fields if f.tensor}
    if len(grids) > 1 or len(tensors) > 1:
        raise Rejected("shapes")
    order = max(f.order for f in fields)
    results = []
    for operand, array in zip(operands, arrays, strict=True):
        missing = order - operand.order if isinstance(operand, Val) else 0
        results.append(array.reshape(array.shape + (1,) * missing))
    return results, order


def result(operands: tuple[Operand, ...], values: np.ndarray, order: int) -> np.ndarray:
    """With the axes of extent 1 that spreading a 0D grid leaves in front as NumPy does."""
    fields = [o for o in operands if isinstance(o, Val)]
    grid = max((f.grid for f in fields), key=len)
    tensor = max((f.tensor for f in fields), key=len)
    return np.broadcast_to(values, grid + tensor).copy()


def apply(op: Op, operands: tuple[Operand, ...]) -> Val:
    dtype = common(operands)
    if np.dtype(dtype).kind not in op.kinds:
        raise Rejected(dtype)
    if op.how == "number" and dtype == "bool":
        dtype = "int32"
    if op.how == "real" and np.dtype(dtype).kind != "f":
        dtype = "float32"
    if op.how == "truth":
        dtype = "bool"
    steps = "float64" if dtype == "float32" and op in CANCELLING and _long(operands) else dtype
    arrays, order = aligned(operands, [typed(o, steps) for o in operands])
    if op.bound:
        return _bounded(op, operands, arrays, order, np.dtype(dtype))
    values = np.asarray(op.compute(*arrays))
    if steps != dtype:
        values = values.astype(dtype)
    return Val(result(operands, values, order), order, ends=_free_zeros(op, arrays))


def _long(operands: tuple[Operand, ...]) -> bool:
    """Return whether an operand has integers that float32 does not hold."""
    return any(o.dtype in ("int32", "uint32", "int64", "uint64") for o in operands if isinstance(o, Val))


def _free_zeros(op: Op, arrays: list[np.ndarray]) -> bool:
    """Return whether no rule decides the sign of a zero in the result."""
    if (
        op.form.split("(")[0] not in ("np.maximum", "np.minimum", "np.fmax", "np.fmin", "np.clip")
        or arrays[0].dtype.kind != "f"
    ):
        return False
    signs = [(a == 0) & np.signbit(a) for a in arrays], [(a == 0) & ~np.signbit(a) for a in arrays]
    negative, positive = (np.logical_or.reduce(np.broadcast_arrays(*s)) for s in signs)
    return bool((negative & positive).any())


# --- functions within bounds --------------------------------------------------------------------------------------------


def _bounded(op: Op, operands: tuple[Operand, ...], arrays: list[np.ndarray], order: int, dtype: np.dtype) -> Val:
    """mpmath's value where everything is finite, NumPy's at zeros, which have signs, infinities and NaN."""
    wide = np.broadcast_arrays(*(a.astype(np.float64) for a in arrays))
    numpy_name = op.form[3:].split("(")[0] if op.form.startswith("np.") else "power"
    limit = np.asarray(getattr(np, numpy_name)(*wide))
    exact = limit.astype(np.longdouble)
    for at in np.ndindex(limit.shape):
        args = [float(w[at]) for w in wide]
        if all(map(math.isfinite, args)) and all(args) and not np.isnan(limit[at]):
            exact[at] = _precise(op, args, limit[at])
    array = exact.astype(dtype)
    exact, array = result(operands, exact, order), result(operands, array, order)
    _refuse_denormals(array, exact)
    return Val(array, order, ends=True, exact=exact, ulps=1.0 if dtype == np.float16 else op.bound)


def _precise(op: Op, args: list[float], limit: Any) -> Any:
    try:
        with mpmath.workprec(140):
            value = op.compute(*map(mpmath.mpf, args))
            if isinstance(value, mpmath.mpc) or not mpmath.isfinite(value):
                return np.longdouble(limit)
            high = float(value)  # two doubles make a longdouble
            return np.longdouble(high) if math.isinf(high) else np.longdouble(high) + np.longdouble(float(value - high))
    except (ValueError, ZeroDivisionError, OverflowError):
        return np.longdouble(limit)


def _refuse_denormals(array: np.ndarray, exact: np.ndarray) -> None:
    """Devices may give zero for them."""
    size = np.abs(exact)
    if ((size < 2 * np.finfo(array.dtype).tiny) & (size > 0)).any():
        raise Rejected("denormals")


# --- what differs from NumPy's own ----------------------------------------------------------------------------------------


def power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The power of integers; NumPy refuses negative exponents, whose whole part this is."""
    bits = 8 * x.dtype.itemsize

    def one(a: Any, b: Any) -> int:
        if b < 0:
            return {1: 1, -1: -1 if b % 2 else 1}.get(int(a), 0)
        value = pow(int(a), int(b), 1 << bits)
        return value - (1 << bits) if x.dtype.kind == "i" and value >> (bits - 1) else value

    a, b = np.broadcast_arrays(x, y)
    array = np.empty(a.shape, x.dtype)
    for at in np.ndindex(a.shape):
        array[at] = one(a[at], b[at])
    return array


def reciprocal(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "f" and (x == 0).any():
        raise Rejected("undefined in NumPy")
    return np.asarray(np.reciprocal(x))


def signbit(x: np.ndarray) -> np.ndarray:
    if np.isnan(x).any():
        raise Rejected("the sign of NaN")
    return np.signbit(x)


def copysign(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    signbit(y)
    return np.copysign(x, y)


def clip(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.minimum(np.maximum(x, low), high)


def compared(function: Callable[..., Any]) -> Op:
    name = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!="}
    return Op(f"{{}} {name[function.__name__]} {{}}", function, how="by value")


EXACT = {
    "add": Op("{} + {}", np.add), "subtract": Op("{} - {}", np.subtract), "multiply": Op("{} * {}", np.multiply),
    "divide": Op("{} / {}", np.divide, how="real"), "floor_divide": Op("{} // {}", np.floor_divide),
    "remainder": Op("{} % {}", np.remainder), "power": Op("{} ** {}", power, "biu"), "fmod": Op("np.fmod({}, {})", np.fmod),
    "negative": Op("-{}", np.negative), "absolute": Op("abs({})", np.absolute), "square": Op("np.square({})", np.square),
    "reciprocal": Op("np.reciprocal({})", reciprocal), "sign": Op("np.sign({})", np.sign, "iuf"),
    "maximum": Op("np.maximum({}, {})", np.maximum, how="same"), "minimum": Op("np.minimum({}, {})", np.minimum, how="same"),
    "fmax": Op("np.fmax({}, {})", np.fmax, how="same"), "fmin": Op("np.fmin({}, {})", np.fmin, how="same"),
    "clip": Op("np.clip({}, {}, {})", clip, how="same"),
    "floor": Op("np.floor({})", np.floor, how="same"), "ceil": Op("np.ceil({})", np.ceil, how="same"),
    "trunc": Op("np.trunc({})", np.trunc, how="same"), "rint": Op("np.rint({})", np.rint, how="real"),
    "and": Op("{} & {}", np.bitwise_and, "biu", "same"), "or": Op("{} | {}", np.bitwise_or, "biu", "same"),
    "xor": Op("{} ^ {}", np.bitwise_xor, "biu", "same"), "invert": Op("~{}", np.invert, "biu", "same"),
    "left_shift": Op("{} << {}", np.left_shift, "biu"), "right_shift": Op("{} >> {}", np.right_shift, "biu"),
    "logical_and": Op("np.logical_and({}, {})", np.logical_and, how="truth"),
    "logical_or": Op("np.logical_or({}, {})", np.logical_or, how="truth"),
    "logical_xor": Op("np.logical_xor({}, {})", np.logical_xor, how="truth"),
    "logical_not": Op("np.logical_not({})", np.logical_not, how="truth"),
    "isnan": Op("np.isnan({})", np.isnan, how="real"), "isinf": Op("np.isinf({})", np.isinf, how="real"),
    "isfinite": Op("np.isfinite({})", np.isfinite, how="real"), "signbit": Op("np.signbit({})", signbit, how="real"),
    "copysign": Op("np.copysign({}, {})", copysign, how="real"), "fabs": Op("np.fabs({})", np.fabs, how="real"),
    "sqrt": Op("np.sqrt({})", np.sqrt, how="real"), "where": Op("np.where({}, {}, {})", np.where),
}  # fmt: skip
EXACT.update(
    {f.__name__: compared(f) for f in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)}
)
BOUNDS = {  # of OpenCL 1.2, in ULP
    "exp": (3, mpmath.exp), "exp2": (3, lambda x: mpmath.mpf(2) ** x), "expm1": (3, mpmath.expm1), "log": (3, mpmath.log),
    "log2": (3, lambda x: mpmath.log(x, 2)), "log10": (3, mpmath.log10), "log1p": (2, mpmath.log1p), "sin": (4, mpmath.sin),
    "cos": (4, mpmath.cos), "tan": (5, mpmath.tan), "arcsin": (4, mpmath.asin), "arccos": (4, mpmath.acos),
    "arctan": (5, mpmath.atan), "sinh": (4, mpmath.sinh), "cosh": (4, mpmath.cosh), "tanh": (5, mpmath.tanh),
    "arcsinh": (4, mpmath.asinh), "arccosh": (4, mpmath.acosh), "arctanh": (4, mpmath.atanh),
    "cbrt": (2, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x))), "degrees": (2, mpmath.degrees), "radians": (2, mpmath.radians),
    "hypot": (4, mpmath.hypot), "arctan2": (6, mpmath.atan2),
}  # fmt: skip
INEXACT = {
    name: Op(f"np.{name}({{}}{', {}' * (name in ('hypot', 'arctan2'))})", function, how="real", bound=bound)
    for name, (bound, function) in BOUNDS.items()
}
INEXACT["pow"] = Op("{} ** {}", mpmath.power, "f", bound=16)
OPS = EXACT | INEXACT
# Of integers of 32 and 64 bits these, and comparisons, are computed in float64 and rounded once.
CANCELLING = [OPS[name] for name in ("add", "subtract", "remainder", "fmod", "floor_divide", "sin", "cos", "tan")]


# --- steps ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Num:
    """A number among operands, in Python's or NumPy's text."""

    value: Number
    text: str


Arg = str | Num


def _number(value: Num) -> Any:
    """A number as the text has it: of NumPy's dtype, or Python's."""
    scalar = getattr(np, value.text[3:].split("(")[0], None) if value.text.startswith("np.") else None
    return value.value if scalar is None else scalar(value.value)


def evaluate(name: str, operands: tuple[Operand, ...]) -> Val:
    """The result of a function of the tables."""
    op = OPS[name]
    if not any(isinstance(o, Val) for o in operands):
        raise Rejected("numbers only")
    if name == "where":
        return _where(operands)
    if (
        name == "power"
        and not isinstance(operands[1], Val)
        and operands[1] < 0
        and np.dtype(common(operands)).kind != "f"
    ):
        raise Rejected("a negative power of integers")
    if op.how == "by value":
        return _compared(op, operands)
    try:
        return apply(op, operands)
    except (TypeError, OverflowError) as refused:
        raise Rejected(str(refused)) from None


def _where(operands: tuple[Operand, ...]) -> Val:
    condition, *values = operands
    if any(isinstance(v, Val) for v in values):  # beside fields, NumPy's scalars are plain numbers
        values = [v.item() if isinstance(v, np.generic) else v for v in values]
        dtype = common(tuple(values))
    else:
        dtype = _alone(values)
    arrays, order = aligned(operands, [typed(condition, "bool"), *(typed(v, dtype) for v in values)])
    return Val(result(operands, np.where(*arrays), order), order)


def _alone(values: list[Any]) -> str:
    """The result of numbers: NumPy's own dtype, of 32 bits where all are Python's, and for float64 that comes of integers."""
    joined = np.where(True, *values).dtype
    typed = {v.dtype for v in values if isinstance(v, np.generic)}
    if joined in typed or (joined == "int64" and all(isinstance(v, np.generic) for v in values)):
        return joined.name
    return {"int64": "int32", "float64": "float32"}.get(joined.name, joined.name)


def _compared(op: Op, operands: tuple[Operand, ...]) -> Val:
    """Integers by value; with floats in the common dtype."""
    dtype = common(operands)
    kinds = {o.number.dtype.kind for o in operands if isinstance(o, Val)}
    integers = kinds <= set("iu") and not any(isinstance(o, float) for o in operands)
    fields = all(isinstance(o, Val) for o in operands)
    steps = "float64" if dtype == "float32" and _long(operands) else dtype
    arrays = [o.number for o in operands] if integers and fields else [typed(o, steps) for o in operands]
    arrays, order = aligned(operands, arrays)
    return Val(result(operands, np.asarray(op.compute(*arrays)), order), order)


@dataclass(frozen=True)
class Let(Step):
    """A function of fields, under a name."""

    name: str
    op: str
    args: tuple[Arg, ...]

    def lines(self) -> list[str]:
        shown = [a if isinstance(a, str) else a.text for a in self.args]
        if "**" in OPS[self.op].form:
            shown = [f"({text})" if text.startswith("-") else text for text in shown]
        return [f"{self.name} = {OPS[self.op].form.format(*shown)}"]

    def run(self, env: Env) -> None:
        numbers = _number if self.op == "where" else (lambda a: a.value)
        operands = tuple(env.usable(a) if isinstance(a, str) else numbers(a) for a in self.args)
        env.values[self.name] = evaluate(self.op, operands)

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        for k, a in enumerate(self.args):
            if isinstance(a, Num) and a.value != 1:
                one = type(a.value)(1)
                yield (replace(self, args=(*self.args[:k], Num(one, repr(one)), *self.args[k + 1 :])),)

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {self.name: env.values[self.name]} if self.name in env.values else {}


def as_input(name: str, value: Val) -> Input:
    """The field of a known value."""
    return Input(name, tuple(value.array.ravel().tolist()) or (0,), value.dtype, value.array.shape, value.order)
