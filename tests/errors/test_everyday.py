"""Mistakes of beginners, each with the sentence that says what to write instead."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import gpuop as gp
from gpuop import ndimage
from gpuop.dsl import *

from .wrong import Wrongs

WRONGS = Wrongs()
SCALAR = gp.ScalarField(np.arange(20, dtype="f").reshape(4, 5))
UNSIGNED = {name: gp.ScalarField(np.arange(4, dtype=name)) for name in ("uint8", "uint16", "uint32", "uint64")}


@gp.operator
def plus_one(image):
    return _readTensor(image) + 1


@gp.operator
def first_of(images):
    return _readTensor(images[0])


@gp.pipeline
def double(x):
    return gp.ScalarField(x) * 2


@dataclasses.dataclass(unsafe_hash=False)
class Pair:
    left: object
    right: object


@WRONGS.add("multiply: the number 1000000.0 does not fit float16; convert the Field first, as in `f.astype('float32')`")
def a_number_beyond_halves():
    gp.ScalarField(np.float16([1])) * 1e6  # here


@WRONGS.add("add: the number 70000 does not fit float16; convert the Field first, as in `f.astype('float32')`")
def an_integer_beyond_halves():
    gp.ScalarField(np.float16([1])) + 70000  # here


@WRONGS.add(
    "argument `x` of pipeline `double` is a memoryview, not an array of NumPy or of another library; give `np.asarray(x)`"
)
def memory_in_a_pipeline():
    double(memoryview(bytearray(3)))  # here


@WRONGS.add("border=128 does not fit the field's dtype, unorm8; it is a number from 0 to 1")
def a_byte_that_stands_for_a_share():
    shares = gp.ScalarField(np.uint8([[1]]), "unorm8")
    gp.operator(lambda f: _readTensor(f, _row, _column + 1, border=128))(shares)  # here


@WRONGS.add("bitwise_and: the number -2 does not fit uint32; write 0xFFFFFFFE for its bits")
def complement_beside_a_field():
    UNSIGNED["uint32"] & ~1  # here


@WRONGS.add("-2 does not fit uint; convert the other side first, or write 0xFFFFFFFE if its bits are meant")
def complement_in_a_kernel():
    gp.operator(lambda f: _readTensor(f) & ~1)(UNSIGNED["uint32"])  # here


@pytest.mark.parametrize(("dtype", "bits"), [("uint8", "0xF8"), ("uint16", "0xFFF8"), ("uint64", "0xFFFFFFFFFFFFFFF8")])
def test_the_bits_of_a_complement(dtype, bits):
    with pytest.raises(gp.SemanticError, match=f"write {bits} for its bits"):
        UNSIGNED[dtype] & ~7
    actual = (UNSIGNED[dtype] & int(bits, 16)).numpy()
    np.testing.assert_array_equal(actual, np.arange(4, dtype=dtype) & np.dtype(dtype).type(int(bits, 16)))


@WRONGS.add(
    "argument `image` of operator `plus_one` is a Pair that holds Fields: name them one by one, each an argument of its own, "
    "as in `plus_one(left=left, right=right)`"
)
def fields_in_a_dataclass():
    plus_one(Pair(SCALAR, SCALAR))  # here


@WRONGS.add("argument `image` of operator `plus_one` is a dict that holds Fields: name them one by one")
def fields_in_a_dict():
    plus_one({"image": SCALAR})  # here


@WRONGS.add(
    "`pair` of pipeline `of_pair` holds arrays; each array is an argument with a name of its own: name them one by one"
)
def arrays_in_a_dataclass():
    @gp.pipeline
    def of_pair(pair):
        return gp.ScalarField(pair.left)

    of_pair(Pair(np.ones(3), 1))  # here


@WRONGS.add("reads want a Field, not an ndarray; wrap arrays, as in `gp.ScalarField(array)`")
def an_array_at_the_call():
    plus_one(np.ones((4, 5)))  # here


@WRONGS.add("reads want a Field, not a list; wrap arrays, as in `gp.ScalarField(array)`")
def a_list_of_arrays_at_the_call():
    plus_one([np.ones((4, 5)), np.ones((4, 5))])  # here


@WRONGS.add("reads want a Field, not a tuple; wrap arrays, as in `gp.ScalarField(array)`")
def a_tuple_in_a_list_at_the_call():
    first_of([(np.ones((4, 5)), SCALAR)])  # here


@WRONGS.add("reads want a Field, not a list; wrap arrays, as in `gp.ScalarField(array)`")
def a_list_of_numbers_at_the_call():
    plus_one([[1.0, 2.0], [3.0, 4.0]])  # here


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sigma", lambda p: ndimage.gaussian_filter(SCALAR, sigma=p)),
        ("sigma", lambda p: ndimage.gaussian_laplace(SCALAR, p)),
        ("sigma", lambda p: ndimage.gaussian_gradient_magnitude(SCALAR, p)),
        ("size", lambda p: ndimage.uniform_filter(SCALAR, size=p)),
        ("size", lambda p: ndimage.median_filter(SCALAR, size=p)),
        ("size", lambda p: ndimage.percentile_filter(SCALAR, 50, size=p)),
        ("size", lambda p: ndimage.rank_filter(SCALAR, 2, size=p)),
        ("size", lambda p: ndimage.maximum_filter(SCALAR, size=p)),
        ("size", lambda p: ndimage.grey_opening(SCALAR, size=p)),
        ("size", lambda p: ndimage.generic_filter(SCALAR, np.max, size=p)),
        ("zoom", lambda p: ndimage.zoom(SCALAR, p)),
        ("origin", lambda p: ndimage.uniform_filter(SCALAR, 3, origin=p)),
        ("offset", lambda p: ndimage.affine_transform(SCALAR, np.eye(2), offset=p)),
    ],
)
def test_numbers_of_the_device_as_arguments_of_filters(name, call):
    """The sentence names the argument."""
    with pytest.raises(gp.UnsupportedError) as caught:
        call(SCALAR)
    assert (
        f"`{name}` determines the kernels, so it is a Python number, as `{name}=2`, or one for each axis, not a"
        in str(caught.value)
    )
    assert f"as `{name}=2`" in str(caught.value)


@WRONGS.add("`divmod` of Python does not take kernel values; write `x // y` and `x % y`")
def divmod_in_a_body():
    gp.operator(lambda f: divmod(_readTensor(f), 3)[0])(SCALAR)  # here


@WRONGS.add("`divmod` of Python does not take kernel values; write `x // y` and `x % y`")
def divmod_by_a_value():
    gp.operator(lambda f: divmod(3, _readTensor(f))[0])(SCALAR)  # here


@WRONGS.add(
    "a kernel value has no `len`: it is a number, or a vector of 2 to 4 components; a field has its `tensor_shape`"
)
def len_in_a_body():
    gp.operator(lambda f: len(_readTensor(f)))(SCALAR)  # here


@WRONGS.add(
    "compiled functions of Numba do not take kernel values: call the Python function that was compiled, `f.py_func(x)`"
)
def compiled_by_numba():
    # Numba asks a value of another library for its type so
    gp.operator(lambda f: getattr(_readTensor(f), "_numba_type_", None))(SCALAR)  # here


@WRONGS.add("gpuop has no `exp`: NumPy functions take fields, as `np.exp(field)`")
def exp_of_gpuop():
    gp.exp(SCALAR)  # here


@WRONGS.add("gpuop has no `sum`: NumPy functions take fields, as `np.sum(field)`")
def sum_of_gpuop():
    gp.sum(SCALAR)  # here


@WRONGS.add(
    "sensor `camera`: a pair of True and an ndarray came, as `cap.read` of OpenCV gives, and a frame is an "
    "array: give the function `lambda: cap.read()[1]`")  # fmt: skip
def a_pair_of_a_sensor():
    with gp.ComputeGraph(device="reference") as graph:
        camera = gp.Sensor(gp.FieldType((4, 5), dtype="uint8"), lambda: (True, np.zeros((4, 5), "uint8")))  # here
        graph.probe(camera + 0, "seen")
    graph.step()
    graph.read("seen")


class Tensor:
    """As PyTorch's are, where they have been made to follow what is computed."""

    requires_grad, shape, dtype = True, (3,), "float32"

    def __array__(self, *_, **__):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def __dlpack__(self, **_):
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    def __dlpack_device__(self):
        return 1, 0


