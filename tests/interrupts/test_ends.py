"""When objects end that are made in loops, no Python code runs, in which what a signal's handler raises would be lost."""

import gc
import sys

import numpy as np

import gpuop as gp
from gpuop.ends import WeakKeys
from gpuop.runtime.base import dlpack
from gpuop.windows.reused import reused


def calls_of_python(ends):
    """The functions of Python's that run while something ends."""
    called = []

    def note(frame, event, _):
        if event == "call":
            called.append(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)

    gc.collect()
    sys.setprofile(note)
    try:
        ends.clear()
    finally:
        sys.setprofile(None)
    return called


def test_the_end_of_fields(device):
    field = gp.ScalarField(np.arange(50, dtype="f4"))
    made = field + 1
    made.numpy()
    ends = [field, made]
    del field, made
    assert calls_of_python(ends) == []


def test_the_end_of_results():
    ends = [reused((512, 512), np.dtype("f4"))]
    address = ends[0].ctypes.data
    assert calls_of_python(ends) == []
    assert reused((512, 512), np.dtype("f4")).ctypes.data == address


def test_the_end_of_memory_of_others():
    array = np.arange(7.0)
    before = sys.getrefcount(array)
    ends = [dlpack.take(array.__dlpack__())]
    assert sys.getrefcount(array) == before + 1
    assert calls_of_python(ends) == []
    assert sys.getrefcount(array) == before


def test_what_is_kept_of_objects():
    class Key:
        pass

    kept, key, other = WeakKeys(), Key(), Key()
    kept[key] = value = [1]
    assert kept.setdefault(key, [2]) is value
    assert kept.get(key) is value
    assert kept.get(other) is None
    kept[key] = replaced = [3]
    assert kept.get(key) is replaced
    assert sys.getrefcount(value) == 2
    ends = [key]
    del key
    assert calls_of_python(ends) == []
    assert sys.getrefcount(replaced) == 2
    kept[other] = 1
    kept.clear()
    assert kept.get(other) is None
