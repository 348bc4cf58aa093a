"""Functions of complex numbers: vectors of real and imaginary part. A scalar is a real number.

Corner values follow C (ISO C11, annex G), except for products, which follow NumPy: those of infinite parts may be NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from gpuop.base.errors import SemanticError, article
from gpuop.ir import type_rules
from gpuop.ir.build import Builder
from gpuop.ir.expansions.geometric import SCALES
from gpuop.ir.expansions.registry import define
from gpuop.ir.nodes import Const, Expr
from gpuop.ir.types import FLOAT, HALF, Type

DIVIDENDS = {
    "float": (100, 20),
    "double": (900, 120),
}  # see `_scale`: the less, the less is lost of a much smaller part
LARGE = {
    "float": (80.0, 52),
    "double": (700.0, 373),
}  # exponents from which on e to twice the other number is kept apart
MOST_FACTORS = 64  # a power of so many is a product


class Real:
    """A scalar expression, with operators that build others."""

    __slots__ = ("b", "expr")

    def __init__(self, b: Builder, expr: Expr) -> None:
        self.b, self.expr = b, expr

    def of(self, name: str, *others: Real | float) -> Real:
        """A function of this and others."""
        return Real(self.b, self.b.apply(name, self.expr, *(o.expr if isinstance(o, Real) else o for o in others)))

    def chosen(self, if_true: Real | float, if_false: Real | float) -> Real:
        """A selection of one of two values by this condition."""
        return self.of("choose", if_true, if_false)

    # fmt: off
    def __add__(self, other: Real | float) -> Real: return self.of("add", other)
    def __sub__(self, other: Real | float) -> Real: return self.of("sub", other)
    def __mul__(self, other: Real | float) -> Real: return self.of("mul", other)
    def __truediv__(self, other: Real | float) -> Real: return self.of("div", other)
    def __and__(self, other: Real) -> Real: return self.of("and", other)
    def __neg__(self) -> Real: return self.of("neg")
    def __abs__(self) -> Real: return self.of("fabs")
    def __lt__(self, other: Real | float) -> Real: return self.of("lt", other)
    def __gt__(self, other: Real | float) -> Real: return self.of("gt", other)
    def __ge__(self, other: Real | float) -> Real: return self.of("ge", other)
    # fmt: on

    def equals(self, other: Real | float) -> Real:
        return self.of("eq", other)

    @property
    def type(self) -> Type:
        return self.expr.type

    def constant(self, value: float) -> Real:
        """A number of the same type."""
        return Real(self.b, self.b.literals((), [self.expr, value])[1])


Complex = tuple[Real, Real]
Function = TypeVar("Function", bound=Callable[..., Complex | Real])


def _complex(name: str, arity: int, doc: str) -> Callable[[Function], Function]:
    """Enter a function of complex numbers; halves are computed as floats."""

    def register(function: Function) -> Function:
        @define("complex", arity, f"complex{name}", doc, ulp=math.inf)
        def expansion(b: Builder, *args: Expr) -> Expr:
            wrong = next((a.type for a in args if a.type.lanes > 2), None)
            if wrong is not None:
                raise SemanticError(
                    f"_complex{name} wants complex numbers, vectors of real and imaginary part, or real scalars, "
                    f"not {article(str(wrong))}"
                )
            dtype = type_rules.floating(f"_complex{name}", [a.type.scalar for a in args])[1].dtype
            result = function(*(_parts(b, a, Type(FLOAT if dtype is HALF else dtype)) for a in args))
            parts = result if isinstance(result, tuple) else (result,)
            return b.pack([b.cast(p.expr, Type(dtype)) for p in parts])

        return function

    return register


def _parts(b: Builder, arg: Expr, kind: Type) -> Complex:
    lanes = [Real(b, b.cast(lane, kind)) for lane in b.lanes(arg)]
    return lanes[0], lanes[1] if len(lanes) > 1 else lanes[0].constant(0.0)


def _scale(size: Real, limits: dict[str, tuple[int, int]] | None = None) -> tuple[Real, Real, Real]:
    """A power of four that makes squares of numbers of about this size safe; the root of its inverse; its logarithm.

    Limits say from which power of two on great numbers are divided, and by which.
    """
    middle, down, up = SCALES[size.type.dtype.c]
    most, down = (limits or {}).get(size.type.dtype.c, (middle, down))
    great, small = size > 2.0**most, size < 2.0**-middle

    def by_size(if_great: float, if_small: float, usual: float) -> Real:
        return great.chosen(size.constant(if_great), small.chosen(size.constant(if_small), size.constant(usual)))

    scale, root = by_size(2.0**-down, 2.0**up, 1.0), by_size(2.0 ** (down // 2), 2.0 ** -(up // 2), 1.0)
    return scale, root, by_size(-down * math.log(2), up * math.log(2), 0.0)


def _greater(x: Real, y: Real) -> Real:
    """The greater size of the parts; NaN stays where it is the real one."""
    return (abs(x) < abs(y)).chosen(abs(y), abs(x))


@_complex("Mul", 2, "x · y, of the parts' products")
def multiplied(x: Complex, y: Complex) -> Complex:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


@_complex("Div", 2, "x / y, which overflows only where the result does")
def divided(x: Complex, y: Complex) -> Complex:
    """R. L. Smith's algorithm (CACM 5(8), 1962), of numbers that are scaled to where nothing overflows."""
    dividend, (down, back, _), (up, forth, _) = x, _scale(_greater(*x), DIVIDENDS), _scale(_greater(*y))
    x, y, factor = (x[0] * down, x[1] * down), (y[0] * up, y[1] * up), back / forth
    wide = abs(y[0]) >= abs(y[1])
    big, little = wide.chosen(y[0], y[1]), wide.chosen(y[1], y[0])
    first, second = wide.chosen(x[0], x[1]), wide.chosen(x[1], x[0])
    zero = big.equals(0.0) & little.equals(0.0)
    ratio = little / big
    size = zero.chosen(0.0, big + little * ratio)  # +0, so that signs are those of x
    real = zero.chosen(dividend[0], first + second * ratio) / size
    cross = zero.chosen(dividend[1], second - first * ratio) / size
    return real * factor * factor, wide.chosen(cross, -cross) * factor * factor


