"""After any error the library is usable: recorder and graph stacks are as before, in every thread."""

import threading
from contextvars import copy_context

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.recorder.recorder import recording

from .wrong import SCALAR, check_usable

ERRORS = [ZeroDivisionError, KeyboardInterrupt, SystemExit, GeneratorExit]


@pytest.mark.parametrize("error", ERRORS)
def test_body_that_raises_in_nested_blocks(error):
    @gp.operator
    def broken(field):
        x = _var(_readTensor(field))
        with _for(3) as i:
            with _if(x > 1), _while(x > 2):
                x /= 2
                raise error("stopped")
            with _else():
                x += i
        _writeTensor(_out0, x)

    for _ in range(2):
        with pytest.raises(error, match="stopped"):
            broken(SCALAR)
        assert recording() is None
        check_usable()


@pytest.mark.parametrize("error", ERRORS)
def test_block_of_a_gpu_operator_that_raises(error):
    def program():
        with gp.GPUOperator(SCALAR.type) as op, _forEachTensorElement(7):
            raise error("stopped")
        return op.output

    with pytest.raises(error, match="stopped"):
        program()
    assert recording() is None
    check_usable()


def test_error_in_an_operator_called_in_a_body():
    """The inner recorder goes, the outer one stays in use."""

    @gp.operator
    def inner(field):
        return _readTensor(field).z

    @gp.operator
    def outer(field):
        try:
            inner(field)
        except gp.SemanticError:
            other = _readTensor(field)
        return other + 1

    with gp.use_device("reference"):
        assert np.array_equal(outer(SCALAR).numpy(), SCALAR.numpy() + 1)


def test_error_caught_in_the_body():
    """A block that was refused leaves nothing behind."""

    @gp.operator
    def half(field):
        x = _var(_readTensor(field))
        try:
            with _if(x > 1):
                x @= 5
                raise ValueError
        except ValueError:
            x /= 2
        _writeTensor(_out0, x)

    with gp.use_device("reference"):
        assert np.array_equal(half(SCALAR).numpy(), SCALAR.numpy() / 2)


@pytest.mark.parametrize("error", ERRORS)
def test_graph_definition_that_raises(error):
    def define(fail):
        with gp.ComputeGraph(device="reference") as graph:
            state = gp.ScalarField(np.zeros((4, 5), "f"))
            state.next = state + 1
            graph.probe(state, "state")
            if fail:
                raise error("stopped")
        return graph

    with pytest.raises(error, match="stopped"):
        define(True)
    with pytest.raises(gp.SemanticError, match=r"`\.next` is set inside"):
        SCALAR.next = SCALAR
    graph = define(False)
    graph.step(3)
    assert np.all(graph.read("state") == 3)
    check_usable()


def test_error_in_a_graph_at_work():
    """A step that fails for want of a device leaves the graph as it was."""
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(np.zeros((4, 5), "f"))
        state.next = state + 1
        graph.probe(state, "state")
    graph._device = "opencl:99"
    with pytest.raises(gp.DeviceError):
        graph.step()
    graph._device = "reference"
    graph.step()
    assert np.all(graph.read("state") == 1)


def test_pipeline_that_raises():
    calls = []

    @gp.pipeline
    def doubled(image):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return gp.ScalarField(image) * 2

    with gp.use_device("reference"):
        with pytest.raises(KeyboardInterrupt):
            doubled(np.ones(3, "f"))
        assert doubled(np.ones(3, "f")).tolist() == [2, 2, 2]


def test_device_after_an_error():
    with pytest.raises(ZeroDivisionError), gp.use_device("reference"):
        1 / 0
    check_usable()


def test_errors_in_one_thread_while_another_records():
    rounds = 30
    failures: list[BaseException] = []
    start = threading.Barrier(4)

    def wrong():
        @gp.operator
        def broken(field):
            with _for(3), _if(_readTensor(field) > 1):
                _readTensor(field).z

        for _ in range(rounds):
            with pytest.raises(gp.SemanticError, match="it has no component `z`"):
                broken(SCALAR)

    def right(offset):
        for n in range(rounds):
            added = gp.operator(lambda f, k=offset + n: _readTensor(f) + k)
            assert np.array_equal(added(SCALAR).numpy(), SCALAR.numpy() + offset + n)

    def run(function, *args):
        try:
            start.wait()
            function(*args)
        except BaseException as failed:  # noqa: BLE001 - a failed assertion too
            failures.append(failed)

    with gp.use_device("reference"):
        threads = [
            threading.Thread(target=copy_context().run, args=(run, *a))
            for a in ((wrong,), (right, 0), (wrong,), (right, 100))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures
    check_usable()


def test_operator_opened_in_one_thread_is_not_seen_in_another():
    calls = []

    def read():
        try:
            _readTensor(SCALAR)
        except gp.SemanticError as error:
            calls.append(error.message)

    with gp.GPUOperator(SCALAR.type):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        _writeTensor(_out0, _readTensor(SCALAR))
    assert calls == [
        "`_readTensor` belongs in an operator's body: a function under `@gp.operator`, or a `with gp.GPUOperator(…)` block"
    ]
