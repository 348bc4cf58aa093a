"""Host algebra against NumPy: every function and operator, every dtype, numbers on either side, every mix of shapes."""

from __future__ import annotations

import operator
import warnings

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.fusion.program import program
from gpuop.ops.elementwise.numpy_functions import TABLE
from tests.harness import image, same_bits

DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
)  # fmt: skip
FLOATS = {"float16", "float32", "float64"}
UNARY = [name for name in TABLE if name != "clip" and getattr(np, name).nin == 1]
BINARY = [name for name in TABLE if name != "clip" and getattr(np, name).nin == 2]
EITHER_ZERO = ("maximum", "minimum", "fmax", "fmin", "nextafter")  # of -0 and +0
ULPS = 16  # OpenCL's widest bound of these functions, which is pow's
rng = np.random.default_rng(5)


def samples(dtype, count=40):
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.arange(count) % 2 == 1
    if kind.kind in "iu":
        info = np.iinfo(kind)
        ends = [info.min, info.max, info.max - 1, 0, 1, 2, 3, 7] + ([-1, -2, -3, -7] if kind.kind == "i" else [])
        return np.array([*ends, *rng.integers(max(info.min, -100), 100, count - len(ends))], kind)
    special = [0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, np.inf, -np.inf, np.nan, 0.001]
    return np.array([*special, *rng.normal(0, 3, count - len(special))], kind)


def pairs(dtype):
    x, y = samples(dtype), samples(dtype)[:21]
    return np.repeat(x, y.size), np.tile(y, x.size)


def numpys(name, *arrays):
    """NumPy's result, float32 where it turns integers into floats; bools are integers, x/0 is 0; None for its errors."""
    function, integers = getattr(np, name), all(a.dtype.kind in "biu" for a in arrays)
    if all(a.dtype.kind == "b" for a in arrays) and TABLE[name][0] in ("arithmetic", "integral", "shift"):
        arrays = tuple(a.astype("i4") for a in arrays)
    if integers and (TABLE[name][0] == "floating" or name in ("divide", "true_divide")):
        arrays = tuple(a.astype("f4") for a in arrays)
    if name == "power" and integers:
        return integer_power(*arrays)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(*arrays)
        except TypeError:
            return None
    if name == "reciprocal" and integers:
        result = np.where(arrays[0] == 0, 0, result).astype(result.dtype)
    return result.astype("f4") if integers and result.dtype.kind == "f" else result


def integer_power(x, y):
    safe = np.where(y < 0, 0, y)
    unit = np.where(x == 1, 1, np.where(x == -1 if x.dtype.kind == "i" else False, 1 - 2 * (safe * 0 + y % 2), 0))
    return np.where(y < 0, unit, np.power(x, safe)).astype(x.dtype)


def agree(name, actual, want, ulps=0):
    assert (actual.dtype, actual.shape) == (want.dtype, want.shape), (
        f"{name}: {actual.dtype}{actual.shape}, not {want.dtype}{want.shape}"
    )
    if not ulps or want.dtype.kind not in "fc":
        np.testing.assert_array_equal(actual, want, err_msg=name)
        if want.dtype.kind == "f" and not name.startswith(EITHER_ZERO):
            np.testing.assert_array_equal(np.signbit(actual[want == 0]), np.signbit(want[want == 0]), err_msg=name)
        return
    info = np.finfo(want.dtype)
    with np.errstate(all="ignore"):
        near_zero = 4 * info.eps if name.startswith("logaddexp") else 4 * info.tiny * 1e6  # a sum of both signs
        np.testing.assert_allclose(actual, want, rtol=ulps * info.eps, atol=near_zero, err_msg=name)


def bound(name):
    exact = {"rint", "fabs", "copysign", "sqrt", "heaviside", "nextafter"}
    if name in ("power", "floor_divide", "remainder"):
        return ULPS
    return ULPS if TABLE[name][0] == "floating" and name not in exact else 0


