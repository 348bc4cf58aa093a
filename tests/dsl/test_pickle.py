"""Copies, and other processes: what is sent arrives as it was, or is refused where it is sent. A pool never waits for ever."""

from __future__ import annotations

import copy
import gc
import importlib.util
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gpuop as gp
import gpuop.dsl
from gpuop.base import errors
from gpuop.base.errors import GpuopError, Loc
from gpuop.dsl import *
from gpuop.ir import types
from gpuop.ir.types import BOOL, HALF, DType, Type
from tests.process import python

GAIN = 2.0


@gp.operator(outputs=lambda f: f.type.replace(dtype="float32"), default=1)
def gained(field):
    return _readTensor(field) * GAIN


@gp.pipeline
def piped(x, more=1):
    return gained(gp.ScalarField(x)) * more


class Filter:
    def __init__(self, k: float) -> None:
        self.k = k

    @gp.operator
    def scaled(self, field):
        return _readTensor(field) * self.k

    @staticmethod
    @gp.operator
    def doubled(field):
        return _readTensor(field) * 2


def sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": sent}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
FIELDS: dict[str, Callable[[], gp.Field]] = {
    "scalar": lambda: gp.ScalarField(np.arange(6.0).reshape(2, 3)),
    "vector": lambda: gp.VectorField(np.arange(6, dtype="u2").reshape(2, 3)),
    "matrix": lambda: gp.MatrixField(np.ones((2, 3, 2), "f2")),
    "color": lambda: gp.ColorField(np.arange(12, dtype="u1").reshape(2, 2, 3)),
    "complex": lambda: gp.ComplexField([1j, 2]),
    "bool": lambda: gp.ScalarField(np.array([True, False])),
    "empty": lambda: gp.ScalarField(np.ones((0, 3))),
    "computed": lambda: gained(gp.ScalarField(np.arange(3.0))),
    "evaluated": lambda: gp.evaluate(gp.ScalarField(np.arange(3)) + 1),
    "parameter": lambda: gp.Parameter(np.float32([1, 2])),
    "number": lambda: gp.Parameter(2),
}


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with gp.use_device("reference"):
        yield


@each_way
@pytest.mark.parametrize("kind", FIELDS)
def test_fields(way: Callable[[Any], Any], kind: str) -> None:
    field = FIELDS[kind]()
    field.name = "a name"
    other = way(field)
    assert (type(other), other.type, other.name) == (type(field), field.type, field.name)
    assert other.numpy().dtype == field.numpy().dtype
    np.testing.assert_array_equal(other.numpy(), field.numpy())
    assert not (other != field).numpy().any()


@each_way
def test_keys(way: Callable[[Any], Any]) -> None:
    """The bits are those of the same key, of one that follows from it too; a key does not change, so it is its own copy."""
    for key in (
        gp.random.key(3 << 32 | 5),
        gp.random.split(gp.random.key(1))[1],
        gp.random.fold_in(gp.random.key(1), 7),
    ):
        other = way(key)
        assert (way is sent) or other is key
        assert type(other) is type(key) and other.name == key.name
        assert gp.random.bits(other, (5,)).numpy().tolist() == gp.random.bits(key, (5,)).numpy().tolist()
    assert way(gp.random.key(3 << 32 | 5)).numpy().tolist() == [5, 3]


def test_all_protocols_of_pickle() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for value in (gained, piped, Filter.doubled, Filter.scaled):
            assert pickle.loads(pickle.dumps(value, protocol)) is value
        assert pickle.loads(pickle.dumps(Filter(2.0).scaled, protocol)).receiver[0].k == 2


@each_way
def test_parameters_are_apart(way: Callable[[Any], Any]) -> None:
    parameter = gp.Parameter(2.0)
    other = way(parameter)
    parameter.set(3.0)
    assert (float(parameter), float(other)) == (3, 2)
    other.set(5.0)
    assert ((gp.ScalarField([1.0]) * other).numpy()[0], float(parameter)) == (5, 3)


