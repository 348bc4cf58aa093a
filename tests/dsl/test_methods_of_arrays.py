"""Methods of NumPy arrays that fields have, and fields of arrays by the names of NumPy and the array API."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gpuop as gp
from tests.harness import same_bits

A = (np.arange(12, dtype=np.float32).reshape(3, 4) - 5) * np.float32(1.25)
CALLS = [
    ("clip", (-2, 5)), ("clip", (None, 5)), ("clip", (np.float32(0), None)), ("round", ()), ("round", (1,)), ("round", (-1,)),
    ("take", ([1, 2], 1)), ("take", (3,)), ("take", (-1, 0)), ("repeat", (2, 0)), ("repeat", ([1, 0, 2], 0)), ("repeat", (3,)),
    ("dot", (A.T,)), ("trace", ()), ("trace", (1,)), ("diagonal", ()), ("diagonal", (-1,)), ("diagonal", (0, 1, 0)),
    ("flatten", ()), ("copy", ()),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "float64"])
@pytest.mark.parametrize(("name", "args"), CALLS)
def test_methods_are_those_of_numpy(name, args, dtype):
    a = np.abs(A).astype(dtype)
    with gp.use_device("reference"):
        same_bits(getattr(gp.asarray(a), name)(*args).numpy(), np.asarray(getattr(a, name)(*args)), name)


def test_indices_beyond_the_ends():
    with gp.use_device("reference"):
        for mode in ("clip", "wrap"):
            same_bits(gp.asarray(A).take(np.array([-7, 20]), 1, mode).numpy(), A.take([-7, 20], 1, mode=mode), mode)


@pytest.mark.parametrize("index", [(1, 2), (5,), (-1,), ((1, 2),), (0, -1)])
def test_items(index):
    with gp.use_device("reference"):
        value = gp.asarray(A).item(*index)
    assert value == A.item(*index) and type(value) is float


def test_numbers_of_fields_of_one_value():
    with gp.use_device("reference"):
        assert gp.asarray([[3]]).item() == 3
        assert gp.asarray(A).sum().item() == float(A.sum())
        assert gp.asarray(np.float32(2.5)).tolist() == 2.5
        assert gp.VectorField(A).item(2, 1) == A[2, 1]
        assert gp.asarray(A).tolist() == A.tolist()


@pytest.mark.parametrize("dtype", ["float32", "uint8", "bool", "complex64"])
def test_bytes(dtype):
    a = np.ones((3, 5), dtype)
    assert (gp.asarray(a).itemsize, gp.asarray(a).nbytes) == (a.itemsize, a.nbytes)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.item(), "item() of a field of shape (3, 4) takes 2 numbers, or one in row-major order, not 0"),
        (
            lambda f: f.item(1, 2, 0),
            "item() of a field of shape (3, 4) takes 2 numbers, or one in row-major order, not 3",
        ),
        (lambda f: f.item(12), "index 12 is out of bounds for axis 0 with size 12"),
        (
            lambda f: gp.from_dlpack([1]),
            "from_dlpack takes an array with `__dlpack__`, not a list; `gp.asarray` takes lists too",
        ),
    ],
)
def test_messages(call, message):
    with gp.use_device("reference"), pytest.raises((gp.SemanticError, IndexError)) as caught:
        call(gp.asarray(A))
    assert str(caught.value).startswith(message)
    assert "test_methods_of_arrays.py" in str(caught.value)


def test_conjugates_and_repeats_of_nothing():
    with gp.use_device("reference"):
        for dtype in ("bool", "uint8", "float64", "complex64"):
            same_bits(gp.asarray(A.astype(dtype)).conj().numpy(), A.astype(dtype).conj(), dtype)
        assert gp.asarray(np.ones((0, 3))).repeat([], 0).numpy().shape == (0, 3)
        same_bits(gp.asarray(A).flatten("C").numpy(), A.flatten("C"), "flatten")


def test_fields_of_arrays():
    f = gp.asarray(A, dims="y:x")
    assert f.type.tensor_shape == () and f.type.names == ("y", "x") and gp.asarray(f) is f
    assert gp.asarray(f, "int32").dtype == "int32" and gp.asarray(f, dims="a:b").type.names == ("a", "b")
    assert [gp.asarray(v).dtype for v in (1, 1.5, [True], np.int8([1]))] == ["int32", "float32", "bool", "int8"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gp.asarray(np.ones((5, 6, 3), np.uint8)).type.field_shape == (
            5,
            6,
            3,
        )  # nobody says that these are colours


@pytest.mark.parametrize(
    ("values", "dtype", "message"),
    [
        ([300], "uint8", "300 does not fit uint8, which is 0 to 255"),
        ([[1, -1]], "uint16", "-1 does not fit uint16, which is 0 to 65535"),
        (1e9, "int16", "1000000000.0 does not fit int16, which is -32768 to 32767"),
        ([0.5, float("nan")], "int32", "nan does not fit int32, which is -2147483648 to 2147483647"),
        ([2.0**31], "int32", "2147483648.0 does not fit int32, which is -2147483648 to 2147483647"),
    ],
)
def test_numbers_of_python_fit_their_dtype(values, dtype, message):
    for make in (gp.asarray, gp.ScalarField):
        with pytest.raises(gp.SemanticError) as caught:
            make(values, dtype)
        assert str(caught.value).startswith(message)


def test_numbers_of_python_are_cut_as_numpy_cuts_them():
    with gp.use_device("reference"):
        same_bits(gp.asarray([2.75, -2.75], "int8").numpy(), np.asarray([2.75, -2.75], "int8"), "cut")
        same_bits(gp.asarray([255.9], "uint8").numpy(), np.asarray([255.9], "uint8"), "cut")
        same_bits(gp.asarray(np.array([300]), "uint8").numpy(), np.asarray(np.array([300]), "uint8"), "arrays wrap")
        same_bits(gp.asarray([], "uint8").numpy(), np.asarray([], "uint8"), "empty")


def test_misspelt_keywords_of_methods():
    for call, message in (
        (lambda f: f.take([0], axs=0), "take() got an unexpected keyword argument 'axs'. Did you mean 'axis'?"),
        (
            lambda f: f.round(decimal=1),
            "round() got an unexpected keyword argument 'decimal'. Did you mean 'decimals'?",
        ),
        (lambda f: f.dot(c=1), "dot() got an unexpected keyword argument 'c'; it takes b"),
    ):
        with pytest.raises(TypeError) as caught:
            call(gp.asarray(A))
        assert str(caught.value) == message


def test_memory_is_shared_where_the_caller_says_so():
    a = A.copy()
    copied, shared, exported = gp.asarray(a), gp.asarray(a, copy=False), gp.from_dlpack(a)
    apart = gp.from_dlpack(a, copy=True)
    a[0, 0] = 9
    with gp.use_device("reference"):
        assert [f.item(0, 0) for f in (copied, apart)] == [A[0, 0]] * 2
        assert [f.item(0, 0) for f in (shared, exported)] == [9] * 2


def test_pipelines_take_arrays_by_asarray():
    with gp.use_device("reference"):
        same_bits(gp.pipeline(lambda a: gp.asarray(a).clip(0, 2))(A), A.clip(0, 2), "pipeline")


@pytest.mark.parametrize(
    "make",
    [
        lambda: gp.ScalarField(np.ones((4, 5, 3), np.float32)),
        lambda: gp.VectorField(np.ones((500, 500), np.float32)),
        lambda: gp.FieldType(500, 500),
    ],
)
def test_advice_stands_at_the_line_of_the_user(make):
    with pytest.warns(UserWarning, match=r"use (VectorField|ScalarField)|for a grid") as record:
        make()
    assert record[0].filename == __file__
