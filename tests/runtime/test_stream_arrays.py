"""Arrays of CuPy and PyTorch without the protocols of exchange, here of modules that say what those do."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from gpuop.runtime.cuda.driver import Active
from gpuop.runtime.cuda.memory import CudaMemory
from gpuop.runtime.cuda.stream_arrays import CupyArrays, NumbaArrays, TorchArrays
from gpuop.runtime.cuda.xla_arrays import XlaArray, XlaArrays, in_stream


class Memory:
    """The part of a CudaMemory that arrays of libraries use."""

    handle, ordered_by_driver = 40, CudaMemory.ordered_by_driver

    def __init__(self, queues=1, retired=()):
        self.calls, self.streams = [], [self] * queues
        self.let_go, self.retired = [], [*retired]
        for name in ("follow", "lead", "release_ended"):
            assert hasattr(CudaMemory, name)
            setattr(self, name, lambda *args, name=name: self.calls.append((name, *args)))


class CupyArray:
    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.strides = shape, dtype, (8 * shape[1], 8)
        self.data = SimpleNamespace(ptr=4096, device_id=1)


class Tensor:
    requires_grad, layout, device, dtype, conj, neg = False, "strided", ("cuda", 1), "c8", False, False

    def data_ptr(self):
        assert self.layout == "strided" and not self.requires_grad
        return 4096

    def stride(self):
        assert self.layout == "strided"
        return 3, 1

    def is_conj(self):
        return self.conj

    def is_neg(self):
        return self.neg


@pytest.fixture
def cupy(monkeypatch):
    module = SimpleNamespace(ndarray=CupyArray, device=1, stream=SimpleNamespace(ptr=0))
    module.cuda = SimpleNamespace(
        get_current_stream=lambda: module.stream, runtime=SimpleNamespace(getDevice=lambda: module.device)
    )
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


@pytest.fixture
def torch(monkeypatch):
    module = SimpleNamespace(
        Tensor=Tensor, strided="strided", device=lambda *place: place, float32="torch.float32", uint8="u8"
    )
    module.cuda = SimpleNamespace(current_stream=lambda number: SimpleNamespace(cuda_stream=40 + number))
    module.complex64, module.complex128 = "c8", "c16"
    module.empty = lambda *shape, **options: SimpleNamespace(made=(*shape, options), data_ptr=lambda: 8192)
    module._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda number: 70 + number)
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_arrays_of_cupy(cupy):
    arrays, array = CupyArrays(Memory(), 1), CupyArray((2, 3), "f8")
    assert arrays.place(array) == (4096, (24, 8))
    assert arrays.dtype(np.dtype("f")) == np.float32
    new, address = arrays.empty((4, 5), "f8")
    assert new.shape == (4, 5) and address == 4096 and arrays.byte == np.uint8
    array.data.device_id = 0  # an array of another device
    assert arrays.place(array)[0] == arrays.place(np.zeros(3))[0] == 0


def test_the_stream_of_cupy(cupy):
    arrays = CupyArrays(Memory(), 1)
    assert arrays.stream() == 0
    cupy.stream.ptr = 99
    assert arrays.stream() == 99
    cupy.device = 0  # new arrays would lie on another device
    assert arrays.stream() is None


def test_tensors(torch):
    arrays = TorchArrays(Memory(), 1)
    assert arrays.place(Tensor()) == (4096, (3, 1))
    assert arrays.place(np.zeros(3))[0] == arrays.place(type("Parameter", (Tensor,), {})())[0] == 0
    assert arrays.dtype(np.dtype("f")) == "torch.float32" and arrays.dtype(np.dtype("u2")) is None
    new, address = arrays.empty((4, 5), "torch.float32")
    assert new.made == ((4, 5), {"dtype": "torch.float32", "device": ("cuda", 1)}) and address == 8192


@pytest.mark.parametrize(
    "fact",
    [
        {"requires_grad": True},
        {"layout": "sparse"},
        {"device": ("cuda", 0)},
        {"device": ("cpu", None)},
        {"conj": True},
        {"neg": True},
    ],
)
def test_tensors_that_their_addresses_do_not_describe(torch, fact):
    tensor = Tensor()
    vars(tensor).update(fact)
    assert TorchArrays(Memory(), 1).place(tensor)[0] == 0


class DeviceNDArray:
    """An array of Numba."""

    shape, strides, dtype, stream, size = (2, 3), (24, 8), np.dtype("f8"), 0, 6

    def __init__(self, device=1):
        context = SimpleNamespace(device=SimpleNamespace(id=device))
        self.gpu_data = SimpleNamespace(device_ctypes_pointer=SimpleNamespace(value=4096), context=context)


@pytest.fixture
def numba(monkeypatch):
    module = SimpleNamespace(config=SimpleNamespace(CUDA_PER_THREAD_DEFAULT_STREAM=0), made=[])
    kinds = SimpleNamespace(devicearray=SimpleNamespace(DeviceNDArray=DeviceNDArray))
    cuda = SimpleNamespace(
        cudadrv=kinds, device_array=lambda *args: module.made.append(args) or DeviceNDArray(module.device)
    )
    module.device = 1
    monkeypatch.setitem(sys.modules, "numba", module)
    monkeypatch.setitem(sys.modules, "numba.cuda", cuda)
    return module


def test_arrays_of_numba(numba):
    arrays, array = NumbaArrays(Memory(), 1), DeviceNDArray()
    assert arrays.place(array) == (4096, (24, 8)) and arrays.stream() == 0
    assert arrays.dtype(np.dtype("f")) == np.float32
    new, address = arrays.empty((2, 3), "f8")
    assert type(new) is DeviceNDArray and address == 4096 and numba.made == [((2, 3), "f8")]
    numba.device = 0  # its context is another: new arrays lie there
    assert arrays.empty((2, 3), "f8")[1] == arrays.place(DeviceNDArray(0))[0] == arrays.place(np.zeros(3))[0] == 0
    array.stream = 7
    assert arrays.place(array)[0] == 0
    array.stream, array.size = 0, 0
    assert arrays.place(array)[0] == 0
    numba.config.CUDA_PER_THREAD_DEFAULT_STREAM = 1
    assert NumbaArrays(Memory(), 1).direct(NumbaArrays(Memory(), 1).stream()) is None


def xla_array(stream):
    facts = {"data": (4096, False)}
    return XlaArray(SimpleNamespace(shape=(2, 3), dtype=np.dtype("f"), __cuda_array_interface__=facts), stream)


def test_arrays_of_xla():
    arrays, array, memory = XlaArrays(Memory(), 1), xla_array(99), []
    assert arrays.place(array) == (4096, ()) and arrays.place(np.zeros(3))[0] == 0
    facts = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "strides": None, "version": 3, "stream": 99}
    assert array.__cuda_array_interface__ == facts
    assert xla_array(0).__cuda_array_interface__["stream"] == 1  # the legacy stream, as the protocol has it
    lent = SimpleNamespace(__dlpack__=lambda stream: memory.append(stream))
    assert array.written(lent) is array and memory == [99]
    arrays.memory.allocate = lambda kind: kind.nbytes
    assert arrays.empty((1024,), arrays.byte) == (1024, 1024) and not arrays.has_memory


def test_the_stream_of_xla():
    """A call is in the stream of its thread alone."""
    arrays, elsewhere = XlaArrays(Memory(), 1), []
    with in_stream(99):
        with in_stream(7):
            assert arrays.stream() == 7
        assert arrays.stream() == 99
        thread = threading.Thread(target=lambda: elsewhere.append(arrays.stream()))
        thread.start()
        thread.join()
    assert arrays.stream() is None and elsewhere == [None]


def test_the_stream_of_pytorch(torch):
    assert TorchArrays(Memory(), 1).stream() == 71
    del torch._C._cuda_getCurrentRawStream
    assert TorchArrays(Memory(), 1).stream() == 41


@pytest.mark.parametrize(("stream", "captures"), [(0, False), (7, False), (7, True)])
def test_what_calls_have_left_is_released_but_in_captures(monkeypatch, stream, captures):
    memory, released = object.__new__(CudaMemory), []
    memory.let_go, memory.retired, memory._active = [], [], Active(lambda: None, lambda: None)
    memory.cu = SimpleNamespace(cuStreamIsCapturing=lambda _: (0, captures))
    monkeypatch.setattr(CudaMemory, "_release", lambda self: released.append(1))
    memory.release_ended(stream)
    assert released == [1] * (not captures)


@pytest.mark.parametrize(
    ("queues", "stream", "direct"),
    [(1, 0, 40), (1, 1, 40), (2, 0, None), (2, 1, None), (1, 2, None), (2, 2, None), (1, 99, 99), (2, 99, 99)],
)
def test_the_stream_of_kernels(cupy, queues, stream, direct):
    """The legacy stream and the only queue are in order by the driver, what is launched in another stream is in its order."""
    arrays = CupyArrays(memory := Memory(queues), 1)
    assert arrays.direct(stream) == direct
    assert not memory.calls
    arrays.follow(stream)
    arrays.lead(stream)
    assert memory.calls == [("follow", stream), ("lead", stream)]


def test_a_queue_with_a_priority_of_its_own(cupy):
    memory = Memory()
    memory.streams = [Memory(), memory]
    assert CupyArrays(memory, 1).direct(99) is None


def test_what_is_not_used_any_more_is_released(cupy):
    arrays = CupyArrays(memory := Memory(retired=[1]), 1)
    assert arrays.direct(99) == 99
    assert memory.calls == [("release_ended", 99)]


@pytest.mark.parametrize(("queues", "stream", "ordered"), [(1, 0, False), (1, 1, False), (1, 7, True), (2, 1, True)])
def test_events_between_streams(queues, stream, ordered):
    memory, calls = object.__new__(CudaMemory), []
    memory.streams, memory.handle, memory.event = [memory] * queues, 40, "event"
    memory.lock, memory._active = threading.RLock(), Active(lambda: None, lambda: None)
    memory.cu = SimpleNamespace(
        cuEventRecord=lambda *args: (calls.append(("record", *args)), (0,))[1],
        cuStreamWaitEvent=lambda *args: (calls.append(("wait", *args)), (0,))[1],
    )
    memory.follow(stream)
    memory.lead(stream)
    followed = [("record", "event", stream), ("wait", 40, "event", 0)]
    led = [("record", "event", 40), ("wait", stream, "event", 0)]
    assert calls == (followed + led if ordered else [])