def check(dtype, names, arrays_of):
    """All functions of a dtype, evaluated together."""
    fields, wants = {}, {}
    for name in names:
        arrays = arrays_of(name)
        wants[name] = numpys(name, *arrays)
        try:
            fields[name] = getattr(np, name)(*map(gp.ScalarField, arrays))
        except gp.SemanticError:
            assert wants[name] is None, f"{name} of {dtype} is refused"
    if fields:
        evaluate_in_one_kernel(list(fields.values()))
    for name, field in fields.items():
        if wants[name] is not None:
            agree(f"{name} of {dtype}", field.numpy(), wants[name], bound(name))
    assert len(names) - len(fields) <= 9  # what NumPy refuses too


def evaluate_in_one_kernel(fields):
    """Compiling takes longer than all else: an operator that reads them all makes them one kernel."""

    @gp.operator(outputs=gp.FieldType(fields[0].field_shape))
    def tie():
        total = _floatVar()
        for f in fields:
            total += _convert_float(_readTensor(f))
        return total

    gp.evaluate(*fields, tie())


def calm(name, x):
    """Trigonometry of large float32 integers, and exponentials beyond float16, are checked elsewhere."""
    if x.dtype.kind in "iu" and name in ("sin", "cos", "tan"):
        return np.clip(x, -100 if x.dtype.kind == "i" else 0, 100).astype(x.dtype)
    return x


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_one_field(device, dtype):
    x = samples(dtype)
    check(dtype, UNARY, lambda name: (calm(name, x),))


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_two_fields(device, dtype):
    x, y = pairs(dtype)
    finite = (
        np.isfinite(x) & np.isfinite(y) & (y != 0) & (np.abs(x) < 1e4) if dtype in FLOATS else np.ones(x.shape, bool)
    )

    modular = ["floor_divide", "remainder"] if dtype in FLOATS else []
    check(dtype, [name for name in BINARY if name not in modular], lambda name: (x, y))
    check(dtype, modular, lambda name: (x[finite], y[finite]))


PYTHON = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne,
    "left_shift": operator.lshift, "right_shift": operator.rshift,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "float16", "float32", "float64"])
def test_powers_that_are_products_roots_and_quotients(device, dtype):
    kind = np.dtype(dtype)
    exponents = (0, 1, 2, 2.0, 0.5, -1) if kind.kind == "f" else (0, 1, 2, 3, 64, 100)
    values = rng.integers(0, 256, (4096, kind.itemsize), "u1").view(kind)[:, 0]
    x = np.append(values[values == values], samples(dtype))  # NaN is one of these
    with np.errstate(all="ignore"):
        want = [x**n for n in exponents]
    kernel = gp.operator(lambda f: tuple(_readTensor(f) ** n for n in exponents))
    for actual in (gp.evaluate(*(gp.ScalarField(x) ** n for n in exponents)), kernel(gp.ScalarField(x))):
        for n, value, whole in zip(exponents, actual, want, strict=True):
            assert (value.dtype, n) == (whole.dtype, n)
            np.testing.assert_array_equal(value.numpy(), whole, str(n))
            number = whole == whole  # NaN's sign is the device's
            np.testing.assert_array_equal(np.signbit(value.numpy())[number], np.signbit(whole)[number], str(n))


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_scalars_beside_vectors(device, dtype):
    x, y = (a[:120] for a in pairs(dtype))
    orders = {False: (x[::3], y.reshape(-1, 3)), True: (x.reshape(-1, 3), y[::3])}
    for first_is_vector, (a, b) in orders.items():
        fields = [gp.Field(v, v.ndim - 1) for v in (a, b)]
        wide = [v.reshape(len(v), -1) for v in (a, b)]
        actual, want = {}, {}
        for name in BINARY:
            want[name] = numpys(name, *(np.broadcast_to(v, (40, 3)) for v in wide))
            if want[name] is not None:
                actual[name] = getattr(np, name)(*fields)
        gp.evaluate(*actual.values())
        for name, field in actual.items():
            agree(f"{name}, vector first: {first_is_vector}", field.numpy(), want[name], bound(name))


