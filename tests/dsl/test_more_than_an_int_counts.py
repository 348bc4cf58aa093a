"""Fields of more than 2³¹ values or points: right where they are lazy, without memory; refused where an axis is too long."""

import re

import numpy as np
import pytest

import gpuop as gp
from gpuop import fft, ndimage, random
from gpuop.dsl import *
from gpuop.dsl.fields.field import Field
from gpuop.engine.dump import kernels_for, plan_for_text, source
from gpuop.ir.axis_limit import LONGEST_AXIS
from gpuop.ir.nodes import Apply, Atomic, Cast, Const, FieldParam, Let, Load, Ref, Store, Wide
from gpuop.ir.types import INT, Type
from gpuop.ir.values import NO_VALUES, Leaf
from gpuop.ir.visit import operands, walk
from gpuop.passes.pipeline import pass_by_pass
from gpuop.passes.ranges import Ranges, fits
from gpuop.runtime.devices import current

N = 46400
ALL = N * N  # 5,476,352 more than 2³¹
FAR = np.array([ALL - 1, ALL - 5, 2**31 + 7, -1, 5])
LONG = 2**31 + 10


def columns():
    return gp.arange(N)[:, None] * 0 + gp.arange(N)[None, :]


def rows():
    return gp.arange(N)[:, None] + gp.arange(N)[None, :] * 0


def pairs():
    return np.stack([rows(), columns()], -1)


