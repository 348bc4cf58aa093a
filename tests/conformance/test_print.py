"""`_print`: what devices write to the standard output, which they do when the results are waited for."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *

from .cuda import compiled_as_cuda  # noqa: F401


def printed(capfd: Any, body: Any, *fields: gp.Field, grid: Any = 1) -> str:
    """The text that a kernel on some threads writes."""
    capfd.readouterr()

    @gp.operator(outputs=gp.FieldType(grid, (), "int32"))
    def printing(*given):
        body(*given)
        return 0

    result = printing(*fields)
    result.numpy()
    text: str = capfd.readouterr().out
    return text


INTEGERS = {
    "char": -100, "uchar": 200, "short": -30000, "ushort": 60000, "int": -(2**31), "uint": 2**32 - 1, "long": -(2**62) - 1,
    "ulong": 2**64 - 1,
}  # fmt: skip


SIGNED = ("%d", "%i", "%12d", "%-12d|", "%+d", "%024d")
UNSIGNED = ("%u", "%10u", "%-10u|", "%o", "%x", "%X", "%#x", "%08X")


def test_integers(device: str, capfd: Any) -> None:
    cases = [
        (name, value, flag) for name, value in INTEGERS.items() for flag in (UNSIGNED if name[0] == "u" else SIGNED)
    ]

    def body():
        for name, value, flag in cases:
            _print(f"<{flag}>\n", globals()[f"_{name}Var"](value))

    assert printed(capfd, body).splitlines() == [f"<{flag}>" % value for _, value, flag in cases]


def test_negative_in_hexadecimal(device: str, capfd: Any) -> None:
    """The bits of the type, as C has them."""

    def body():
        _print("%x %X %o\n", _var(-1), _longVar(-2), _shortVar(-3))

    expected = f"{2**32 - 1:x} {2**64 - 2:X} {2**32 - 3:o}\n"
    assert printed(capfd, body) == expected


FLOATING = ("%f", "%.2f", "%10.3f", "%-10.1f|", "%e", "%.3E", "%g", "%G", "%+.1g", "%08.2f")


def test_floating(device: str, capfd: Any) -> None:
    cases = [(name, flag) for name in ("half", "float", "double") for flag in FLOATING]

    def body():
        for name, flag in cases:
            _print(f"<{flag}>\n", globals()[f"_{name}Var"](-123.5))

    assert printed(capfd, body).splitlines() == [f"<{flag}>" % -123.5 for _, flag in cases]


def test_hexadecimal_floats(device: str, capfd: Any) -> None:
    def body():
        _print("%a\n", _var(1.5))

    text = printed(capfd, body)
    assert float.fromhex(text.strip()) == 1.5 and "p" in text


def test_bools_and_numbers(device: str, capfd: Any) -> None:
    def body():
        _print("%d %d %u %g %d\n", _column == 0, True, 3, 0.25, _column)

    assert printed(capfd, body) == "1 1 3 0.25 0\n"


def test_vectors(device: str, capfd: Any) -> None:
    """Components side by side."""

    def body(f):
        x = _readTensor(f, 0)
        _print("v=%.2f (%d)\n", x, _convert_char3(x))
        _print("%d;%u\n", _int2(1, -2), _uchar4(1, 2, 3, 4))

    field = gp.VectorField(np.float32([[1.5, -2, 3.25]]))
    assert printed(capfd, body, field) == "v=1.50, -2.00, 3.25 (1, -2, 3)\n1, -2;1, 2, 3, 4\n"


TEXTS = [
    "plain\n", "100%% \n", "%%d\n", 'a "quoted" word\n', "back\\slash\n", "tab\there\n", "Grüße, 日本 ✓\n", "??=\n", "{0} {x}\n",
    "a\nb\n", "'single'\n", "é1 ☃7\r2\a3\n", "no end",
]  # fmt: skip


def test_texts(device: str, capfd: Any) -> None:
    """A digit behind a character that C's source has as a code is not part of the code."""

    def body():
        for text in TEXTS:
            _print(text)
            _print(text.strip() + "%d\n", 7)

    expected = "".join((text + text.strip() + "7\n").replace("%%", "%") for text in TEXTS)
    assert printed(capfd, body) == expected


def test_under_conditions_and_in_loops(device: str, capfd: Any) -> None:
    """Only threads that come there write, surplus ones never; each as often as it comes."""

    def body():
        _localThreads(16)
        with _if(_column % 5 == 2):
            with _for(2) as i:
                _print("%d:%d\n", _column, i)

    lines = printed(capfd, body, grid=19).splitlines()
    assert sorted(lines) == sorted(f"{c}:{i}" for c in (2, 7, 12, 17) for i in range(2))


def test_between_barriers(device: str, capfd: Any) -> None:
    def body():
        _localThreads(8)
        shared = _local(_intArray(8))
        shared[_localColumn] = _column
        _syncThreadsLocal()
        _print("%d %d\n", _column, shared[0])

    lines = printed(capfd, body, grid=11).splitlines()
    assert sorted(lines) == sorted(f"{c} {c // 8 * 8}" for c in range(11))


def test_every_step_of_a_graph_prints(device: str, capfd: Any) -> None:
    capfd.readouterr()

    @gp.operator
    def counted(f):
        _print("%d\n", _readTensor(f))
        return _readTensor(f) + 1

    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(np.int32(0))
        state.next = counted(state)
        graph.probe(state, "state")
    graph.reset()
    graph.step(3)
    assert graph.read("state") == 3
    assert capfd.readouterr().out.split() == ["0", "1", "2", "3"]


def test_what_is_printed_is_computed(device: str, capfd: Any) -> None:
    """A value that only `_print` uses is not left out."""

    def body(f):
        twice = _readTensor(f, 0) * 2
        _print("%g\n", twice)

    assert printed(capfd, body, gp.ScalarField(np.float32([1.25]))) == "2.5\n"
