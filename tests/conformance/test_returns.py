"""`_return()`: threads that have done what they have to, among others that go on. Expected values are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(31)
X = rng.integers(-50, 50, 150).astype(np.int32)


def test_at_once(device: str) -> None:
    """Points that no thread wrote have the default."""

    @gp.operator(default=7)
    def root(f):
        x = _readTensor(f)
        with _if(x < 0):
            _return()
        _writeTensor(_out0, x * 2)

    same(root(gp.ScalarField(X)), np.where(X < 0, 7, X * 2).astype(np.int32))


def test_every_path_writes(device: str) -> None:
    """Then no default is needed: a chain of conditions, each of which returns."""

    @gp.operator
    def kinds(f):
        x = _var(_readTensor(f))
        with _if(x < -20):
            _writeTensor(_out0, 1)
            _return()
        with _elseif(x < 0):
            x *= 2
        with _else():
            _writeTensor(_out0, 3)
            _return()
        with _if(x % 3 == 0):
            _writeTensor(_out0, 4)
            _return()
        _writeTensor(_out0, 5)

    expected = np.where(X < -20, 1, np.where(X >= 0, 3, np.where(np.fmod(2 * X, 3) == 0, 4, 5)))
    same(kinds(gp.ScalarField(X)), expected.astype(np.int32))


def test_every_path_writes_in_loops(device: str) -> None:
    @gp.operator(outputs="same")
    def first(f):
        with _for(5) as i:
            with _if(i * i >= _readTensor(f)):
                _writeTensor(_out0, i)
                _return()
        _writeTensor(_out0, -1)

    @gp.operator(outputs="same")
    def deep(f):
        x = _readTensor(f)
        with _if(x > -20):
            with _if(x > 20):
                _writeTensor(_out0, 1)
                _return()
        _writeTensor(_out0, x)

    roots = [next((i for i in range(5) if i * i >= x), -1) for x in X]
    same(first(gp.ScalarField(X)), np.array(roots, np.int32))
    same(deep(gp.ScalarField(X)), np.where(X > 20, 1, X).astype(np.int32))


def test_nothing_follows_branches_that_return_both(device: str) -> None:
    @gp.operator(default=0)
    def signs(f):
        x = _readTensor(f)
        with _if(x < 30):
            with _if(x < 0):
                _writeTensor(_out0, -1)
                _return()
            with _else():
                _writeTensor(_out0, 1)
                _return()
            _writeTensor(_out0, 5)
        _writeTensor(_out0, 9)
        with _if(x > 40):
            _return()
        _writeTensor(_out0, 7)

    expected = np.where(X < 0, -1, np.where(X < 30, 1, np.where(X > 40, 9, 7)))
    same(signs(gp.ScalarField(X)), expected.astype(np.int32))


def test_in_blocks_of_blocks(device: str) -> None:
    @gp.operator(default=0)
    def nested(f):
        x = _var(_readTensor(f))
        with _if(x > -30):
            x += 1
            with _if(x > 30):
                _writeTensor(_out0, -1)
                _return()
            x += 1
            with _if(x % 5 == 0):
                with _if(x % 2 == 0):
                    _return()
                x += 100
        _writeTensor(_out0, x)

    y = X + 2
    inner = np.where(np.fmod(y, 5) != 0, y, np.where(np.fmod(y, 2) == 0, 0, y + 100))
    same(nested(gp.ScalarField(X)), np.where(X <= -30, X, np.where(X > 29, -1, inner)).astype(np.int32))


def test_in_loops(device: str) -> None:
    """All loops around it are left."""

    @gp.operator(outputs=lambda f: (f.type, f.type), default=-1)
    def search(f):
        x, turns = _readTensor(f), _intVar()
        with _for(1, 12) as i:
            j = _intVar(i)
            with _while(j < 12):
                turns += 1
                with _if(i * j == abs(x)):
                    _writeTensor(_out0, i * 100 + j)
                    _return()
                j += 1
            _writeTensor(_out1, turns)
        _writeTensor(_out0, 0)

    result, turns = np.zeros_like(X), np.full_like(X, -1)
    for k, x in enumerate(np.abs(X)):
        count, done = 0, False
        for i in range(1, 12):
            for j in range(i, 12):
                count += 1
                if i * j == x:
                    result[k], done = i * 100 + j, True
                    break
            if done:
                break
            turns[k] = count
    all_same(search(gp.ScalarField(X)), (result, turns))


def test_before_barriers(device: str) -> None:
    """Threads wait for one another as ever if all of a group return, or none."""

    @gp.operator(default=-5)
    def sums(f):
        _localThreads(32)
        shared = _local(_intArray(32))
        x = _readTensor(f)
        shared[_localColumn] = x
        with _if(_groupColumn == 1):
            _return()
        _syncThreadsLocal()
        total = _reduceGroup(x, "add")
        with _if(total > 0):
            _writeTensor(_out0, total)
            _return()
        _syncThreadsLocal()
        _writeTensor(_out0, shared[31 - _localColumn])

    values = np.concatenate([X[:128], X[:32]])
    expected = []
    for k, group in enumerate(values.reshape(-1, 32)):
        expected.append(np.full(32, -5) if k == 1 else np.full(32, group.sum()) if group.sum() > 0 else group[::-1])
    same(sums(gp.ScalarField(values)), np.concatenate(expected).astype(np.int32))


def test_after_barriers(device: str) -> None:
    """Threads that differ may return where nothing more waits; fused with what comes before and after."""

    @gp.operator(default=0)
    def largest(f):
        _localThreads(32)
        x = _readTensor(f)
        most = _reduceGroup(x, "max")
        with _if(x < most):
            _return()
        _writeTensor(_out0, x)

    groups = [X[k : k + 32] + 1 for k in range(0, 150, 32)]
    expected = np.concatenate([np.where(g < g.max(), 0, g) for g in groups]) * 2
    same(largest(gp.ScalarField(X) + 1) * 2, expected.astype(np.int32))


def test_for_some_targets(device: str) -> None:
    @gp.operator
    def backend(f):
        with _codegenIf(_target.backend == "opencl"):
            _writeTensor(_out0, 1)
            _return()
        _writeTensor(_out0, _readTensor(f))

    same(backend(gp.ScalarField(X)), np.ones_like(X) if device.startswith("opencl") else X)


def test_mistakes() -> None:
    f = gp.ScalarField(X)

    def refused(message: str, body) -> None:
        with pytest.raises(gp.SemanticError, match=message):
            gp.operator(body)(f)

    def follows(f):
        with _if(_readTensor(f) > 0):
            _return()
            _writeTensor(_out0, 1)

    def waits(f):
        with _if(_readTensor(f) > 0):
            _return()
        _syncThreadsLocal()
        return _readTensor(f)

    def loops(f):
        with _for(3) as i:
            with _if(_readTensor(f) > i):
                _return()
        return _reduceGroup(_readTensor(f), "add")

    def lacks(f):
        with _if(_readTensor(f) > 0):
            _return()
        _writeTensor(_out0, _readTensor(f))

    def both(f):
        with _if(_readTensor(f) > 0):
            _writeTensor(_out0, 1)
            _return()
        return _readTensor(f)

    def elements(f):
        with _forEachTensorElement(3):
            _return()

    refused(r"nothing that follows `_return\(\)` in its block runs", follows)
    refused(r"the condition of `with _if\(_readTensor\(f\) > 0\):` \(line \d+\) may differ", waits)
    refused(r"`_reduceGroup\(…\)` is not reached .* the condition of `_return\(\)` \(line \d+\) may differ", loops)
    refused("_out0 is not written on every path", lacks)
    refused("both writes outputs and returns a value", both)
    refused("cannot leave `_forEachTensorElement`", elements)


def test_updated_fields(device: str) -> None:
    """They hold what a thread had written before it returned."""
    a = np.arange(-5, 30, dtype=np.float32)

    @gp.operator(inout="a")
    def some(a):
        with _if(_readTensor(a) < 0):
            _return()
        _writeTensor(a, 2 * _readTensor(a))
        with _if(_column % 2 == 0):
            _return()
        _writeTensor(a, _readTensor(a) + 1)

    expected = np.where(a < 0, a, 2 * a + np.arange(35) % 2)
    np.testing.assert_array_equal(some(gp.ScalarField(a)).numpy(), expected)
