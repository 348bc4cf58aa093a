"""The line that an error names is the user's: in helpers, lambdas, comprehensions, statements of several lines."""

import textwrap

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import INTEGER, SCALAR, VECTOR3, check_line, check_usable


def caught_at(program, mark="# here"):
    with gp.use_device("reference"), pytest.raises(gp.SemanticError) as caught:
        program()
    check_line(caught.value, program, mark)
    check_usable()
    return caught.value


def test_helper():
    def program():
        def third(v):
            return v.z  # here

        def helper(v):
            return third(v.xy) + 1

        gp.operator(lambda f: helper(_readTensor(f)))(VECTOR3)

    caught_at(program)


def test_lambda():
    def program():
        gamma = lambda x: x.sqrt()  # noqa: E731 # here
        gp.operator(lambda f: gamma(_readTensor(f)))(SCALAR)

    caught_at(program)


def test_comprehension_and_generator():
    def program(total):
        @gp.operator
        def summed(field):
            return total(
                _readTensor(
                    field,
                    _row + dy,
                    _column + 0.5,  # here
                )
                for dy in range(3)
            )

        summed(SCALAR)

    with pytest.raises(gp.SemanticError) as caught:
        program(sum)
    first = program.__code__.co_firstlineno
    assert caught.value.loc.file == __file__
    assert first + 4 <= caught.value.loc.line <= first + 7  # which line of the call depends on Python's version


def test_statement_of_several_lines():
    def program():
        @gp.operator
        def scaled(field):
            x = _readTensor(field)
            return (
                x * 2
                + x.w  # here
                + 1
            )  # fmt: skip

        scaled(SCALAR)

    caught_at(program)


def test_condition_of_several_lines():
    def program():
        @gp.operator
        def clipped(field):
            x = _var(_readTensor(field))
            with _if(
                (x > 0)
                & (x.y < 1)  # here
            ):  # fmt: skip
                x @= 1
            _writeTensor(_out0, x)

        clipped(SCALAR)

    caught_at(program)


def test_return_of_one_line_among_blocks():
    def program():
        @gp.operator
        def counted(field):
            with _for(3) as i, _if(i > 1):
                _break()
            return i  # here

        counted(INTEGER)

    caught_at(program)


def test_several_returns():
    """The value is known, not which `return` gave it: the message names the function."""

    def program():
        @gp.operator
        def counted(field, early=True):  # here
            with _for(3) as i:
                pass
            if early:
                return i
            return i + 1

        counted(INTEGER)

    caught_at(program)


def test_decorated():
    def program():
        def passed(function):
            return function

        @gp.operator
        @passed
        @passed
        def forgotten(field):  # here
            _readTensor(field)

        forgotten(SCALAR)

    assert "operator `forgotten` never writes its output _out0" in caught_at(program).message


def test_method():
    def program():
        class Filter:
            def weigh(self, x):
                if x > 0:  # here
                    return x
                return -x

            def __call__(self, field):
                with gp.GPUOperator(field.type) as op:
                    _writeTensor(_out0, self.weigh(_readTensor(field)))
                return op.output

        Filter()(SCALAR)

    caught_at(program)


def test_rebound_in_the_inner_of_two_blocks():
    def program():
        @gp.operator
        def count(field):
            n = _readTensor(field)
            with _for(3), _if(n > 1):
                k = n * 2
                n = k + 1  # here
            _writeTensor(_out0, n)

        count(SCALAR)

    assert "declare `n = _var(…)` before the block" in caught_at(program).message


def test_rebound_by_an_update():
    def program():
        @gp.operator
        def count(field):
            n = _readTensor(field)
            with _if(n > 1):
                n += 1  # here
            _writeTensor(_out0, n)

        count(SCALAR)

    caught_at(program)


def test_rebound_in_a_module(tmp_path):
    """At module level names are globals, and there is no function around the block."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""\
        with gp.GPUOperator(f.type) as op:
            x = _readTensor(f)
            with _if(x > 1):
                x = x + 1
            _writeTensor(_out0, x)
        """)
    )
    code = compile(script.read_text(), str(script), "exec")
    with pytest.raises(gp.SemanticError, match="`x` is bound to another value inside this `_if` block") as caught:
        exec(
            code,
            {
                "gp": gp,
                "f": SCALAR,
                **{name: globals()[name] for name in ("_readTensor", "_writeTensor", "_if", "_out0")},
            },
        )
    assert (caught.value.loc.file, caught.value.loc.line) == (str(script), 4)
    assert str(caught.value).endswith("\n    x = x + 1")


def test_no_source():
    """Of code without a file the message names the line, and no text."""
    code = compile("gp.operator(lambda f: _readTensor(f).q)(f)", "<typed>", "exec")
    with pytest.raises(gp.SemanticError) as caught:
        exec(code, {"gp": gp, "f": SCALAR, "_readTensor": _readTensor})
    assert str(caught.value).endswith("\n  at <typed>:1")


def test_equal_cells():
    """Cells of a notebook with the same text: each error is in its own."""
    lines = ["@gp.operator", "def same(f):", "    return gp", "same(f)"]
    for cell in ("<cell 1>", "<cell 2>"):
        with pytest.raises(gp.SemanticError) as caught:
            exec(compile("\n".join(lines), cell, "exec"), {"gp": gp, "f": SCALAR})
        assert str(caught.value).endswith(f"\n  at {cell}:3")


def test_path_below_the_working_directory(tmp_path, monkeypatch):
    script = tmp_path / "blur.py"
    script.write_text("gp.operator(lambda f: _readTensor(f).z)(f)\n")
    code = compile(script.read_text(), str(script), "exec")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gp.SemanticError) as caught:
        exec(code, {"gp": gp, "f": SCALAR, "_readTensor": _readTensor})
    assert str(caught.value).endswith("\n  at blur.py:1\n    gp.operator(lambda f: _readTensor(f).z)(f)")


def test_numpy_scalars_on_the_left():
    """NumPy hands arithmetic over, and the error is in the user's line."""
    doubled = gp.operator(lambda f: np.float32(2) * _readTensor(f) - np.float32(1))
    with gp.use_device("reference"):
        assert np.array_equal(doubled(SCALAR).numpy(), 2 * SCALAR.numpy() - 1)

    def program():
        gp.operator(lambda f: np.arange(3) * _readTensor(f))(SCALAR)  # here

    assert "an ndarray cannot stand in a kernel" in caught_at(program).message
