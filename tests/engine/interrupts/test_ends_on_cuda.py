"""The ends of CUDA's things are calls of C's alone: on a driver that notes what is called."""

import ctypes
import threading
from collections import deque
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from gpuop.runtime.base.dlpack import CUDA, DLPackMemory
from gpuop.runtime.cuda.arrays import ImportedArray
from gpuop.runtime.cuda.driver import Active, lock_pages, page_locked
from gpuop.runtime.cuda.launch import Graph
from gpuop.runtime.cuda.memory import CudaMemory, ForeignBlock
from gpuop.runtime.cuda.stream import CudaMark

from .test_ends import calls_of_python


class Function(partial):
    """A function of C's, with the attributes that those of `ctypes` have."""


class Driver:
    """Notes the contexts that are entered and left, and the handles with which functions are called, in order."""

    def __init__(self):
        self.noted, self.asked = [], []
        self.active = Active(Function(self.noted.append, "push"), Function(self.noted.append, "pop"))

    def __getitem__(self, name):
        self.asked.append(name)
        return Function(self.noted.append)


@pytest.fixture
def driver(monkeypatch):
    result = Driver()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: result)
    return result


def test_the_end_of_marks(driver):
    ends = [CudaMark(SimpleNamespace(cuEventCreate=lambda flags: (0, 7)), None, driver.active, 0)]
    assert (driver.noted, driver.asked) == ([], ["cuEventDestroy_v2"])
    assert calls_of_python(ends) == []
    assert driver.noted == ["push", 7, "pop"]


def test_the_end_of_graphs(driver):
    memory = SimpleNamespace(
        cu=SimpleNamespace(cuGraphCreate=lambda flags: (0, 5), cuGraphInstantiate=lambda graph, flags: (0, 6)),
        active=lambda: driver.active,
    )
    ends = [Graph(memory, [])]
    assert driver.asked == ["cuGraphExecDestroy", "cuGraphDestroy"]
    driver.noted.clear()
    assert calls_of_python(ends) == []
    assert sorted(driver.noted, key=str) == [5, 6, "pop", "pop", "push", "push"]


def test_the_end_of_page_locked_memory(driver):
    memory = np.arange(8, dtype="u1")
    cu = SimpleNamespace(
        CU_MEMHOSTALLOC_PORTABLE=1,
        CU_MEMHOSTREGISTER_PORTABLE=1,
        cuMemHostAlloc=lambda nbytes, flags, address=memory.ctypes.data: (0, address),
        cuMemHostRegister=lambda address, nbytes, flags: (0,),
    )
    ends, address = [page_locked(cu, driver.active, 8)], memory.ctypes.data
    assert driver.asked == ["cuMemFreeHost"]
    driver.noted.clear()
    assert calls_of_python(ends) == []
    assert driver.noted == ["push", address, "pop"]
    ends = [lock_pages(cu, driver.active, memory)]
    del memory
    assert driver.asked == ["cuMemFreeHost", "cuMemHostUnregister"]
    driver.noted.clear()
    assert calls_of_python(ends) == []
    assert driver.noted == ["push", address, "pop"]


class Event:
    """A mark, and whether what was enqueued before is done."""

    def __init__(self, flags):
        self.done = False

    def reached(self):
        return self.done


def memory_of(driver):
    """A CudaMemory that needs no device."""
    memory = CudaMemory.__new__(CudaMemory)
    memory._active, memory.retiring = driver.active, threading.RLock()
    memory.retired, memory.marks = deque(), []
    memory.owners, memory.let_go = {}, deque()
    memory.stream = SimpleNamespace(new_mark=Event, record=lambda mark: mark)
    return memory


def borrowed(memory, owner):
    return ImportedArray(memory, DLPackMemory(64, (4,), (1,), np.dtype("f4"), (CUDA, 0), False, owner))


def taken(memory, owner):
    result = ForeignBlock(owner)
    memory.retire_after(result, owner)
    return result


@pytest.mark.parametrize("make", [borrowed, taken])
def test_memory_of_others_stays_until_it_is_used(driver, make):
    class Owner:
        def __int__(self):
            return 64

    memory, owners = memory_of(driver), [Owner(), Owner(), Owner()]
    ends = [make(memory, owner) for owner in owners]
    things = list(ends)
    ring = [things.pop()]
    ring.append(ring)  # ends in a cycle, with which its owner may not
    del ends[-1], things
    assert [int(each) for each in ends] == [64, 64]
    ends.append(ring)
    del ring
    assert calls_of_python(ends) == []
    assert len(memory.owners) == len(memory.let_go) == 3
    memory._retire_let_go()
    assert not memory.owners
    assert not memory.let_go
    ((mark, references),) = memory.retired
    assert set(references) == set(owners)
    references = None
    memory._release()
    assert len(memory.retired) == 1
    mark.done = True
    memory._release()
    assert (list(memory.retired), memory.marks) == ([], [mark])
    memory._retire_let_go()
    assert not memory.retired  # nothing is enqueued for nothing