FLAT = {
    "wider rows": (lambda: columns().reshape(N // 2, 2 * N)[-1, -3:], [N - 3, N - 2, N - 1]),
    "four axes": (lambda: rows().reshape(16, N // 16, N // 100, 100)[-1, -1, -1, -3:], [N - 1] * 3),
    "columns": (lambda: rows().reshape(2 * N, N // 2)[-3:, 5], [N - 2, N - 1, N - 1]),
    "vectors": (lambda: pairs().reshape(N // 2, 2 * N, 2)[-1, -2:], [[N - 1, N - 2], [N - 1, N - 1]]),
    "take": (lambda: np.take(columns(), FAR), FAR % N),
    "take, clip": (lambda: np.take(columns(), FAR.reshape(5, 1), mode="clip"), np.maximum(FAR, 0).reshape(5, 1) % N),
    "take, a field": (lambda: np.take(rows(), gp.ScalarField(FAR)), FAR % ALL // N),
    "take, unsigned": (
        lambda: np.take(rows(), gp.ScalarField(FAR.astype("u8")), mode="wrap"),
        [int(i) % ALL // N for i in FAR.astype("u8")],
    ),
    "roll": (lambda: np.roll(columns(), 1)[-1, -3:], [N - 4, N - 3, N - 2]),
    "roll, begin": (lambda: np.roll(columns(), 5)[0, :7], [N - 5, N - 4, N - 3, N - 2, N - 1, 0, 1]),
    "roll far": (lambda: np.roll(rows(), -(2**31))[:2, :3], [[2**31 // N] * 3, [2**31 // N + 1] * 3]),
    "transpose": (lambda: rows().T[-1, -3:], [N - 3, N - 2, N - 1]),
    "reversed": (lambda: columns()[::-1, ::-1][-1, -3:], [2, 1, 0]),
    "kernel": (lambda: numbers(rows(), columns())[-1, -2:], [ALL - 2, ALL - 1]),
}


@gp.operator(outputs=gp.FieldType((N, N), dtype="int64"))
def numbers(r, c):
    _writeTensor(_out0, _ravel((_readTensor(r), _readTensor(c)), (N, N)))


@pytest.mark.parametrize("name", FLAT)
def test_places_are_counted_by_longs(device, name):
    call, expected = FLAT[name]
    assert call().numpy().tolist() == np.asarray(expected).tolist()


def test_indices_are_checked_against_all_values(device):
    with pytest.raises(IndexError, match=f"index {ALL} is out of bounds for axis 0 with size {ALL}"):
        np.take(columns(), [ALL])
    with pytest.raises(IndexError, match=f"index {ALL} is out of bounds"):
        np.take(columns(), gp.ScalarField(np.array([ALL])))


# --- axes that are too long -------------------------------------------------------------------------------------------


def lent(*shape, dtype=np.uint8):
    """An array without memory."""
    return np.broadcast_to(dtype(3), shape)


TOO_LONG = {
    "zeros": (lambda: gp.zeros(LONG), f"axis 0 of a {LONG} float32 field has {LONG} points"),
    "array": (lambda: gp.ScalarField(lent(LONG), copy=False), f"axis 0 of a {LONG} uint8 field has {LONG} points"),
    "columns": (lambda: gp.ScalarField(lent(LONG, 1), copy=False), f"axis 0 of a {LONG}×1 uint8 field"),
    "rows": (lambda: gp.ScalarField(lent(1, LONG), copy=False), f"axis 1 of a 1×{LONG} uint8 field"),
    "vectors": (lambda: gp.VectorField(lent(LONG, 3), copy=False), f"axis 0 of a {LONG} uint8\\[3\\] field"),
    "elements": (lambda: gp.VectorField(lent(3, LONG), copy=False), f"axis 1 of a 3 uint8\\[{LONG}\\] field"),
    "one more": (lambda: gp.zeros(LONGEST_AXIS + 1), f"axis 0 of a {LONGEST_AXIS + 1} float32 field"),
    "an int's last": (lambda: gp.zeros((3, 2**31 - 1)), f"axis 1 of a 3×{2**31 - 1} float32 field"),
    "folded": (
        lambda: gp.zeros((50000, 50000, 2, 2)),
        "the first 2 axes of a 50000×50000×2×2 float32 field are one axis in kernels, of 2500000000 points, ",
    ),
    "tensors": (
        lambda: gp.zeros((7,), dtype="float32")[:, None, None] + gp.Field(lent(7, 50000, 50000), 2, copy=False),
        "the tensors of a 7 uint8\\[50000×50000\\] field have 2500000000 elements",
    ),
    "layers": (
        lambda: gp.VectorField(lent(50000, 2, 2, 50000), copy=False),
        (
            "the layers of a 50000×2×2 uint8\\[50000\\] field and the elements of its tensors are one axis in kernels, of "
            "2500000000"
        ),
    ),
    "operator": (lambda: written(), f"axis 0 of a {LONG} uint8 field has {LONG} points"),
    "host": (lambda: copied(gp.zeros(3)), f"axis 0 of a {LONG} uint8 field has {LONG} points"),
    "pipeline": (lambda: gp.pipeline(lambda x: gp.ScalarField(x) + 1)(lent(LONG)), f"axis 0 of a {LONG} uint8 field"),
    "inside": (lambda: gp.pipeline(lambda x: gp.ScalarField(x) + gp.zeros(LONG)[:3])(lent(3)), f"axis 0 of a {LONG}"),
    "type": (lambda: numbers.source(gp.FieldType(LONG), gp.FieldType(LONG)), f"axis 0 of a {LONG} float32 field"),
}


@gp.operator(outputs=gp.FieldType(LONG, dtype="uint8"))
def written():
    _writeTensor(_out0, _column)


def copied(field):
    return gp.HostOperator(lambda x: x, outputs=gp.FieldType(LONG, dtype="uint8"))(field)


@pytest.mark.parametrize("name", TOO_LONG)
def test_axes_that_ints_do_not_count_are_refused(name):
    call, message = TOO_LONG[name]
    with pytest.raises(gp.SemanticError, match=message) as result:
        call()
    assert f"more than {LONGEST_AXIS}" in str(result.value)
    assert "reshape it to two axes, as `a.reshape(rows, -1)` does for arrays, or let `gp.stream` compute it" in str(
        result.value
    )


def test_the_longest_axis_is_computed(device):
    f = gp.arange(LONGEST_AXIS)
    assert (f + 1)[-2:].numpy().tolist() == [LONGEST_AXIS - 1, LONGEST_AXIS]
    assert np.roll(f, -(LONGEST_AXIS // 2) + 1)[-2:].numpy().tolist() == [LONGEST_AXIS // 2 - 3, LONGEST_AXIS // 2 - 2]
    for mode, last in (("wrap", 4), ("reflect", -6), ("symmetric", -5), ("clamp", -1)):
        assert beyond(f, mode)[-1:].numpy().tolist() == [last % LONGEST_AXIS]
    assert f[::-1][:2].numpy().tolist() == [LONGEST_AXIS - 1, LONGEST_AXIS - 2]


def beyond(field, mode):
    @gp.operator
    def read(f):
        return _readTensor(f, _column + _convert_int(_readTensor(f) * 0 + 5), border=mode)

    return read(field)


ROWS = {
    "median": np.median,
    "percentile": lambda f: np.percentile(f, 30),
    "cumsum": np.cumsum,
    "sort": lambda f: np.sort(f, axis=None),
    "argsort": lambda f: np.argsort(f, axis=None),
    "unique": np.unique,
    "nonzero": np.nonzero,
    "argwhere": np.argwhere,
    "ravel": np.ravel,
    "concatenate": lambda f: np.concatenate([f, f], axis=None),
    "repeat": lambda f: np.repeat(f, 2),
    "delete": lambda f: np.delete(f, 3),
    "ediff1d": np.ediff1d,
    "vdot": lambda f: np.vdot(f, f),
    "isin": lambda f: np.isin(np.arange(3), f),
    "take_along_axis": lambda f: np.take_along_axis(f, np.array([3]), None),
    "label": ndimage.label,
    "fill_holes": ndimage.binary_fill_holes,
    "edt": lambda f: ndimage.distance_transform_edt(f > 0),
    "median of labels": lambda f: ndimage.median(f, f, 1),
    "value_indices": ndimage.value_indices,
    "sum_labels": lambda f: ndimage.sum_labels(f, f, [1, 2]),
    "maximum_position": ndimage.maximum_position,
    "watershed": lambda f: ndimage.watershed_ift(f.astype("uint8"), f),
}


@pytest.mark.parametrize("name", ROWS)
def test_functions_of_all_values_in_a_row_say_that_these_are_too_many(name):
    with pytest.raises(gp.SemanticError, match=f"has {ALL} points, more than {LONGEST_AXIS}: reshape it to two axes"):
        ROWS[name](columns())


# --- windows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["nearest", "mirror", "reflect"])
def test_windows_of_longer_axes(device, mode):
    smoothed = gp.pipeline(lambda x: ndimage.uniform_filter1d(gp.ScalarField(x), 3, mode=mode))
    reach = smoothed.footprint(gp.FieldType(LONG, dtype="int32")).window((LONG - 9,), (LONG,))
    ((start, stop),) = reach
    values = np.arange(start, stop, dtype=np.int64).astype(np.int32)
    outside = {"nearest": values[-1:], "mirror": values[-2:-1], "reflect": values[-1:]}[mode]
    padded = np.concatenate([values, outside]).astype(np.float64)
    expected = np.trunc((padded[-11:-2] + padded[-10:-1] + padded[-9:]) / 3).astype(np.int32)[-4:]
    result = smoothed.window((LONG,), (LONG - 9,), (LONG,))(values)
    assert np.abs(result[-4:].astype(np.int64) - expected).max() <= 1
    with pytest.raises(gp.SemanticError, match="field has 2147483658 points"):
        smoothed(lent(LONG, dtype=np.int32))


@pytest.mark.parametrize("function", [lambda f: f[::-1], lambda f: f.sum(), lambda f: placed(f)])
def test_positions_in_windows_of_longer_axes_are_refused(function):
    line = gp.pipeline(lambda x: function(gp.ScalarField(x)))
    message = f"an axis has {LONG} points, more than {LONGEST_AXIS}.*: windows and chunks of it are computed where nothing depends"
    window = line.window((LONG,), (LONG - 9,), (LONG,))
    with pytest.raises(gp.SemanticError, match=message):
        window(np.zeros(9, np.uint8))


@gp.operator
def placed(f):
    return _readTensor(f) + _column


# --- texts ------------------------------------------------------------------------------------------------------------

TARGETS = ("opencl", "opencl:cpu", "cuda:sm_90", "cuda:sm_75")


def typed(*shape, tensor=(), dtype="float32"):
    """A field that has a type and no values."""
    kind = gp.FieldType(shape, tensor, dtype)
    return Field.of(Leaf(kind.folded, NO_VALUES), kind=kind)


def too_narrow(kernel, target):
    """The names in addresses that are computed in ints, between what bounds they are in truth."""
    (before,) = (after.kernel for after in pass_by_pass(kernel, target) if after.name == "define_division")
    ranges, lets, exprs = Ranges(before), {}, []
    for stmt in walk(before.body):
        if isinstance(stmt, Let):
            lets[stmt.var] = stmt.value, _overflow(stmt.value, ranges)
            if isinstance(stmt.value, Load) and isinstance(stmt.value.memory, FieldParam):
                exprs += stmt.value.index
        if isinstance(stmt, (Store, Atomic, Wide)):
            exprs += stmt.index
        ranges.meet(stmt)
    faults, names = [], set()
    while exprs:
        expr = exprs.pop()
        if isinstance(expr, Ref) and expr.var in lets and expr.var not in names:
            names.add(expr.var)
            value, wrong = lets[expr.var]
            if wrong:
                faults.append((expr.var.hint, wrong))
            masked = isinstance(value, Apply) and value.op == "and" and isinstance(value.args[1], Const)
            exprs += [] if isinstance(value, Load) or masked else operands(value)
        elif isinstance(expr, (Apply, Cast)):
            exprs += operands(expr)
    return faults


def _overflow(value, ranges):
    """The bounds of a sum or a product that an int does not hold; what depends on unknown values is not judged."""
    if not (isinstance(value, Apply) and value.type == Type(INT) and value.op in ("add", "sub", "mul")):
        return None
    intervals = [ranges.range(e) for e in value.args]
    unknown = any(low < -(2**31) + 2**20 or high > 2**31 - 2**19 for low, high in intervals)
    return None if unknown or fits(ranges.exact(value), INT) else ranges.exact(value)


FIELDS = {
    "bytes": lambda: typed(N, N, dtype="uint8"),
    "ints": lambda: typed(N, N, dtype="int32"),
    "ragged": lambda: typed(46341, 46343),
    "ragged bytes": lambda: typed(46341, 46343, dtype="uint8"),
    "row": lambda: typed(LONGEST_AXIS, dtype="uint8"),
    "column": lambda: typed(LONGEST_AXIS, 1),
    "volume": lambda: typed(1300, 1300, 1301, dtype="uint8"),
    "vectors": lambda: typed(40000, 30000, tensor=(3,)),
    "matrices": lambda: typed(4000, 3000, tensor=(20, 20)),
}
FUNCTIONS = {
    "plus": lambda f: f + 1,
    "sliced": lambda f: f[1:],
    "reversed": lambda f: f[::-1],
    "flipped": np.flip,
    "transpose": lambda f: f.T,
    "roll": lambda f: np.roll(f, 7, axis=0),
    "roll half": lambda f: np.roll(f, -f.shape[0] // 2 + 1, axis=0),
    "roll columns": lambda f: np.roll(f, 10**4, axis=len(f.field_shape) - 1),
    "sum": lambda f: f.sum(),
    "sum of columns": lambda f: f.sum(axis=0),
    "argmax": lambda f: f.argmax(),
    "variance": lambda f: f.var(),
    "cumsum": lambda f: np.cumsum(f, axis=0),
    "cumsum of rows": lambda f: np.cumsum(f, axis=len(f.field_shape) - 1),
    "concatenate": lambda f: np.concatenate([f[:5], f[:7]]),
    "repeat": lambda f: np.repeat(f[:10], 3, axis=0),
    "take": lambda f: np.take(f, [3, 1, 2], axis=0),
    "histogram": lambda f: np.histogram(f, bins=10, range=(0, 10))[0],
    "gaussian": lambda f: ndimage.gaussian_filter(f, 2),
    "gaussian, wrap": lambda f: ndimage.gaussian_filter(f, 1, mode="wrap"),
    "maximum": lambda f: ndimage.maximum_filter(f, 3),
    "median": lambda f: ndimage.median_filter(f, 3),
    "uniform": lambda f: ndimage.uniform_filter(f, 25),
    "random": lambda f: random.uniform(random.key(3), f.field_shape),
    "any": lambda f: (f > 3).any(),
}
SLOWER = {
    "sort": lambda f: np.sort(f, axis=0),
    "fft": fft.fft,
    "rank": lambda f: ndimage.rank_filter(f, 3, 5),
    "erosion": lambda f: ndimage.binary_erosion(f > 0),
    "laplace": lambda f: ndimage.gaussian_laplace(f, 1),
    "spline": lambda f: ndimage.spline_filter(f, order=3),
    "center": ndimage.center_of_mass,
}


def check_addresses(field, function):
    try:
        result = function(FIELDS[field]())
    except gp.GpuopError:
        return
    for each in result if isinstance(result, tuple) else (result,):
        for name in ("opencl:cpu", "cuda:sm_90"):
            target, kernels = kernels_for(plan_for_text([each], name), name, current())
            for kernel in kernels:
                assert not too_narrow(kernel, target), (name, kernel.name)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_addresses_are_wide_enough(field, name):
    check_addresses(field, FUNCTIONS[name])


@pytest.mark.parametrize("field", ["ragged bytes", "volume"])
@pytest.mark.parametrize("name", SLOWER)
def test_addresses_of_long_kernels_are_wide_enough(field, name):
    check_addresses(field, SLOWER[name])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("extents", "wide"), [((46340, 46340), False), ((N, N), True)])
def test_addresses_are_longs_where_they_must_be(target, extents, wide):
    text = source([ndimage.sobel(typed(*extents))], target)
    assert bool(re.search(r"const long (long )?\w+_rowStride", text)) == wide, text
