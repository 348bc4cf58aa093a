"""The kernels of a plan are compiled as few programs, and found in the cache one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.base.errors import CompileError
from gpuop.dsl import *
from gpuop.engine.evaluate import _plans
from gpuop.runtime.self_test import mistake

CARDS = [d.name for d in gp.devices() if d.name != "reference"]


@gp.operator
def slopes(field, step):
    return _readTensor(field, _row, _column + step) - _readTensor(field)


@gp.operator
def looked_up(field, numbers=(2.0, 3.0, 5.0, 7.0)):
    table = _constantArray(list(numbers))
    return table[_column % 4] * _readTensor(field, _row + 1, _column)


@gp.operator
def tripled(field):
    table = _var(_readTensor(field) * 3)
    with _if(table > 2):
        table -= 2
    return table


def fields(count: int) -> tuple[list[Any], list[gp.Field], list[Any]]:
    """Arrays, kernels of one name but of different shapes and texts, and what NumPy gives."""
    arrays = [np.random.default_rng(k).random((9, 20 + k), np.float32) for k in range(count)]
    results = [slopes(gp.ScalarField(a), 1) for a in arrays]
    return arrays, results, [np.pad(a, ((0, 0), (0, 1)), mode="edge")[:, 1:] - a for a in arrays]


@pytest.fixture(params=CARDS)
def built(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """The kernels of each program that is built from now on, with an empty cache."""
    programs: list[list[str]] = []
    with gp.use_device(request.param) as backend:
        monkeypatch.setattr(config, "cache", tmp_path)
        kind = type(backend)
        build = kind.build

        def noting(self: Any, program: Any, binary: bytes | None) -> list[Any]:
            programs.append([source.name for source in program.sources])
            return build(self, program, binary)

        monkeypatch.setattr(kind, "build", noting)
        forget(backend)
        yield programs
        forget(backend)


def forget(backend: Any) -> None:
    backend.programs.clear()
    _plans.clear()


def test_few_programs(built: list[list[str]]) -> None:
    """Kernels of one name are told apart."""
    _, field, expected = fields(9)
    for result, right in zip(gp.evaluate(*field), expected, strict=True):
        assert np.array_equal(result.numpy(), right)
    assert sorted(map(len, built)) == [1, 8]


def test_tables_of_two_kernels_are_in_two_programs(built: list[list[str]]) -> None:
    """They may have one name; and variables of other kernels may have it."""
    a, b, c = arrays = [np.random.default_rng(k).random((9, 20 + 4 * k), np.float32) for k in range(3)]
    f, g, h = map(gp.ScalarField, arrays)
    first, three, second = (
        each.numpy() for each in gp.evaluate(looked_up(f), tripled(g), looked_up(h, (9.0, 8.0, 4.0, 1.0)))
    )
    assert sorted(built) == [["looked_up"], ["looked_up", "tripled"]]
    for result, array, table in ((first, a, [2, 3, 5, 7]), (second, c, [9, 8, 4, 1])):
        below = np.vstack([array[1:], array[-1:]])
        assert np.array_equal(result, np.resize(np.float32(table), array.shape[1]) * below)
    assert np.array_equal(three, np.where(b * 3 > 2, b * 3 - 2, b * 3))


def test_the_self_test_is_one_program(built: list[list[str]]) -> None:
    """And one kernel where another process has tried the expressions."""
    names = ["self_test", "self_test_of_shapes", "self_test_of_waits"]
    backend = gp.device()
    for programs in (names, names[:1]):
        forget(backend)
        built.clear()
        assert mistake(backend) == ""
        assert [name for program in built for name in program] == programs and len(built) == 1


def test_kernels_are_found_in_the_cache(built: list[list[str]]) -> None:
    """Those of another plan are not compiled again, and new ones are compiled together."""
    backend = gp.device()
    gp.evaluate(*fields(2)[1])
    files = sum(1 for _ in config.cache.rglob("*"))
    forget(backend)
    _, field, expected = fields(2)
    assert np.array_equal(field[1].numpy(), expected[1])
    assert sum(1 for _ in config.cache.rglob("*")) == files, "something was compiled"
    forget(backend)
    built.clear()
    _, field, expected = fields(4)
    for result, right in zip(gp.evaluate(*field), expected, strict=True):
        assert np.array_equal(result.numpy(), right)
    assert list(map(len, built)) == [2, 2]


def test_what_a_program_was_is_lost(built: list[list[str]]) -> None:
    """Kernels of a program whose text the cache has no more are new."""
    gp.evaluate(*fields(2)[1])
    for path in config.cache.rglob("*"):
        if path.is_file() and b"slopes" in path.read_bytes() and len(path.read_bytes()) > 300:
            path.write_bytes(b"")
    forget(gp.device())
    _, result, expected = fields(2)
    assert np.array_equal(gp.evaluate(*result)[1].numpy(), expected[1])


def test_each_file_of_a_program_may_be_damaged(built: list[list[str]]) -> None:
    """As by a write that was cut short where names are durable before contents are."""
    a = np.random.default_rng(0).random((9, 20), np.float32)

    def evaluated() -> None:
        forget(gp.device())
        _, field, expected = fields(2)
        results = gp.evaluate(*field, looked_up(gp.ScalarField(a)))
        assert all(np.array_equal(result.numpy(), right) for result, right in zip(results, expected, strict=False))
        assert np.array_equal(results[2].numpy(), np.resize(np.float32([2, 3, 5, 7]), 20) * np.vstack([a[1:], a[-1:]]))

    evaluated()
    files = [path for path in config.cache.rglob("*") if path.is_file()]
    assert len(files) >= 5
    for path in files:
        path.write_bytes(path.read_bytes()[:-1])
        evaluated()


def test_a_program_that_is_refused(built: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernels are compiled one by one, so that the message is that of the one which is wrong."""
    kind = type(gp.device())
    build = kind.build

    def refusing(self: Any, program: Any, binary: bytes | None) -> list[Any]:
        if len(program.sources) > 1:
            raise CompileError("no", "")
        return build(self, program, binary)

    monkeypatch.setattr(kind, "build", refusing)
    _, result, expected = fields(2)
    assert np.array_equal(gp.evaluate(*result)[0].numpy(), expected[0])
    assert built == [["slopes"], ["slopes"]]