@pytest.mark.parametrize("name", PYTHON)
def test_python_operators_and_numbers_on_either_side(name):
    """The operator is the function; a number takes the field's type, a float makes integers float32."""
    symbol, x = PYTHON[name], np.array([1, 2, 3, 4, 5, 0], "i2")
    with gp.use_device("reference"):
        for dtype in ("uint8", "int16", "int64", "float32", "float64"):
            a, f = x.astype(dtype), gp.ScalarField(x.astype(dtype))
            for number in (3, True, np.int32(3), np.uint8(2), 2.5, np.float32(2.5), np.float64(0.5)):
                real = isinstance(number, (float, np.floating))
                if (real or dtype in FLOATS) and TABLE[name][0] in ("bits", "shift"):
                    for pair in ((f, number), (number, f)):
                        with pytest.raises(gp.SemanticError, match="does not take float"):
                            symbol(*pair)
                    continue
                kind = "float32" if real and dtype not in FLOATS else dtype
                side = np.full(6, number).astype(kind)
                agree(name, symbol(f, number).numpy(), numpys(name, a.astype(kind), side), 4)
                agree(f"r{name}", symbol(number, f).numpy(), numpys(name, side, a.astype(kind)), 4)
            if dtype not in FLOATS or TABLE[name][0] not in ("bits", "shift"):
                agree(name, symbol(f, gp.ScalarField(a[::-1])).numpy(), numpys(name, a, a[::-1]), 4)


def test_unary_operators_and_truth(device):
    f, mask = gp.ScalarField(np.float32([-1.5, 0, 2])), gp.ScalarField(np.array([True, False, True]))
    assert (-f).numpy().tolist() == [1.5, 0, -2] and abs(f).numpy().tolist() == [1.5, 0, 2] and (+f) is f
    assert (~mask).numpy().tolist() == [False, True, False] and (~gp.ScalarField([1, -1])).numpy().tolist() == [-2, 0]
    counted = (f > 0) * f + mask + (f > 0)
    assert counted.dtype == "float32" and counted.numpy().tolist() == [-0.0 + 1, 0, 4]
    assert (mask + mask).numpy().tolist() == [2, 0, 2] and (mask + mask).dtype == "int32"
    assert ((mask & (f > 0)) | (f < -1)).numpy().tolist() == [True, False, True]
    with pytest.raises(gp.SemanticError, match="truth value of a 3 bool Field is ambiguous"):
        bool(f > 0)


def test_mixed_dtypes_promote_as_numpys(device):
    for left in DTYPES:
        fields, wants = [], []
        for right in DTYPES:
            a, b = np.array([1, 0, 1], left), np.array([1, 1, 0], right)
            want = np.result_type(a, b)
            want = np.dtype("f4") if want == np.float64 and "float64" not in (left, right) else want
            want = np.dtype("i4") if want.kind == "b" else want
            fields.append(gp.ScalarField(a) + gp.ScalarField(b))
            wants.append(a.astype(want) + b.astype(want))
        evaluate_in_one_kernel(fields)
        for field, want in zip(fields, wants, strict=True):
            agree(left, field.numpy(), want)


@pytest.mark.parametrize("signed", ["int8", "int32", "int64"])
def test_comparisons_of_integers_that_no_type_holds_all_of(device, signed):
    """In float32, which arithmetic of the two has, neighbours are equal."""
    info = np.iinfo(signed)
    a = np.array([info.min, -1, 0, 5, info.max - 1, info.max], signed)
    x, y = (
        np.repeat(a, 8),
        np.tile(np.uint64([0, 1, 5, info.max - 1, info.max, info.max + 1, 2**64 + info.min, 2**64 - 1]), a.size),
    )
    for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        want = [compare(int(p), int(q)) for p, q in zip(x, y, strict=True)]
        assert compare(gp.ScalarField(x), gp.ScalarField(y)).numpy().tolist() == want
        turned = [compare(int(q), int(p)) for p, q in zip(x, y, strict=True)]
        assert compare(gp.ScalarField(y), gp.ScalarField(x)).numpy().tolist() == turned


COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("uint8", -1), ("uint8", 256), ("int8", -129), ("int64", 2**63), ("int64", -(2**63) - 1), ("uint64", -1),
        ("uint64", 2**64), ("int32", 10**400), ("uint8", 1e300), ("int16", -1e300), ("uint8", np.int64(-1)),
    ],
)  # fmt: skip
def test_comparisons_with_numbers_that_the_dtype_does_not_hold(dtype, number):
    """NumPy compares with Python's numbers exactly."""
    info = np.iinfo(dtype)
    array = np.array([[info.min, 1, info.max]], dtype)
    field, big = gp.ScalarField(array), gp.VectorField(np.repeat(array, 2, 1))
    for compare in COMPARISONS:
        for actual, want in (
            (compare(field, number), compare(array, number)),
            (compare(number, field), compare(number, array)),
            (compare(big, number), compare(big.numpy(), number)),
        ):
            assert isinstance(actual, gp.Field) and actual.dtype == "bool"
            np.testing.assert_array_equal(actual.numpy(), want)
    np.testing.assert_array_equal(np.where(field == number, 0, field).numpy(), array)


def test_such_comparisons_on_devices_and_in_graphs(device):
    array = np.uint8([1, 2, 255])
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(array)
        state.next = np.where(state != -1, state, 0) + np.where(state > 256, gp.ScalarField(array), 0)
        graph.probe(state, "state")
    graph.step()
    np.testing.assert_array_equal(graph.read("state"), array)


@pytest.mark.parametrize("ends", [(-1, 300), (2, 300), (-1, 2), (0, 255), (None, 2**70), (-(2**70), None)])
def test_clip_at_ends_that_the_dtype_does_not_hold(ends):
    array = np.uint8([1, 2, 255])
    np.testing.assert_array_equal(np.clip(gp.ScalarField(array), *ends).numpy(), np.clip(array, *ends))
    with pytest.raises(gp.SemanticError, match="the number 300 does not fit uint8"):
        np.clip(gp.ScalarField(array), 300, 400)


BOUNDS = [
    {"min": 0.25},
    {"max": 0.5},
    {"min": 0.25, "max": 0.5},
    {"min": None, "max": 0.5},
    {"a_min": 0.25, "a_max": None},
]


@pytest.mark.daily
def test_clip_by_keywords():
    x = np.float32([-2, 0.25, 0.5, 3])
    for bounds in BOUNDS:
        np.testing.assert_array_equal(np.clip(gp.ScalarField(x), **bounds).numpy(), np.clip(x, **bounds), strict=True)
    wrong = {"a_min": 0, "max": 1}, {"a_min": 0, "a_max": 1, "min": 0}, {"a_min": 0}, {"a_max": 1}
    for bounds in wrong:
        with pytest.raises((TypeError, ValueError)) as expected:
            np.clip(x, **bounds)
        with pytest.raises(gp.SemanticError, match="clip: ") as caught:
            np.clip(gp.ScalarField(x), **bounds)
        assert isinstance(caught.value, expected.type)


def test_shapes_that_go_together(device):
    vectors, scalars, big = image(4, 5, 3), image(4, 5), image(4, 5, 7, 7)
    v, s, b = gp.VectorField(vectors), gp.ScalarField(scalars), gp.MatrixField(big)
    level, direction = gp.Parameter(2.0), gp.Parameter([1.0, 2.0, 3.0])
    matrix = gp.MatrixField(image(7, 7))  # 0D, in memory
    for field, want in {
        v * s: vectors * scalars[..., None],
        s - v: scalars[..., None] - vectors,
        v * level + direction: vectors * np.float32(2) + np.float32([1, 2, 3]),
        direction * s: np.float32([1, 2, 3]) * scalars[..., None],
        b + s: big + scalars[..., None, None],
        b * matrix - level: big * matrix.numpy() - np.float32(2),
        matrix * s: matrix.numpy() * scalars[..., None, None],
        level * direction: np.float32([2, 4, 6]),
        np.maximum(b, 0.5): np.maximum(big, np.float32(0.5)),
        (b > matrix): big > matrix.numpy(),
        np.where(s > 0.5, v, direction): np.where(scalars[..., None] > 0.5, vectors, np.float32([1, 2, 3])),
    }.items():
        agree("", field.numpy(), want)