@each_way
def test_types(way: Callable[[Any], Any]) -> None:
    kind = gp.FieldType((2, 3), 4, "float16")
    assert kind.storage is HALF and gp.FieldType(3, dtype="bool").element is BOOL
    other = way(kind)
    assert other == kind and hash(other) == hash(kind) and other.storage is HALF
    assert way(gp.Shape(2, 3)) == gp.Shape(2, 3) and type(way(gp.Shape(2, 3))) is gp.Shape
    assert all(way(d) is d for d in vars(types).values() if isinstance(d, DType))
    assert way(Type(HALF, 2)) is Type(HALF, 2) is not Type(HALF)
    assert way(gp.devices()[0]) == gp.devices()[0]


@each_way
def test_devices_and_queues(way: Callable[[Any], Any]) -> None:
    device = gp.device()
    assert way(device) is device
    with gp.queue("sent") as queue:
        assert way(queue) is queue is not device
    with gp.use_device("reference", checked=True) as checking:
        assert way(checking) is checking


def test_words_of_kernels_go_by_their_names() -> None:
    for name in gpuop.dsl.__all__:
        word = getattr(gpuop.dsl, name)
        data = pickle.dumps(word)
        assert len(data) < 150 and (pickle.loads(data) is word or repr(pickle.loads(data)) == repr(word)), name


@each_way
def test_operators_and_pipelines(way: Callable[[Any], Any]) -> None:
    for function in (gained, piped, Filter.scaled, Filter.doubled):
        assert way(function) is function
    bound = way(Filter(3.0).scaled)
    assert bound(gp.ScalarField([2.0])).numpy()[0] == 6
    assert way({"list": [gained, piped]}) == {"list": [gained, piped]}
    piped(np.ones(3, "f")), gained(gp.ScalarField([1.0])).numpy()
    assert (way(piped), way(gained)) == (piped, gained)  # after use, too


