"""Prepared calls with arrays in the memory of a device, here of one whose memory is the host's and whose library is this file."""

from __future__ import annotations

import sys
import threading
from itertools import count
from types import ModuleType

import numpy as np
import pytest

import gpuop as gp
from gpuop.engine.jit.prepared_call import PreparedDeviceCall
from gpuop.engine.jit.prepared_stream_call import PreparedStreamCall
from gpuop.runtime.base import dlpack
from gpuop.runtime.base.launch_list import OneByOne
from gpuop.runtime.base.stream_arrays import StreamArrays
from gpuop.runtime.devices import current
from gpuop.runtime.reference.device import Reference
from tests.counted import counted
from tests.harness import same_bits

LIBRARY = "library_of_a_device"
A = np.random.default_rng(0).random((16, 24), np.float32)


class Lent(np.ndarray):
    """Planes of an array of the library, as kernels take them."""


class DeviceArray:
    """An array of the library."""

    __module__ = LIBRARY
    places = count(1 << 20, 1 << 20)

    def __init__(self, array, behind=0):
        self.array, self.address = array, next(self.places) + behind

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)

    def __dlpack_device__(self):
        return dlpack.CUDA, 0

    def __dlpack__(self, **_):
        raise AssertionError("the device knows the library")


class Streams(StreamArrays):
    """The library's arrays, if its functions run in streams.

    Attributes:
        launches_there: whether kernels are launched in these streams.
        memory: bytes, by the address of their begin.
    """

    byte = np.dtype(np.uint8)

    def __init__(self, launches_there):
        self.current, self.behind, self.full, self.order, self.memory = 5, 0, False, [], {}
        self.launches_there = launches_there

    def stream(self):
        return self.current

    def place(self, array):
        if type(array) is not DeviceArray:
            return 0, ()
        if array.array.flags.c_contiguous:
            self.memory[array.address] = array.array.reshape(-1).view(np.uint8)
        return array.address, array.array.strides

    def dtype(self, dtype):
        return dtype

    def empty(self, shape, dtype):
        if self.full:
            raise MemoryError
        array = DeviceArray(np.empty(shape, dtype), self.behind)
        return array, self.place(array)[0]

    def planes(self, address, kind):
        """The planes of a type at an address."""
        begin = max(each for each in [*self.memory] if each <= address)
        there = self.memory[begin][address - begin :][: kind.nbytes]
        return there.view(kind.memory_dtype).reshape(kind.planes, -1)

    def direct(self, stream):
        return stream if self.launches_there else None

    def follow(self, stream):
        self.order.append(("follow", stream))

    def lead(self, stream):
        self.order.append(("lead", stream))


class Launches(OneByOne):
    """Launches in any stream, as CUDA's are."""

    any_stream = True

    def __init__(self, launches, backend):
        super().__init__(launches, backend.once)
        self.order = backend.streams.order

    def run(self, values, memory, stream=0):
        self.order.append(("run", stream))
        return super().run(values, memory)