def test_complex(device):
    z, w = (rng.normal(size=30) + 1j * rng.normal(size=30)).astype("c8"), (rng.normal(size=30) * 1j).astype("c8")
    x = rng.normal(size=30).astype("f4")
    p, q, r = gp.ComplexField(z), gp.ComplexField(w), gp.ScalarField(x)
    cases = (
        ("add", p + q, z + w), ("sub", p - 1, z - 1), ("mul", p * q, z * w), ("div", p / q, z / w), ("real", r * p, x * z),
        ("j", 1j * r, 1j * x), ("over", 2 / p, 2 / z), ("neg", -p, -z), ("abs", abs(p), abs(z)), ("square", np.square(p), z * z),
        ("eq", p == z[3], z == z[3]), ("ne", p != q, z != w), ("reciprocal", np.reciprocal(p), 1 / z),
        ("numpy", np.complex64(2j) * p, 2j * z), ("power", p**3, z * z * z), ("powers", p**q, z**w),
        ("root", (r + 0j) ** 0.5 * p, (x + 0j) ** 0.5 * z), ("real power", 2**p, 2**z), ("negative power", p**-2, 1 / (z * z)),
        ("exp", np.exp(p), np.exp(z)), ("log", np.log(p), np.log(z)), ("sqrt", np.sqrt(p), np.sqrt(z)),
        ("angle", np.angle(p), np.angle(z)), ("degrees", np.angle(p, deg=True), np.angle(z, deg=True)),
        ("conj", np.conj(p), z.conj()), ("conj()", p.conj() + p.conjugate(), 2 * z.conj()),
        (".real", p.real, z.real), (".imag", p.imag, z.imag), ("np.real", np.real(p) + np.imag(p), z.real + z.imag),
        ("where", np.where(r > 0, p, q), np.where(x > 0, z, w)), ("where real", np.where(r > 0, p, r), np.where(x > 0, z, x)),
        ("where number", np.where(r > 0, 2 - 1j, r), np.where(x > 0, 2 - 1j, x)),
        ("finite", np.isfinite(p) & ~np.isnan(p / 0) | np.isinf(p), np.isfinite(z)),
        ("norm", (p * p.conj()).real.sum(), (z * z.conj()).real.sum()), ("mean", p.mean(), z.mean()),
        ("to complex", r.astype("complex64"), x + 0j), ("same", p.astype("complex64"), z),
        ("real of real", r.real + r.imag + r.conj(), 2 * x), ("angle of real", np.angle(r), np.angle(x)),
    )  # fmt: skip
    gp.evaluate(*(field for _, field, _ in cases))
    for name, field, want in cases:
        want = want.astype({"c": "c8", "f": "f4"}.get(want.dtype.kind, want.dtype))
        assert field.numpy().dtype == want.dtype, name
        np.testing.assert_allclose(field.numpy(), want, rtol=4e-6, atol=1e-6, err_msg=name)
    for refused in (lambda: p < q, lambda: np.cbrt(p), lambda: p % 2, lambda: np.clip(p, 0, 1), lambda: p & 1):
        with pytest.raises(gp.SemanticError, match="does not take complex64"):
            refused()


def test_unorm8_reads_as_float(device):
    stored = rng.integers(0, 256, (4, 6, 3), np.uint8)
    color = gp.ColorField(stored)
    values = np.concatenate([stored, np.full((4, 6, 1), 255, "u1")], -1) / np.float32(255)
    agree("", (color * 2).numpy(), values * 2)
    agree("", (color > 0.5).numpy(), values > 0.5)
    assert color.numpy().dtype == np.uint8


NUMBERS = (
    1,
    1.5,
    True,
    np.bool(True),
    np.uint8(3),
    np.int16(-3),
    np.uint32(7),
    np.int64(2),
    np.float16(0.5),
    np.float64(0.25),
)


@pytest.mark.parametrize("a", NUMBERS, ids=repr)
def test_where_of_two_numbers(a):
    """NumPy's values, and its dtype but for the 32 bits of Python numbers, beside NumPy numbers too."""
    mask = np.array([True, False])
    for b in NUMBERS:
        result, expected = np.where(gp.ScalarField(mask), a, b).numpy(), np.where(mask, a, b)
        typed = {v.dtype for v in (a, b) if isinstance(v, np.generic)}
        narrow = {"float64": "float32"} if len(typed) == 2 else {"int64": "int32", "float64": "float32"}
        same_dtype = expected.dtype in typed
        assert result.dtype.name == (
            expected.dtype.name if same_dtype else narrow.get(expected.dtype.name, expected.dtype.name)
        )
        np.testing.assert_array_equal(result, expected)


