"""Arguments of operators that are no Fields: constants, known by their content; and lists wherever tuples go."""

from __future__ import annotations

import gc
import re
import warnings
from decimal import Decimal

import numpy as np
import pytest
from scipy import ndimage

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.operators import arguments, operator
from gpuop.ir.kernel import Kernel

IMAGE = np.random.default_rng(3).random((6, 9), np.float32)
field = gp.ScalarField(IMAGE)
WEIGHTS = [[0.0, 1.0, 0.5], [2.0, -4.0, 1.0], [0.0, 3.0, 0.25]]


@gp.operator
def correlate(f, weights):
    total = _var(0.0)
    for i, row in enumerate(weights):
        for j, w in enumerate(row):
            total += float(w) * _readTensor(f, _row + i - 1, _column + j - 1)
    return total


@pytest.mark.parametrize("make", [list, lambda rows: tuple(map(tuple, rows)), np.array, np.float32])
def test_filters(device, make):
    values = make(WEIGHTS)
    want = ndimage.correlate(IMAGE, np.float32(WEIGHTS), mode="nearest")
    assert np.allclose(correlate(field, values).numpy(), want, atol=1e-5)


CHANGES = {  # arguments that a body may tell from one another
    "value": (np.array([1, 2]), np.array([1, 3])),
    "dtype": (np.array([1, 2], "int32"), np.array([1, 2], "uint32")),
    "shape": (np.ones((2, 3)), np.ones((3, 2))),
    "sign of zero": (np.array([0.0]), np.array([-0.0])),
    "list or tuple": ([1, 2], (1, 2)),
    "list or array": ([1, 2], np.array([1, 2])),
    "nesting": ([[1, 2], 3], [1, [2, 3]]),
    "bool or int": ([True], [1]),
    "zeros in a list": ([0.0], [-0.0]),
    "empty": ([], ()),
    "array in a list": ([np.array([1.0])], [np.array([2.0])]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_content_is_what_counts(change):
    """Equal content is recorded once, other content anew, for any two constants that are not the same."""
    seen = []

    @gp.operator
    def noted(f, constant):
        seen.append(constant)
        return _readTensor(f)

    noted(field, CHANGES[change][0])
    noted.memo.clear()  # what is appended to is captured: let only arguments decide
    operator_of = gp.operator(lambda f, constant: _readTensor(f))
    for constant in (*CHANGES[change], *map(arguments.own, CHANGES[change])):
        operator_of(field, constant)
    assert len(operator_of.memo) == 2
    assert repr(seen[0]) == repr(CHANGES[change][0])


@pytest.mark.parametrize("make", [list, np.array])
def test_changed_in_place(device, make):
    constant = make([1.0, 2.0])
    weighed = gp.operator(lambda f, w: _readTensor(f) * float(w[0]) + float(w[1]))
    before, again = weighed(field, constant), weighed(field, constant)
    constant[0] = 3.0
    after = weighed(field, constant)
    assert before.node.call.kernel is again.node.call.kernel
    assert np.array_equal(before.numpy(), IMAGE + 2) and np.array_equal(after.numpy(), IMAGE * 3 + 2)


def test_a_body_gets_its_own():
    values = [1.0, np.array([2.0, 3.0])]

    @gp.operator
    def changes(f, constant):
        constant.append(4.0)
        with pytest.raises(ValueError, match="read-only"):
            constant[1][0] = 5.0
        return _readTensor(f) * float(constant[1][1])

    for _ in range(2):
        assert np.array_equal(changes(field, values).numpy(), IMAGE * 3)
    assert len(values) == 2 and values[1][0] == 2


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(operator, "MOST_BODIES", 5)
    added = gp.operator(lambda f, a: _readTensor(f) + float(a[0]))
    with pytest.warns(UserWarning, match="compiled anew for every value of `a`; pass a Field, whose value can change"):
        kernels = [added(field, np.array([k])).node.call.kernel for k in range(12)]
    assert len(added.memo) == 5 and len(set(map(id, kernels))) == 12
    assert added(field, np.array([11])).node.call.kernel is kernels[-1]
    assert np.array_equal(added(field, np.array([0])).numpy(), IMAGE)  # forgotten, and recorded again


@pytest.mark.filterwarnings("ignore:operator `scaled_often` is compiled anew")
def test_constants_that_come_back_stay(monkeypatch):
    """Numbers that change at every call keep no more kernels than the bound, and not in the place of what is used."""
    monkeypatch.setattr(operator, "MOST_BODIES", 8)
    scaled = gp.operator(name="scaled_often")(lambda f, k: _readTensor(f) * k)
    often = scaled(field, 0.5).node.call.kernel
    for k in range(40):
        scaled(field, float(k))
        assert scaled(field, 0.5).node.call.kernel is often
    gc.collect()
    assert sum(type(o) is Kernel and o.name == "scaled_often" for o in gc.get_objects()) == 8


def test_numbers_that_change_warn_once():
    shifted = gp.operator(lambda f, step: _readTensor(f, _row, _column + step))
    for k in range(8):
        shifted(field, k)
    with pytest.warns(
        UserWarning, match="for every value of `step`; pass a gp.Parameter or another 0D field, whose value can"
    ):
        shifted(field, 9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shifted(field, 10)


def test_lists_of_fields_and_of_values(device):
    @gp.operator(outputs=lambda fields: [f.type for f in fields])
    def swapped(fields):
        return [_readTensor(f) for f in fields[::-1]]

    low, high = swapped([field, gp.ScalarField(-IMAGE)])
    assert np.array_equal(low.numpy(), -IMAGE) and np.array_equal(high.numpy(), IMAGE)
    filled = gp.operator(outputs=[field.type], default=[7.0])(lambda f: _writeTensor(_out0, 1, 0, _column))(field)
    assert filled.numpy()[:2, 0].tolist() == [1, 7]
    total, count = gp.HostOperator(lambda a: [a * 2, a + 1], field, outputs=[field.type, field.type])
    assert np.array_equal(total.numpy(), IMAGE * 2) and np.array_equal(count.numpy(), IMAGE + 1)


def test_lists_of_states(device):
    a, b = gp.iterate(lambda a, b: [b, a + 1], [field, field * 0], times=4)
    assert isinstance(gp.iterate(lambda a: [a], [field], times=0), tuple)
    assert np.array_equal(a.numpy(), IMAGE + 2) and np.array_equal(b.numpy(), 0 * IMAGE + 2)


def test_lists_in_pipelines(device):
    @gp.pipeline
    def weighed(image, weights):
        f = gp.ScalarField(image)
        return [f * weights[0], f + weights[1][0]]

    weights = [2, [3]]
    for want in (3, 3, 5):
        weights[1][0] = want
        twice, more = weighed(IMAGE, weights)
        assert np.array_equal(twice, IMAGE * 2) and np.array_equal(more, IMAGE + want)
    assert len(weighed.traces) == 2
    outs = [np.empty_like(IMAGE), np.empty_like(IMAGE)]
    weighed(IMAGE, weights, out=outs)
    assert np.array_equal(outs[1], IMAGE + 5)


# --- what fields are made of -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([1, 2], "M8[s]"), "fields are made of numbers, not of dates"),
        (np.array([1, 2], "m8[s]"), "fields are made of numbers, not of time spans"),
        (np.array([None, 1]), "fields are made of numbers, not of Python objects"),
        (np.array(["1", "2"]), "fields are made of numbers, not of text"),
        (np.array([b"1"]), "fields are made of numbers, not of bytes"),
        (np.ones(2, "F"), "an array of complex64 does not convert to float32; take `.real`, `.imag` or `abs(a)`"),
        (np.ones(2, "D"), "an array of complex128 does not convert to float32; take"),
    ],
)
def test_pipelines_refuse_the_arrays_that_fields_refuse(array, message):
    for make in (lambda a: gp.ScalarField(a, dtype="float32"), gp.pipeline(lambda a: gp.ScalarField(a, dtype="f") * 1)):
        with pytest.raises(gp.SemanticError, match=re.escape(message)):
            make(array)


@pytest.mark.parametrize(
    ("value", "wide"),
    [
        (2**31, "int64"), (-(2**31) - 1, "int64"), (2**63, "uint64"), (2**64 - 1, "uint64"), (2**64, "float64"),
        ([1, 2**63], "uint64"), ([-1, 2**63], "float64"), ([[-(2**63) - 1]], "float64"),
    ],
)  # fmt: skip
def test_integers_that_int32_does_not_hold(value, wide):
    for make in (gp.ScalarField, gp.Parameter):
        with pytest.raises(gp.SemanticError, match=f"does not fit int32; give a NumPy array of {wide}"):
            make(value)


@pytest.mark.parametrize(
    "value", [[np.uint64(2**63)], [[np.int64(2**40), np.int64(-1)]], [np.int8(3)], [np.float64(0.1)]]
)
def test_lists_of_numbers_of_numpy_keep_their_dtype(value):
    for make in (gp.ScalarField, gp.Parameter):
        values, expected = make(value).numpy(), np.array(value)
        assert values.dtype == expected.dtype
        np.testing.assert_array_equal(values, expected)


SET = (2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -1, -(2**63) - 1, 2**2000, 1e50, 1.5)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "uint64", "float32", "float64"])
def test_parameters_take_the_numbers_that_their_dtype_holds(dtype):
    whole = np.dtype(dtype).kind in "iu"
    most = np.iinfo(dtype) if whole else np.finfo(dtype)
    for number in SET:
        parameter = gp.Parameter(np.ones((), dtype)[()])
        if int(most.min) <= number <= int(most.max) and (not whole or number == int(number)):
            parameter.set(number)
            assert parameter.numpy() == np.array(number).astype(dtype)
        else:
            with pytest.raises(
                gp.SemanticError, match=re.escape(f"this Parameter is {dtype}, which does not hold {number}")
            ):
                parameter.set(number)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gp.fromfunction(lambda r, c: r, (2, 3)), "fromfunction takes a FieldType, as `gp.FieldType((4, 5))`, not a tuple"),
        (lambda: gp.fromfunction(lambda r: np.ones(5), gp.FieldType(3)), "gives an array of shape (5,); a 3 float32 field"),
        (lambda: gp.fromfunction(lambda r: r * 1j, gp.FieldType(3)), "an array of complex128 does not convert to float32"),
        (lambda: gp.Field(np.ones((3, 3)), -1), "a tensor_order is 0, 1 or 2, or more, not -1"),
        (lambda: gp.Field(np.ones((3, 3)), 1.0), "a tensor_order is 0, 1 or 2, or more, not 1.0"),
    ],
)  # fmt: skip
def test_how_fields_are_not_made(make, message):
    with pytest.raises(gp.SemanticError, match=re.escape(message)):
        make()