class Borrower(Reference):
    """The reference, with a memory of its own that the library shares."""

    def __init__(self, streams):
        super().__init__()
        self.name, self.fails = "a device of the library", False
        self.kept, self.streams = [], streams

    def arrays_of(self, library):
        return self.streams

    def borrow(self, array):
        a = array.array
        steps = tuple(step // a.itemsize for step in a.strides)
        facts = dlpack.DLPackMemory(a.ctypes.data, a.shape, steps, a.dtype, (dlpack.CUDA, 0), False, array)
        lent = a.reshape(1, -1) if a.flags.c_contiguous else a.copy().reshape(1, -1)
        lent = lent.view(Lent)
        lent.array = facts._replace(address=facts.address // 256 * 256)  # no test is of alignment
        return lent

    def lend(self, buffer, shape, strides, dtype):
        return np.asarray(buffer).view(dtype).reshape(shape)

    def launch_list(self, launches):
        return Launches(launches, self) if self.streams else super().launch_list(launches)

    def once(self, program, arguments):
        if self.fails:
            raise gp.DeviceError("no memory")
        kinds = [param.type for param in (*program.inputs, *program.written)]
        both = zip(arguments, kinds, strict=True)
        super().once(program, [self.streams.planes(a, k) if hasattr(a, "address") else a for a, k in both])

    def keep(self, owner):
        self.kept.append(owner)


@pytest.fixture(autouse=True, params=["lent", "in order of streams", "in streams"])
def backend(monkeypatch, request):
    library = ModuleType(LIBRARY)
    library.from_dlpack = DeviceArray
    monkeypatch.setitem(sys.modules, LIBRARY, library)
    backend = Borrower(None if request.param == "lent" else Streams(request.param == "in streams"))
    with gp.use_device(backend):
        yield backend


@pytest.fixture
def prepared(monkeypatch, backend):
    """The prepared calls that ran."""
    kind = PreparedStreamCall if backend.streams else PreparedDeviceCall
    ran, inner = [], kind.result

    def spy(self, inputs, out):
        result = inner(self, inputs, out)
        ran.append(result is not NotImplemented)
        return result

    monkeypatch.setattr(kind, "result", spy)
    return ran


@pytest.fixture
def streams(backend):
    if not backend.streams:
        pytest.skip("the library has no streams")
    return backend.streams


def scaled():
    return gp.pipeline(lambda a: gp.ScalarField(a) * 2 + 1)


def test_results_are_of_the_library(prepared):
    pipeline = scaled()
    for n in range(4):
        result = pipeline(DeviceArray(A + n))
        assert type(result) is DeviceArray
        same_bits(result.array, (A + n) * 2 + 1)
    assert prepared == [True] * 2  # the first call traces, the second prepares


def test_results_in_the_arrays_of_the_caller(prepared):
    pipeline = gp.pipeline(lambda a, b: (gp.ScalarField(a) + gp.ScalarField(b), gp.ScalarField(a) * 3))
    for n in range(4):
        outs = DeviceArray(np.empty_like(A)), DeviceArray(np.empty_like(A))
        assert pipeline(DeviceArray(A), DeviceArray(A + n), out=outs) == outs
        same_bits(np.stack([o.array for o in outs]), np.stack([A + (A + n), A * 3]))
    assert prepared == [True] * 2
    for wrong in ((outs[0], outs[0]), outs[:1], (outs[0], DeviceArray(np.empty((16, 25), "f")))):
        with pytest.raises(gp.ArgumentError, match="out="):
            pipeline(DeviceArray(A), DeviceArray(A), out=wrong)
    assert prepared == [True] * 2 + [False] * 3


def test_a_result_over_an_argument(prepared):
    pipeline = scaled()
    for _ in range(3):
        pipeline(DeviceArray(A), out=DeviceArray(np.empty_like(A)))
    both = DeviceArray(A.copy())
    assert pipeline(both, out=both) is both
    same_bits(both.array, A * 2 + 1)
    assert prepared == [True, False]


def test_arrays_that_lie_otherwise(prepared):
    pipeline = scaled()
    for _ in range(3):
        pipeline(DeviceArray(A))
    same_bits(pipeline(DeviceArray(np.asfortranarray(A))).array, A * 2 + 1)
    assert prepared == [True, False]


def test_parameters_globals_and_devices(prepared):
    gain = gp.Parameter(2.0)
    pipeline = gp.pipeline(lambda a: gp.ScalarField(a) * gain)
    for value in (2.0, 3.0, 4.0):
        gain.set(value)
        same_bits(pipeline(DeviceArray(A)).array, A * np.float32(value))
    assert prepared == [True]
    with gp.use_device("reference"):
        same_bits(pipeline(A), A * np.float32(4))
    same_bits(pipeline(DeviceArray(A)).array, A * np.float32(4))


def test_a_call_that_fails_keeps_its_arrays(backend, prepared):
    pipeline = scaled()
    for _ in range(3):
        pipeline(DeviceArray(A))
    backend.fails = True
    with pytest.raises(gp.DeviceError, match="no memory"):
        pipeline(DeviceArray(A))
    assert len(backend.kept) == 1
    backend.fails = False
    same_bits(pipeline(DeviceArray(A)).array, A * 2 + 1)


def test_work_is_in_the_order_of_the_current_stream(streams, prepared):
    pipeline, out = scaled(), DeviceArray(np.empty_like(A))
    for _ in range(2):
        pipeline(DeviceArray(A)), pipeline(DeviceArray(A), out=out)
    for streams.current in (0, 7):
        streams.order.clear()
        same_bits(pipeline(DeviceArray(A + 1)).array, (A + 1) * 2 + 1)
        assert pipeline(DeviceArray(A), out=out) is out
        events = [("follow", streams.current), ("run", 0), ("lead", streams.current)]
        assert streams.order == 2 * ([("run", streams.current)] if streams.launches_there else events)
    assert all(prepared)
    streams.current = None  # another device is current: the library's new arrays would lie there
    same_bits(pipeline(DeviceArray(A)).array, A * 2 + 1)
    assert not prepared[-1]


def test_the_library_has_no_memory_or_it_lies_otherwise(streams, prepared):
    pipeline = scaled()
    for _ in range(3):
        pipeline(DeviceArray(A))
    for streams.full, streams.behind in ((True, 0), (False, 16)):
        same_bits(pipeline(DeviceArray(A)).array, A * 2 + 1)
        assert not prepared[-1]
    streams.full, streams.behind = False, 0
    same_bits(pipeline(DeviceArray(A, behind=4)).array, A * 2 + 1)
    assert not prepared[-1]


def test_memory_of_arguments_and_results_overlaps(streams, prepared):
    pipeline = scaled()
    for _ in range(3):
        pipeline(DeviceArray(A), out=DeviceArray(np.empty_like(A)))
    array, out = DeviceArray(A), DeviceArray(np.empty_like(A))
    for out.address, apart in (
        (array.address + 256, False),
        (array.address + 2048, True),
        (array.address - 256, False),
        (array.address - 1536, True),
    ):
        pipeline(array, out=out)
        assert prepared[-1] is apart


@pytest.mark.parametrize("dtype", ["bool", "float16", "int64", "complex64", "complex128", "uint8"])
def test_dtypes_of_results(streams, dtype):
    """Results that lie otherwise in kernels go another way."""
    a = (A * 100).astype(dtype)
    same = gp.pipeline(lambda x: np.where(gp.Field(x) != 0, gp.Field(x), gp.Field(x)))
    if dtype[0] == "c":
        pytest.skip("the interpreter takes its planes apart from arrays of the host alone")
    for _ in range(3):
        same_bits(same(DeviceArray(a)).array.astype(dtype), a)


def test_counted(backend, prepared, monkeypatch):
    """But for what the device does: a launch, and to borrow memory."""
    pipeline, array, out = scaled(), DeviceArray(A), DeviceArray(np.empty_like(A))
    for _ in range(2):
        pipeline(array), pipeline(array, out=out)
    lent = {each: backend.borrow(each) for each in (array, out)}
    new = {gp.FieldType(A.shape): lent[out]}
    monkeypatch.setattr(backend, "borrow", lent.get)
    monkeypatch.setattr(backend, "empty", new.get)
    monkeypatch.setattr(backend, "once", lambda *_: None)
    monkeypatch.setattr(Launches, "run", lambda *_: {})
    alone, into = (47, 50) if backend.streams else (62, 75)
    assert counted(lambda: pipeline(array)) <= alone
    assert counted(lambda: pipeline(array, out=out)) <= into
    assert all(prepared)


def test_intermediate_values_are_in_memory_of_the_library(streams, prepared):
    """Each call has its own, in which values that do not live together share places."""
    chain = gp.pipeline(optimize=False)(lambda a: ((gp.ScalarField(a) * 2 + 1) * 3 - a.shape[0]) * 2)
    expected = ((A * 2 + 1) * 3 - np.float32(16)) * 2
    for _ in range(4):
        made = len(streams.memory)
        same_bits(chain(DeviceArray(A)).array, expected)
        same_bits(chain(DeviceArray(A), out=DeviceArray(np.empty_like(expected))).array, expected)
    sizes = [memory.nbytes for memory in [*streams.memory.values()][made:]]
    assert sorted(sizes) == [A.nbytes] * 4 + [2 * A.nbytes] * 2  # arguments and results, and two places twice
    assert prepared == [True] * 4


def test_several_results_beside_intermediate_values(streams, prepared):
    """The memory of intermediate values is no result."""
    steps = gp.pipeline(optimize=False)(lambda a: ((gp.ScalarField(a) + 1) * 2, (gp.ScalarField(a) * 3 - 1) * 4))
    for _ in range(3):
        results = steps(DeviceArray(A))
        assert isinstance(results, tuple) and len(results) == 2
        same_bits(results[0].array, (A + 1) * 2)
        same_bits(results[1].array, (A * 3 - 1) * 4)
    assert prepared == [True]


def test_values_of_the_queue_are_in_its_order(streams, prepared):
    """Memory of a field belongs to the queue, in whose order it is freed."""
    table = gp.ScalarField(A + 1)
    pipeline = gp.pipeline(lambda a: gp.ScalarField(a) * table)
    for _ in range(2):
        pipeline(DeviceArray(A))
    streams.order.clear()
    same_bits(pipeline(DeviceArray(A)).array, A * (A + 1))
    assert streams.order == [("follow", 5), ("run", 0), ("lead", 5)] and prepared == [True]


def test_threads_have_values_of_their_own(streams, prepared):
    chain = gp.pipeline(optimize=False)(lambda a: (gp.ScalarField(a) * 2 + 1) * 3)
    for _ in range(3):
        chain(DeviceArray(A))
    backend, wrong = current(), []

    def work(n):
        with gp.use_device(backend):
            mine = A + n
            for _ in range(20):
                result = chain(DeviceArray(mine)).array
                wrong.extend([n] * (not np.array_equal(result, (mine * 2 + 1) * 3)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong and all(prepared)


def test_libraries_without_memory_for_intermediate_values(streams, prepared):
    """Memory of the queue's is used in the order of the queue."""
    streams.has_memory = False
    chain = gp.pipeline(optimize=False)(lambda a: (gp.ScalarField(a) * 2 + 1) * 3)
    for _ in range(3):
        streams.order.clear()
        same_bits(chain(DeviceArray(A)).array, (A * 2 + 1) * 3)
    assert streams.order == [("follow", 5), ("run", 0), ("lead", 5)] and all(prepared)