def test_where_and_clip(device):
    x = np.float32([-2, 0.25, 0.5, 3, np.nan])
    f, mask = gp.ScalarField(x), gp.ScalarField(np.array([True, False, True, False, True]))
    for low, high in ((0, 1), (None, 1), (0.5, None), (None, None)):
        agree("clip", np.clip(f, low, high).numpy(), np.clip(x, low, high) if (low, high) != (None, None) else x)
    agree("clip", np.clip(f, gp.Parameter(0.0), f * 0 + 1).numpy(), np.clip(x, 0, x * 0 + 1))
    agree("clip", np.clip(gp.ScalarField(np.uint8([0, 7, 9])), 1, 8).numpy(), np.uint8([1, 7, 8]))
    m = mask.numpy()
    agree("where", np.where(mask, f, 0).numpy(), np.where(m, x, np.float32(0)))
    agree("where", np.where(mask, 1, 2).numpy(), np.where(m, 1, 2).astype("i4"))
    agree(
        "where",
        np.where(mask, 1.5, gp.ScalarField(np.uint8([1, 2, 3, 4, 5]))).numpy(),
        np.float32([1.5, 2, 1.5, 4, 1.5]),
    )
    agree("where", np.where(f, 1, 0).numpy(), np.int32([1, 1, 1, 1, 1]))
    with pytest.raises(gp.SemanticError, match="three arguments"):
        np.where(mask)


def test_clip_promotes_all_three(device):
    """NumPy's common dtype of the values and both bounds, which that of two of them need not be."""
    x, high = np.arange(0, 250, 10, dtype="uint8"), np.arange(-100, 150, 10, dtype="int64")
    agree("a number below", np.clip(gp.ScalarField(x), -10, gp.ScalarField(high)).numpy(), np.clip(x, -10, high))
    half = np.arange(25, dtype="float16")
    actual = np.clip(gp.ScalarField(x), gp.ScalarField(half), gp.ScalarField(high.astype("int16"))).numpy()
    agree("a float and a wider integer", actual, np.clip(x, half, high.astype("int16")))


def test_ufuncs_with_numpy_scalars_and_zero_d_arrays(device):
    f = gp.ScalarField(np.arange(4, dtype="f"))
    for field in (np.float32(2) * f, f * np.float64(2), np.array(2.0) * f, np.multiply(2, f), f.__mul__(np.int8(2))):
        agree("", field.numpy(), np.float32([0, 2, 4, 6]))
    assert (np.float64(0.5) < f).dtype == "bool" and (np.int64(1) + gp.ScalarField(np.uint8([1]))).dtype == "uint8"


def test_refusals():
    f = gp.ScalarField(np.zeros((3, 4), "f"))
    for refused, message in (
        (
            lambda: f + gp.ScalarField(np.zeros((4, 3))),
            "add: the grids differ, 3×4 and 4×3; counted from the last axis",
        ),
        (
            lambda: gp.VectorField(np.zeros((3, 2))) * gp.VectorField(np.zeros((3, 3))),
            "multiply: the tensors differ, 2 and 3",
        ),
        (lambda: f + np.zeros((4, 3)), "add of a Field and an array of shape 4×3: the Field has 3×4"),
        (lambda: np.zeros((1, 3, 4)) * f, "multiply of a Field and an array"),
        (lambda: f * [1, 2], "multiply of a Field and a list"),
        (lambda: f + "x", "add of a Field and a str"),
        (lambda: f + None, "add of a Field and"),
        (lambda: gp.ScalarField(np.uint8([1])) + 256, "add: the number 256 does not fit"),
        (lambda: gp.ScalarField(np.uint8([1])) - (-1), "does not fit"),
        (lambda: f & 1, "bitwise_and does not take float32 fields"),
    ):
        with pytest.raises(gp.SemanticError, match=message):
            refused()
    for refused in (
        lambda: np.add(f, 1, out=np.zeros((3, 4))),
        lambda: np.frexp(f),
        lambda: np.spacing(f),
    ):
        with pytest.raises(TypeError, match=r"\.numpy\(\)|kernels have|nextafter"):
            refused()