@_complex("Conj", 1, "the conjugate of x")
def conjugate(x: Complex) -> Complex:
    return x[0], -x[1]


@_complex("Abs", 1, "|x|, a scalar, which overflows only where the result does")
def absolute(x: Complex) -> Real:
    return x[0].of("hypot", x[1])


@_complex("Arg", 1, "the angle of x, a scalar, -π … π")
def argument(x: Complex) -> Real:
    return x[1].of("atan2", x[0])


@_complex("Exp", 1, "eˣ")
def exponential(x: Complex) -> Complex:
    """The product overflows, so parts of a large exponential are kept for after it (as in FreeBSD msun, k_expf.c)."""
    limit, part = LARGE[x[0].type.dtype.c]
    large = x[0] > limit
    size = large.chosen(x[0] - 2.0 * part, x[0]).of("exp")
    rest = large.chosen(x[0].constant(math.exp(part)), x[0].constant(1.0))
    zero, endless = x[0].constant(0.0).of("copysign", x[1]), (x[1] - x[1]).of("ne", 0.0)
    # exp(±inf) in a direction that is no angle: 0, and an infinity of unknown sign
    gone, lost = endless & x[0].equals(-math.inf), endless & x[0].equals(math.inf)
    real, imaginary = (x[1].of(direction) * rest * size * rest for direction in ("cos", "sin"))
    real = gone.chosen(0.0, lost.chosen(math.inf, real))
    # 0 · inf is 0 on the real axis; other numbers stay as they are there, where the slope is not that of a constant
    gone = gone.of("or", x[1].equals(0.0) & imaginary.of("ne", imaginary))
    return real, gone.chosen(zero, imaginary)


@_complex("Log", 1, "the natural logarithm of x, whose imaginary part is the angle")
def logarithm(x: Complex) -> Complex:
    """Near the unit circle of |x|² - 1, whose terms do not cancel as those of |x| do."""
    great = _greater(*x)
    less = (abs(x[0]) < abs(x[1])).chosen(abs(x[0]), abs(x[1]))
    scale, _, exponent = _scale(great)
    far = (x[0] * scale).of("hypot", x[1] * scale).of("log") - exponent
    near = ((great - 1.0) * (great + 1.0) + less * less).of("log1p") * 0.5
    return ((great > 0.5) & (great < 2.0)).chosen(near, far), argument(x)


@_complex("Sqrt", 1, "√x, of a real part that is not negative")
def square_root(x: Complex) -> Complex:
    """On the axes the slopes of its text are those of the function: sizes are chosen by sides, and signs come with their parts."""
    scale, back, _ = _scale(_greater(*x))
    real = x[0] * scale
    right = real >= 0.0
    root = ((right.chosen(real, -real) + real.of("hypot", x[1] * scale)) * 0.5).of("sqrt")
    root = root * back
    nothing = x[0].constant(0.0).of("copysign", x[1])
    other = root.equals(0.0).chosen(nothing, x[1] / (root * 2.0))  # for values that may be too small to scale
    infinite = abs(x[1]).equals(math.inf)
    root, other = infinite.chosen(math.inf, root), infinite.chosen(x[1], other)
    return right.chosen(root, abs(other)), right.chosen(other, root.of("copysign", x[1]))


@_complex("Pow", 2, "xʸ: a product where y is a whole number of Python's, else exp(y · log x)")
def power(x: Complex, y: Complex) -> Complex:
    exponent, none = (part.expr.value if isinstance(part.expr, Const) else math.nan for part in y)
    if none == 0 and float(exponent).is_integer() and abs(exponent) <= MOST_FACTORS:
        return _product(x, int(exponent))
    one, nothing = x[0].constant(1.0), x[0].constant(0.0)
    zero, unit = x[0].equals(0.0) & x[1].equals(0.0), y[0].equals(0.0) & y[1].equals(0.0)
    of_zero = (y[0] > 0.0).chosen(nothing, x[0].constant(math.nan))
    real, imaginary = exponential(multiplied(y, logarithm(x)))
    real, imaginary = zero.chosen(of_zero, real), zero.chosen(of_zero, imaginary)
    return unit.chosen(one, real), unit.chosen(nothing, imaginary)


def _product(x: Complex, exponent: int) -> Complex:
    one = x[0].constant(1.0), x[0].constant(0.0)
    if exponent < 0:
        return divided(one, _product(x, -exponent))
    if exponent < 2:
        return x if exponent else one
    half = _product(x, exponent // 2)
    square = multiplied(half, half)
    return multiplied(square, x) if exponent % 2 else square