DynamicJaxprTracer = type("DynamicJaxprTracer", (Tensor,), {"__module__": "jax._src.interpreters.partial_eval"})


@WRONGS.add(
    "this tensor requires a gradient, and PyTorch does not see what is computed with it here: `gpuop.torch.wrap(pipeline)` is a "
    "function of tensors with gradients; for values alone give `tensor.detach()`, or compute in `torch.no_grad()`"
)
def a_tensor_with_a_gradient():
    gp.ScalarField(Tensor())  # here


@WRONGS.add(
    "this is a tracer: inside of `jax.jit`, `jax.grad` and `jax.vmap` arrays have no values; `gpuop.jax.wrap(pipeline)` is a "
    "function that has its place there"
)
def a_tracer():
    gp.ScalarField(DynamicJaxprTracer())  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()


def test_names_that_are_there():
    """The names of completion are there, and are those of the library."""
    assert {"ndimage", "fft", "linalg", "random", "exp"} - set(dir(gp)) == {"exp"}
    assert all(hasattr(gp, name) for name in dir(gp))
    assert set(dir(ndimage)) == set(ndimage.__all__) and all(hasattr(ndimage, name) for name in dir(ndimage))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64"])
def test_dtypes_have_what_numpys_have(dtype):
    result, expected = gp.zeros(3, dtype=dtype).dtype, np.dtype(dtype)
    assert (result.kind, result.type, result.itemsize, result.name) == (
        expected.kind, expected.type, expected.itemsize, expected.name,
    )  # fmt: skip
    assert gp.zeros(3, dtype="uint8").astype(dtype, copy=False).dtype == dtype