def test_one_tensor_for_every_point(device):
    """An array, a list or a tuple of the shape of the tensors beside it."""
    v, m = rng.normal(size=(4, 5, 3)).astype("f"), rng.normal(size=(4, 2, 2)).astype("f")
    f, matrices = gp.VectorField(v), gp.MatrixField(m)
    scale = np.float32([1, 2, 3])
    scaled = f * scale
    assert scaled.name == "scaled" and set(program([scaled.node]).names.values()) == {"f", "scaled"}
    for actual, want in (
        (scaled, v * scale), (scale * f, v * scale), (f - (1, 2, 3), v - scale), ([1, 2.5, 3] / f, np.float32([1, 2.5, 3]) / v),
        (np.maximum(f, scale), np.maximum(v, scale)), (np.where(f > (0, 0, 0), f, scale), np.where(v > 0, v, scale)),
        (np.clip(f, (-1, 0, 0), [0, 1, 0.5]), np.clip(v, np.float32([-1, 0, 0]), np.float32([0, 1, 0.5]))),
        (matrices + np.eye(2, dtype="f"), m + np.eye(2, dtype="f")),
    ):  # fmt: skip
        agree("", actual.numpy(), want)
    kernels = {(f * np.float32([1, 2, k])).node.call.identity for k in range(5)}
    assert len(kernels) == 1, "it is a parameter, not a constant"
    for wrong in (np.ones(4, "f"), (1, 2), np.ones((4, 5), "f"), [[1, 2, 3]]):
        with pytest.raises(
            gp.SemanticError, match=r"multiply of a Field and (an array|a tuple|a list).* wrap it in a Field"
        ):
            f * wrong


def test_arrays_of_a_fields_shape(device):
    """They are Fields of as many axes of tensors, whose values kernels do not depend on."""
    a, b = rng.normal(size=(2, 4, 5)).astype("f")
    f, whole, v = gp.ScalarField(a), rng.integers(0, 9, (4, 5)), rng.normal(size=(4, 5, 3)).astype("f")
    for actual, want in (
        (f + b, a + b), (b - f, b - a), (f < b, a < b), (np.maximum(b, f), np.maximum(a, b)), (f * whole, a * whole.astype("f")),
        (np.where(b > 0, f, 0), np.where(b > 0, a, np.float32(0))), (np.where(f > 0, b, f), np.where(a > 0, b, a)),
        (np.clip(f, b, b + 1), np.clip(a, b, b + 1)), (f + b.tolist(), a + b), (gp.VectorField(v) / v[::-1], v / v[::-1]),
        (f + b.astype("F"), a + b.astype("F")),
    ):  # fmt: skip
        agree("", actual.numpy(), want)
    made = f + np.zeros((4, 5))
    assert made.dtype == "float64" and set(program([made.node]).names.values()) == {"f", "made"}
    assert len({(f * (b + k)).node.call.identity for k in range(5)}) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_integers_of_more_than_64_bits(device, dtype):
    a = np.arange(6).astype(dtype)
    f, many = gp.ScalarField(a), 10**30

    @gp.operator
    def scaled(field):
        return _readTensor(field) * many

    with np.errstate(over="ignore"):
        for actual, want in (
            (f * many, a * many), (-many - f, -many - a), (f < many, a < many), (np.maximum(f, many), np.maximum(a, many)),
            (f + 2**64, a + 2**64), (np.where(f > 1, f, many), np.where(a > 1, a, np.array(many, dtype))), (scaled(f), a * many),
        ):  # fmt: skip
            agree("", actual.numpy(), want)
    for refused in (lambda: f * 10**400, lambda: gp.ScalarField(np.int32([1])) * many):
        with pytest.raises(gp.SemanticError, match="does not fit"):
            refused()


