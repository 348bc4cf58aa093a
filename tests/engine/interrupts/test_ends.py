"""Ends of objects that loops create: no Python code runs then, in which an exception of a signal handler would be lost."""

import gc
import sys

import numpy as np

import gpuop as gp
from gpuop.base.finalizers import WeakKeys, WeakValues, _ends, at_end
from gpuop.dsl import *
from gpuop.engine import evaluate
from gpuop.engine.graphs.threads import Worker
from gpuop.fusion.windows.buffer_pool import reused
from gpuop.runtime.base import dlpack


def calls_of_python(ends):
    """The functions of Python's that run while something ends."""
    called = []

    def note(frame, event, _):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and not name.startswith(("hypothesis", "jax")):  # which are told of collections
            called.append(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)

    gc.collect()
    sys.setprofile(note)
    try:
        ends.clear()
        gc.collect()  # cycles
    finally:
        sys.setprofile(None)
    return called


def test_the_end_of_fields(device):
    field = gp.ScalarField(np.arange(50, dtype="f4"))
    result = field + 1
    result.numpy()
    ends = [field, result]
    del field, result
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

    table, key, other = WeakKeys(), Key(), Key()
    table[key] = value = [1]
    assert table.setdefault(key, [2]) is value
    assert table.get(key) is value
    assert table.get(other) is None
    table[key] = replaced = [3]
    assert table.get(key) is replaced
    assert sys.getrefcount(value) == 2
    ends = [key]
    del key
    assert calls_of_python(ends) == []
    assert sys.getrefcount(replaced) == 2
    table[other] = 1
    table.clear()
    assert table.get(other) is None
    table[other] = 2
    assert other in table
    assert table[other] == 2
    assert list(table) == [other]
    table.discard(other)
    table.discard(other)
    assert other not in table


def test_objects_by_keys():
    class Value:
        pass

    table, first, second = WeakValues(), Value(), Value()
    table["a"], table["b"] = first, first
    assert table.get("a") is first
    assert table.get("c") is None
    table["b"] = second
    ends = [first]
    del first
    assert calls_of_python(ends) == []
    assert table.get("a") is None
    assert table.get("b") is second
    assert table.values() == [second]
    assert list(table._ends) == ["b"]
    table.clear()
    assert table.get("b") is None


def test_objects_by_keys_with_a_hash_in_python():
    class Value:
        pass

    class Key:
        def __hash__(self):
            return 7

    table, value = WeakValues(), Value()
    table[Key()] = value
    ends = [value]
    del value
    assert calls_of_python(ends) == []
    table.get(None)
    assert not table._ends


def test_what_is_called_at_an_end():
    class Thing:
        pass

    called, ring = [], Thing()
    ring.itself = ring  # ends in a cycle, with which nothing that tells of it may end
    at_end(ring, lambda: called.append(1), lambda: called.append(2))
    count = len(_ends)
    ends = [ring]
    del ring
    assert len(calls_of_python(ends)) == 2
    assert called == [1, 2]
    assert len(_ends) == count - 1


def test_the_end_of_operators_reductions_and_pipelines(device):
    field = gp.ScalarField(np.arange(50, dtype="f4"))
    doubled, total = gp.operator(lambda f: _readTensor(f) * 2)(field), field.sum()
    smooth = gp.pipeline(lambda x: gp.ScalarField(x) * 2 + np.roll(gp.ScalarField(x), 1))
    smooth(np.ones(50, "f4"))
    (doubled + total).numpy()
    ends = [field, doubled, total, smooth]
    del field, doubled, total, smooth
    assert calls_of_python(ends) == []
    plans = dict(evaluate._plans._entries)
    assert plans
    ends = [plans]
    evaluate._plans._entries.clear()
    del plans
    assert calls_of_python(ends) == []


def test_the_end_of_graphs(device):
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(np.arange(50, dtype="f4"))
        state.next = state + 1
        graph.probe(state, "state")
    graph.step()
    graph.run()
    graph.stop()
    ends = [graph, state]
    del graph, state
    assert calls_of_python(ends) == []


def test_the_end_of_workers():
    ends = [Worker("ends")]
    assert calls_of_python(ends) == []