def test_graphs_step_whole_numbers_of_times_and_save_to_paths(tmp_path):
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(np.zeros(3, "f"))
        state.next = state + 1
        graph.probe(state)
    assert graph.step(np.int64(2)) and graph.step(np.uint8(1)) and graph.tick == 3
    for wrong in (1.5, "1", None, -1, True):
        with pytest.raises(gp.SemanticError, match=f"a graph takes a number of steps, 0 or more, not {wrong!r}"):
            graph.step(wrong)
    path = tmp_path / "states.npz"
    for named in (path, str(path), bytes(path)):
        graph.step()
        graph.save(named)
        graph.reset()
        graph.load(named)
        assert graph.read(state).tolist() == [graph.tick] * 3
    for use in (graph.save, graph.load, gp.load_bundle):
        with pytest.raises(gp.SemanticError, match=r"a file is named by its path, not by a float"):
            use(1.5)
    assert graph.tick == 6


@pytest.mark.parametrize("operand", [None, "a", Decimal(1), object(), np.array(["a"]), [[1], [1, 2]]])
def test_operands_that_are_no_numbers(operand):
    field = gp.ScalarField(np.ones(3, "f"))
    for use in (lambda: field + operand, lambda: field == operand, lambda: operand - field):
        with pytest.raises(gp.SemanticError, match=r"of a Field and .*: beside a Field are Fields and numbers"):
            use()


def test_operands_that_are_no_tensors_of_the_field():
    vectors, matrices = gp.VectorField(np.ones((2, 3), "f")), gp.MatrixField(np.ones((2, 3, 3), "f"))
    for use, message in (
        (lambda: vectors * [1, 2, 3, 4], "a list of 4 numbers: the Field's tensors have 3; give as many, or wrap it"),
        (lambda: np.ones((2, 3)) - matrices, "an array of 2×3 numbers: the Field's tensors have 3×3; give as many, or wrap it"),
        (lambda: gp.pipeline(lambda a, k: gp.ScalarField(a) * k)(np.ones(3), np.ones(3)), "an array argument of the pipeline:"),
    ):  # fmt: skip
        with pytest.raises(gp.SemanticError, match=re.escape(message)):
            use()