def errors_of(kind: type[GpuopError]) -> Iterator[type[GpuopError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from errors_of(below)


@each_way
@pytest.mark.parametrize("kind", list(errors_of(GpuopError)), ids=lambda kind: kind.__name__)
def test_errors(way: Callable[[Any], Any], kind: type[GpuopError]) -> None:
    error = kind("what is wrong")
    error.more = [1]  # type: ignore[attr-defined]
    if isinstance(error, errors.SemanticError):
        error = kind("what is wrong", Loc(__file__, 3))  # type: ignore[call-arg]
    if isinstance(error, errors.CompileError):
        error.source = "1  text"
    other = way(error)
    assert type(other) is kind and str(other) == str(error) and vars(other) == vars(error)


def test_what_cannot_be_sent_is_refused_by_the_sender() -> None:
    with gp.ComputeGraph() as graph:
        frame = gp.Sensor(gp.FieldType(3), iter([]))
        state = gp.ScalarField(np.zeros(3))
        state.next = state + 1
        graph.probe(state + frame)
    argument: list[gp.Field] = []
    gp.pipeline(lambda x: argument.append(gp.ScalarField(x)) or argument[0] * 2)(np.ones(3))
    for value, sentence in (
        (frame, "a Sensor has frames only while its graph runs"),
        (argument[0] + 1, "stands for an argument of a pipeline and has no values yet"),
    ):
        with pytest.raises(gp.SemanticError, match=sentence):
            pickle.dumps(value)
        assert copy.deepcopy(value) is value
    with gp.profile() as times:
        event = gp.submit(gp.ScalarField(np.ones(3)) * 2)
    for value, sentence in (
        (graph, "a ComputeGraph has memory of a device and threads of this process; send a function that builds it"),
        (event, r"an Event is a mark in the queue of a device of this process; send what `event.result\(\)` gives"),
        (times, "a profile has marks of devices of this process; send its `rows` and `launches`"),
    ):
        with pytest.raises(gp.UnsupportedError, match=sentence):
            pickle.dumps(value)
    for value in (gp.operator(lambda f: _readTensor(f)), gp.pipeline(lambda x: gp.ScalarField(x))):
        with pytest.raises(
            (pickle.PicklingError, AttributeError),
            match=r" \(to which no name in its module leads: cloudpickle sends its code, pickle cannot\)",
        ):
            pickle.dumps(value)


def test_what_pickles_unpickles() -> None:
    """Whatever it is: who receives what does not dies of it, and who waits for it waits for ever."""
    field = gp.ScalarField(np.ones(3))
    graph = gp.ComputeGraph()
    with graph:
        graph.probe(field * 2, "twice")
    graph.step()
    gp.pipeline(lambda x: gp.ScalarField(x))(np.ones(2))
    things = [
        *(getattr(gp, name) for name in gp.__all__), *(make() for make in FIELDS.values()), gained, piped, field.node, graph,
        graph.network, graph.explain(), graph.profile(steps=1), gained.source(field, target="opencl"), gp.devices(),
        gained(field).node.call.kernel, *globals().values(), gp.GPUOperator(field.type), _row, _out0, _target.simd_width,
    ]  # fmt: skip
    gc.collect()
    count = 0
    for thing in things:
        try:
            data = pickle.dumps(thing)
        except (TypeError, AttributeError, pickle.PicklingError, gp.GpuopError):
            continue
        pickle.loads(data)
        count += 1
    assert count > 60


WORKERS = """
import multiprocessing, sys
import numpy as np
import gpuop as gp
from gpuop.dsl import *

@gp.operator(outputs=lambda f: f.type)
def twice(f):
    return _readTensor(f) * 2

@gp.pipeline
def piped(x):
    return twice(gp.ScalarField(x)) + gain

gain = gp.Parameter(0.5)

def tokens():
    return [each.__dask_tokenize__() for each in (twice, piped, gain, gp.ScalarField([1.0, 2.0]) * 3)]

def fails(f):
    return f.unknown

def refused(f):
    with gp.use_device("nowhere"):
        pass

if __name__ == "__main__":
    fields = [gp.ScalarField([1.0, 2.0]), gp.Parameter(3.0), gp.ScalarField([1.0]) + 1]
    piped(np.ones(3, "f"))
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print([r.numpy().tolist() for r in pool.map_async(twice, fields).get(60)])
        for function in (fails, refused):
            try:
                pool.apply_async(function, fields[:1]).get(60)
            except gp.GpuopError as error:
                print(type(error).__name__, str(error).partition("\\n")[0])
        print(pool.apply_async(twice, (fields[1],)).get(60).numpy())
        print(pool.apply_async(piped, (np.ones(2, "f"),)).get(60))
        print(pool.apply_async(tokens).get(60) == tokens())
"""


@pytest.mark.in_turn
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool(method: str, tmp_path: Any) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("this system has no fork")
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    printed = python(str(script), method, GPUOP_DEVICE="reference").stdout.splitlines()
    assert printed == [
        "[[2.0, 4.0], 6.0, [4.0]]",
        "MissingError a Field has no attribute 'unknown'; `.numpy()` gives an array",
        printed[2],
        "6.0",
        "[2.5 2.5]",
        "True",
    ]
    assert printed[2].startswith("DeviceError there is no device 'nowhere'")


@pytest.mark.skipif(importlib.util.find_spec("cloudpickle") is None, reason="cloudpickle is not installed")
def test_cloudpickle() -> None:
    """A function without a name goes with its code, before it is used and after."""
    import cloudpickle

    by = 3.0
    local = gp.operator(lambda f: _readTensor(f) * by, name="local", outputs=lambda f: f.type)
    path = gp.pipeline(lambda x: local(gp.ScalarField(x)))
    for _ in range(2):
        local, path = (pickle.loads(cloudpickle.dumps(each)) for each in (local, path))
        assert local(gp.ScalarField([2.0])).numpy()[0] == path(np.ones(1, "f"))[0] * 2 == 6
        assert local.name == "local" and "portable" not in local.__qualname__
    assert pickle.loads(cloudpickle.dumps(gained)) is gained
