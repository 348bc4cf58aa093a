"""DLPack capsules taken from NumPy and given to it: addresses, strides, dtypes, and who lives how long."""

from __future__ import annotations

import gc
import sys
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl.fields import services
from gpuop.engine.interop import share
from gpuop.runtime.base import dlpack
from gpuop.runtime.cuda.arrays import borrow
from tests.process import python

A = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
ARRAYS = {
    "contiguous": A,
    "strided": A[1::2, :, ::3],
    "backwards": A[::-1, :, ::-2],
    "transposed": A.T,
    "0D": np.array(3.5),
    "empty": np.empty((3, 0, 2), np.int16),
    **{
        name: np.arange(7).astype(name)
        for name in ("bool", "int8", "uint16", "int64", "float16", "complex64", "complex128")
    },
}


class Given:
    """An object from which a consumer takes a capsule."""

    def __init__(self, memory: dlpack.DLPackMemory) -> None:
        self.memory = memory
        self.done: list[str] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.memory.device

    def __dlpack__(self, **_: object) -> object:
        return dlpack.give(self.memory, lambda: self.done.append("done"))


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_taken(array: np.ndarray) -> None:
    memory = dlpack.take(array.__dlpack__())
    assert (memory.shape, memory.dtype, memory.device) == (array.shape, array.dtype, (dlpack.CPU, 0))
    if array.size:
        assert memory.address == array.ctypes.data
        assert [n * array.itemsize for n in memory.strides] == list(array.strides)


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_given(array: np.ndarray) -> None:
    strides = tuple(n // array.itemsize for n in array.strides)
    device = (dlpack.CPU, 0)
    values = Given(dlpack.DLPackMemory(array.ctypes.data, array.shape, strides, array.dtype, device, False, array))
    actual = np.from_dlpack(values)
    assert (
        actual.shape == array.shape
        and actual.dtype == array.dtype
        and (not array.size or actual.strides == array.strides)
    )
    np.testing.assert_array_equal(actual, array)
    assert values.done == []
    del actual
    gc.collect()
    assert values.done == ["done"]


def test_the_producer_is_told_when_nobody_needs_its_memory() -> None:
    array = np.ones(5)
    gone = weakref.ref(array)
    memory = dlpack.take(array.__dlpack__())
    del array
    gc.collect()
    assert gone() is not None and memory.address
    del memory
    gc.collect()
    assert gone() is None


LATE = """
import builtins, ctypes, sys
import numpy as np
from gpuop.runtime.base import dlpack

a = np.arange(4.0)
memory = dlpack.DLPackMemory(a.ctypes.data, a.shape, (1,), a.dtype, (dlpack.CPU, 0), False, a)
capsule = dlpack.give(memory, lambda: print("done"))

class Given:
    __dlpack_device__ = lambda self: (dlpack.CPU, 0)
    __dlpack__ = lambda self, **_: capsule

def taken():
    '''The addresses of the memory, and of its deleter, as of a consumer in C.'''
    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    managed = ctypes.pythonapi.PyCapsule_GetPointer(ctypes.py_object(capsule), b"dltensor")
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), b"used_dltensor")
    return ctypes.c_void_p.from_address(managed + 56), ctypes.c_void_p(managed)

"""
CONSUMERS = {  # what they do with the capsule, and what is printed
    "an array in a cache of a library": ("builtins.cached = np.from_dlpack(Given())", ""),
    "a capsule in a cache": ("builtins.cached = capsule", ""),
    "a static object of C++": ("ctypes.CDLL(None).__cxa_atexit(*taken(), None)", ""),
    "a thread of C": (
        """libc, thread = ctypes.CDLL(None), ctypes.c_void_p()
libc.pthread_create(ctypes.byref(thread), None, *taken())
libc.pthread_join(thread, None)""",
        "done\n",
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="the names of C's functions are those of Linux")
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_consumers_that_outlive_the_interpreter_or_are_threads_of_c(consumer: str) -> None:
    """Nothing crashes, and Python complains of nothing; at exit nobody is told."""
    action, printed = CONSUMERS[consumer]
    done = python("-c", LATE + action)
    assert (done.stdout, done.stderr) == (printed, "")


def test_a_capsule_that_nobody_takes() -> None:
    values = Given(dlpack.DLPackMemory(A.ctypes.data, A.shape, (30, 6, 1), A.dtype, (dlpack.CPU, 0), False, A))
    capsule = values.__dlpack__()
    assert values.done == []
    del capsule
    gc.collect()
    assert values.done == ["done"]


def test_arrays_that_only_have_dlpack():
    """They are taken as `np.from_dlpack` takes them, in their own dtype."""

    class Only:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    for array in (np.arange(12.0).reshape(3, 4), np.arange(6, dtype=np.int16), np.array(2, np.float32)):
        field = gp.ScalarField(Only(array))
        assert field.dtype == array.dtype and field.numpy().tolist() == array.tolist()


@pytest.mark.parametrize(("behind", "expected"), [(0, None), (256, None), (4, 1), (16, 0), (28, 3), (2, None)])
def test_shared_memory_is_known_by_where_it_begins(behind, expected):
    """Of two arrays of one shape, the one that begins elsewhere is loaded otherwise."""
    for steps in ((6, 1), (9, 1)):
        memory = dlpack.DLPackMemory(4096 + behind, (5, 6), steps, np.dtype("f4"), (2, 0), False, None)
        backend = SimpleNamespace(borrow=lambda array: SimpleNamespace(array=array))
        layout = share(memory, gp.FieldType((5, 6)), backend).layout
        if behind % 256 == 0 and steps == (6, 1):
            assert layout is None
        else:
            assert (layout.point, layout.behind) == (steps, 0 if behind % 256 == 0 else expected)


@pytest.mark.parametrize("stream", [1, 77, None])
def test_cupys_arrays_are_taken_behind_the_stream_that_their_interface_names(stream):
    facts = {"shape": (4, 5, 6), "typestr": "<f4", "strides": None, "data": (A.ctypes.data, False), "version": 3}
    followed, references = [], []
    memory = SimpleNamespace(
        name="cuda:0", handle=5, follow=followed.append, retire_after=lambda _, owner: references.append(owner)
    )
    array = type("ndarray", (), {"__module__": "cupy", "__dlpack_device__": lambda self: (2, 0)})()
    array.__class__.__dlpack__ = lambda self, stream: events.append(stream) or A.__dlpack__()
    array.device = SimpleNamespace(id=0)
    array.__cuda_array_interface__, events = facts | ({"stream": stream} if stream else {}), []
    borrowed = borrow(memory, 0, array)
    assert (borrowed.array.address, borrowed.array.strides) == (A.ctypes.data, (30, 6, 1))
    assert (followed, events) == (
        ([stream], []) if stream else ([], [5])
    )  # the library's own way where nothing is named
    owner = borrowed.array.owner
    del borrowed
    assert references == [owner] and (owner is array) == bool(stream)
    with pytest.raises(gp.DeviceError, match="not on cuda:0"):
        borrow(memory, 1, array)


class OnGpu:
    """A field's values in a GPU's memory, as `ExportedBuffer` gives them: whoever takes a capsule is noted."""

    def __init__(self) -> None:
        self.streams: list[object] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, 1

    def __dlpack__(self, *, stream: object = None, **_: object) -> object:
        self.streams.append(stream)
        return dlpack.give(
            dlpack.DLPackMemory(A.ctypes.data, A.shape, (30, 6, 1), A.dtype, (dlpack.CUDA, 1), False, A), lambda: None
        )


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> OnGpu:
    lent = OnGpu()
    monkeypatch.setattr(services.above, "export", lambda field: lent)
    return lent


def test_numpy_asks_for_what_is_on_a_gpu(on_gpu: OnGpu) -> None:
    field = gp.ScalarField(A) * 2
    for options in ({"device": "cpu"}, {"device": "cpu", "copy": True}):
        actual = np.from_dlpack(field, **options)
        np.testing.assert_array_equal(actual, A * 2)
        assert actual.dtype == A.dtype
    numpys = r'the values are on a GPU, where NumPy cannot read them: `field.numpy\(\)`, or `np.from_dlpack\(field, device="cpu"\)`'
    for options in ({}, {"copy": True}, {"copy": False}):
        with pytest.raises(BufferError, match=numpys):
            np.from_dlpack(field, **options)
    with pytest.raises(BufferError, match="the values are on a GPU, and `copy=False` leaves them there"):
        np.from_dlpack(field, device="cpu", copy=False)
    assert on_gpu.streams == []


def test_others_ask_for_what_is_on_a_gpu(on_gpu: OnGpu) -> None:
    """PyTorch, CuPy and JAX name a stream; what names nothing takes it from the device as well."""
    field = gp.ScalarField(A)
    for options in ({}, {"max_version": (1, 0)}, {"stream": 7}, {"stream": 7, "dl_device": None, "copy": None}):
        assert dlpack.take(field.__dlpack__(**options)).device == (dlpack.CUDA, 1)
    dlpack.take(field.__dlpack__(stream=7, dl_device=(dlpack.CUDA, 1)))
    assert on_gpu.streams == [None, None, 7, 7, 7]
    with pytest.raises(BufferError, match=r"the values are on \(2, 1\), not on \(2, 0\)"):
        field.__dlpack__(stream=7, dl_device=(dlpack.CUDA, 0))
    with pytest.raises(BufferError, match="shared without a copy only"):
        field.__dlpack__(stream=7, copy=True)


def test_what_is_on_the_host_is_not_on_a_gpu() -> None:
    field = gp.ScalarField(A)
    with gp.use_device("reference"):
        np.testing.assert_array_equal(np.from_dlpack(field), A)
        with pytest.raises(BufferError, match=r"the values are on \(1, 0\), not on \(2, 0\)"):
            field.__dlpack__(dl_device=(dlpack.CUDA, 0))
