"""Barriers that not all threads reach together: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()


@WRONGS.add(
    "`_syncThreadsLocal()` is not reached by all threads of a work-group together: the condition of `with _if(_column > 2):` (line "
)
def barrier_under_a_varying_condition():
    @gp.operator
    def wait(field):
        _localThreads(2, 4)
        with _if(_column > 2):
            _syncThreadsLocal()  # here
        return _readTensor(field)

    wait(SCALAR)


@WRONGS.add("may differ between them; put the barrier outside, and what depends on the thread inside")
def barrier_under_what_was_read():
    @gp.operator
    def wait(field):
        positive = _readTensor(field) > 0
        with _if(positive):
            x = _var(1.0)
            with _if(_rows > 2):
                _syncThreadsGlobal()  # here
            x += 1
        return _readTensor(field)

    wait(SCALAR)


@WRONGS.add("the condition of `with _if(_localRow == 0):` (line ")
def barrier_in_else():
    @gp.operator
    def wait(field):
        _localThreads(2, 4)
        with _if(_localRow == 0):
            x = _var(1)
            x += 1
        with _else():
            _syncThreadsLocal()  # here
        return _readTensor(field)

    wait(SCALAR)


@WRONGS.add("the number of iterations of `with _for(_localColumn):` (line ")
def barrier_in_a_loop_with_varying_bounds():
    @gp.operator
    def wait(field):
        _localThreads(2, 4)
        with _for(_localColumn):
            _syncThreadsLocal()  # here
        return _readTensor(field)

    wait(SCALAR)


@WRONGS.add("the loop's condition of `with _while(x > 0):` (line ")
def barrier_in_a_varying_while():
    @gp.operator
    def wait(field):
        x = _var(_readTensor(field))
        with _while(x > 0):
            x -= 1
            _syncThreadsLocal()  # here
        return x

    wait(SCALAR)


@WRONGS.add("the condition of `with _if(x > i):` (line ")
def barrier_after_a_varying_break():
    @gp.operator
    def wait(field):
        x = _var(_readTensor(field))
        with _for(10) as i:
            with _if(x > i):
                _break()
            _syncThreadsLocal()  # here
        return x

    wait(SCALAR)


@WRONGS.add("the condition of `with _if(x > i):` (line ")
def barrier_before_a_varying_continue():
    @gp.operator
    def wait(field):
        x = _var(_readTensor(field))
        with _for(10) as i:
            _syncThreadsLocal()  # here
            with _if(x > i):
                _continue()
            x += 1
        return x

    wait(SCALAR)


@WRONGS.add("is not reached by all threads of a work-group together: the condition of `with _if(flag == 1):`")
def barrier_under_a_variable_that_varies_later():
    @gp.operator
    def wait(field):
        _localThreads(2, 4)
        flag = _var(0)
        with _for(3):
            with _if(flag == 1):
                _syncThreadsLocal()  # here
            flag @= _column
        return _readTensor(field)

    wait(SCALAR)


@WRONGS.add("is not reached by all threads of a work-group together: the loop's condition of")
def barrier_in_a_varying_condition():
    @gp.operator
    def wait(field):
        x = _var(_readTensor(field))

        def more():
            _syncThreadsLocal()  # here
            return x > 0

        with _while(more):
            x -= 1
        return x

    wait(SCALAR)


@WRONGS.add("is not reached by all threads of a work-group together")
def barrier_after_a_ticket():
    @gp.operator(outputs=gp.FieldType(8, (), "int32"))
    def wait():
        with _if(_atomic_inc(_pointerTo(_out0, 0)) == 0):
            _syncThreadsLocal()  # here

    wait()


@WRONGS.add("`_syncThreadsLocal` without parentheses does nothing; write `_syncThreadsLocal()`")
def uncalled_barrier():
    @gp.operator
    def wait(field):
        shared = _local(_floatArray(16))
        shared[0] = 1
        _syncThreadsLocal  # here
        return shared[0]

    wait(SCALAR)


@WRONGS.add("`_syncThreadsGlobal` without parentheses does nothing; write `_syncThreadsGlobal()`")
def uncalled_barrier_in_a_block():
    with gp.GPUOperator(SCALAR.type):
        with _for(3):
            _syncThreadsGlobal  # here
        _writeTensor(_out0, 1)


@WRONGS.add("`_syncThreadsGlobal` without parentheses does nothing; write `_syncThreadsGlobal()`")
def uncalled_barrier_in_a_plain_function():
    def exchanged(memory, x):
        memory[_localColumn] = x
        _syncThreadsGlobal  # here
        return memory[_localColumn ^ 1]

    @gp.operator
    def wait(field):
        _localThreads(8)
        return exchanged(_local(_floatArray(8)), _readTensor(field))

    wait(gp.zeros(16))


@WRONGS.add("`_syncThreadsGlobal` without parentheses does nothing; write `_syncThreadsGlobal()`")
def uncalled_barrier_in_a_function_without_words():
    def waits():
        _syncThreadsGlobal  # here

    @gp.operator
    def wait(field):
        x = _readTensor(field)
        waits()
        return x

    wait(SCALAR)


@WRONGS.add("`_return` without parentheses does nothing; write `_return()`")
def uncalled_return_in_a_closure():
    def leaves():
        _return  # here

    def helper(x):
        leaves()
        return x

    @gp.operator
    def body(field):
        return helper(_readTensor(field))

    body(SCALAR)


@WRONGS.add("`_writeTensor` without parentheses does nothing; write `_writeTensor(…)`")
def uncalled_write():
    @gp.operator
    def body(field):
        _writeTensor  # here
        return _readTensor(field)

    body(SCALAR)


@WRONGS.add("nothing that follows `_break()` in its block runs; put it before, or into an `_else` block")
def barrier_after_break():
    @gp.operator
    def wait(field):
        with _for(3):
            _break()
            _syncThreadsLocal()  # here
        return 1

    wait(SCALAR)


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message_and_line(wrong):
    wrong.check()


def test_uniform_barriers_are_right():
    """Conditions that look as if they varied, and do not within a group."""

    @gp.operator(outputs=gp.FieldType(64, (), "int32"))
    def waits():
        _localThreads(16)
        shared = _local(_intArray(16))
        n = _var(0)
        with _if(_groupColumn % 2 == 0):
            _syncThreadsLocal()
            n += _groupColumn
        shared[_localColumn] = 3
        _syncThreadsLocal()
        with _for(shared[0]) as i:
            with _if(i == 2):
                _break()
            _syncThreadsLocal()
        with _for(_column):
            n += 1
        with _while(shared[2] > 5):
            _syncThreadsLocal()
        return n

    with gp.use_device("reference"):
        column = np.arange(64)
        assert np.array_equal(waits().numpy(), column + np.where(column // 16 % 2 == 0, column // 16, 0))


def _waits_in_vain():
    _syncThreadsLocal


def _calls_what_waits_in_vain(x):
    _waits_in_vain()
    return x


def test_uncalled_barrier_in_a_module():
    @gp.operator
    def body(field):
        return _calls_what_waits_in_vain(_readTensor(field))

    for _ in range(2):
        with pytest.raises(gp.SemanticError, match=r"`_syncThreadsLocal` without parentheses does nothing"):
            body(SCALAR)