# --- calls that are known -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [False, True])
def test_calls_are_told_apart(again):
    """A call with operands of the same types as before is another result if anything else differs."""
    x, y = image(5, 6) - np.float32(0.5), image(5, 6)
    u, v, p = gp.ScalarField(x), gp.ScalarField(y), gp.Parameter(np.float32(3))
    with gp.use_device("reference"), np.errstate(all="ignore"):
        for field, array in (
            (u - v, x - y), (v - u, y - x), (u - u, x - x), (u - p, x - np.float32(3)), (p - u, np.float32(3) - x),
            (u / 2, x / np.float32(2)), (u / -2.0, x / np.float32(-2)), (u / 0.0, x / np.float32(0)),
            (u / -0.0, x / np.float32(-0.0)), (u + True, x + True), (u + 0.1, x + np.float32(0.1)),
            (u.named("y:x") * u.named("y:x"), x * x),
        ):  # fmt: skip
            same_bits(field.numpy(), array)


def test_known_calls_are_labelled_and_located():
    u, v = gp.ScalarField(image(5, 6)), gp.ScalarField(image(5, 6))
    results = []
    for _ in range(2):
        product = u * v
        results.append(product)
    assert [f.name for f in results] == ["product"] * 2
    assert results[0].node.call.loc == results[1].node.call.loc
    assert results[0].node.call.kernel is results[1].node.call.kernel
    other = u * v
    assert (other.name, other.node.call.loc.line) == ("other", results[0].node.call.loc.line + 5)
    named = u.named("y:x") * v.named("y:x")
    assert (named.type.names, (u * v).type.names) == (("y", "x"), ())
    with gp.precision("contract"):
        assert (u * v).node.call.kernel.precision == "contract"
    for _ in range(2):
        with pytest.raises(gp.SemanticError, match="dimensions differ"):
            u.named("y:x") * v.named("a:b")


def test_extremes_with_numbers(device):
    """One comparison finds them, unless the number is NaN; all of NumPy's values, in lanes too, and zeros that stay as they are."""
    x = np.tile(np.array([np.nan, -np.nan, -0.0, 0.0, 1, 2, np.inf, -np.inf], "f"), 40)
    f = gp.ScalarField(x)
    numbers = (0.0, 1.5, -np.inf, np.nan)
    fields = [of(f, number) for number in numbers for of in (np.maximum, np.minimum)]
    results = [field.numpy() for field in gp.evaluate(*fields, np.clip(f, 0.5, np.nan))]
    expected = [of(x, np.float32(number)) for number in numbers for of in (np.maximum, np.minimum)]
    for each, want in zip(results, [*expected, np.full_like(x, np.nan)], strict=True):
        np.testing.assert_array_equal(each, want)
    np.testing.assert_array_equal(np.signbit(results[0])[2:4], [True, False])


def test_arrays_that_stretch_to_a_field(device):
    """By NumPy's rules, and the tensors of a field stay what they are."""
    a, v = rng.normal(size=(6, 5)).astype("f"), rng.normal(size=(6, 5, 3)).astype("f")
    f, vectors = gp.ScalarField(a), gp.VectorField(v)
    for actual, want in (
        (f - a.mean(0), a - a.mean(0)), (a[:, :1] / f, a[:, :1] / a), (np.maximum(f, a[:1]), np.maximum(a, a[:1])),
        (np.where(a[0] > 0, f, 0), np.where(a[0] > 0, a, np.float32(0))), (vectors * a[..., None], v * a[..., None]),
        (v[:1] - vectors, v[:1] - v), (vectors + v[0], v + v[0]), (gp.ScalarField(np.stack([a, -a])) + a, np.stack([a + a, 0 * a])),
    ):  # fmt: skip
        np.testing.assert_allclose(actual.numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("beside", "reason"),
    [
        (np.ones(4, "f"), "an array of shape 4: the Field has "),
        (np.array(3, object), "beside a Field are Fields and numbers"),
        (
            np.ma.masked_array(np.ones((6, 5), "f"), np.eye(6, 5) > 0),
            r"a Field has no mask: give `a\.filled\(number\)`",
        ),
    ],
)
def test_arrays_that_are_no_operands(beside, reason):
    with pytest.raises(gp.SemanticError, match=reason):
        gp.ScalarField(np.zeros((6, 5), "f")) + beside
