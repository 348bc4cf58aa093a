"""Wrong thread grids, work-groups and local memory: each message, and the line that it names."""

import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import INTEGER, SCALAR, Wrongs

WRONGS = Wrongs()


# --- threads ----------------------------------------------------------------------------------------------------------


@WRONGS.add("`_localThreads` comes first in a body: statements before it were recorded for another thread grid")
def local_threads_later():
    @gp.operator
    def late(field):
        x = _readTensor(field)
        _localThreads(4, 4)  # here
        return x

    late(SCALAR)


@WRONGS.add("`_globalThreads` comes first in a body: statements before it were recorded for another thread grid")
def global_threads_in_a_block():
    @gp.operator
    def late(field):
        with _for(3):
            _globalThreads(4, 4)  # here
        return 1

    late(SCALAR)


@WRONGS.add("`_globalThreads` comes first in a body: statements before it were recorded for another thread grid")
def global_threads_after_a_local_array():
    @gp.operator
    def late(field):
        shared = _local(_floatArray(_localRows, _localColumns))
        _globalThreads(100, 100)  # here
        return shared[0, 0]

    late(SCALAR)


@WRONGS.add("`_localThreads` is called twice; a kernel has one shape of work-groups")
def local_threads_twice():
    @gp.operator
    def twice(field):
        _localThreads(4, 4)
        _localThreads(8, 4)  # here
        return 1

    twice(SCALAR)


@WRONGS.add("`_globalThreads` is called twice; a kernel has one thread grid")
def global_threads_twice():
    @gp.operator
    def twice(field):
        _globalThreads(field)
        _globalThreads(field)  # here
        return 1

    twice(SCALAR)


@WRONGS.add("`_localThreads` has 3 extents, and the threads are 2D: 4×5")
def too_many_extents():
    @gp.operator
    def many(field):
        _localThreads(1, 4, 4)  # here
        return _localRow

    many(SCALAR)


@WRONGS.add("a work-group has at least one thread along every axis, not (0, 4)")
def no_threads():
    @gp.operator
    def none(field):
        _localThreads(0, 4)  # here
        return 1

    none(SCALAR)


@WRONGS.add("a recorded value is not a Python integer: it exists only on the device")
def computed_groups():
    @gp.operator
    def computed(field):
        _localThreads(_rows, 4)  # here
        return 1

    computed(SCALAR)


@WRONGS.add("threads of a tensor axis are in work-groups of one layer")
def groups_of_elements():
    @gp.operator(outputs=gp.FieldType((2, 3, 4), 5, "int32"))
    def deep():
        _globalThreads((2, 3, 4), 5)
        _localThreads(2, 2, 2)  # here
        _writeTensorElement(_out0, 1)

    deep()


@WRONGS.add("a thread grid is a shape, a Field or a FieldType, not a computed value")
def computed_threads():
    @gp.operator
    def computed(field):
        _globalThreads(_rows)  # here
        return 1

    computed(SCALAR)


@WRONGS.add(
    "`field` is 4×5, the threads are 4 × 5 elements: own points do not match; a tensor's shape follows the grid's, so write "
    "`_globalThreads(4, 5)`"
)
def grid_and_tensor_for_a_grid():
    @gp.operator(outputs=SCALAR.type)
    def wrong(field):
        _globalThreads((4,), (5,))
        _writeTensor(_out0, _readTensor(field), _column, _tensorElement)  # here

    wrong(SCALAR)


@pytest.mark.parametrize("given", [(), ((4, 5), 2, 3), (SCALAR, 2, 3)], ids=["nothing", "three", "field"])
def test_shapes_that_are_none(given):
    @gp.operator
    def wrong(field):
        _globalThreads(*given)

    with pytest.raises(gp.SemanticError, match="takes the grid's extents, as in"):
        wrong(SCALAR)


@WRONGS.add(
    "`fine` is 4×5, the threads are 2×3 (as `coarse` is, the first Field): own points do not match; give coordinates to read at, "
    "or choose the threads by `_globalThreads(4, 5)`"
)
def grid_of_the_first_field():
    @gp.operator
    def prolong(coarse, fine):
        return _readTensor(fine) + _readTensor(coarse, _row / 2, _column / 2)  # here

    prolong(gp.ScalarField([[1.0, 2.0, 3.0]] * 2), SCALAR)


@WRONGS.add("`field` is 4×5, the threads are 2×2 (as _out0 is): own points do not match; give coordinates to read at,")
def grid_of_the_output():
    @gp.operator(outputs=gp.FieldType((2, 2)))
    def half(field):
        return _readTensor(field)  # here

    half(SCALAR)


# --- local memory -----------------------------------------------------------------------------------------------------


@WRONGS.add("`_local` takes a variable or an array, as `_local(_floatVar())`, not a computed value")
def local_of_an_expression():
    @gp.operator
    def wrong(field):
        return _local(_readTensor(field) + 1) + 1  # here

    wrong(SCALAR)


@WRONGS.add("`_local` takes a variable or an array, as `_local(_floatVar())`, not ")
def local_of_a_number():
    with gp.GPUOperator(SCALAR.type):
        _local(1.0)  # here


@WRONGS.add("local memory is not initialised: assign it, and wait with `_syncThreadsLocal()`")
def local_of_an_initialised_variable():
    @gp.operator
    def wrong(field):
        return _local(_floatVar(1)) + 1  # here

    wrong(SCALAR)


@WRONGS.add("local memory is not initialised: assign it, and wait with `_syncThreadsLocal()`")
def local_of_a_copy():
    @gp.operator
    def wrong(field):
        return _local(_var(_readTensor(field))) + 1  # here

    wrong(SCALAR)


@WRONGS.add("`shared` is in local memory already")
def local_twice():
    @gp.operator
    def wrong(field):
        shared = _local(_floatArray(4))
        again = _local(shared)  # here
        return again[0]

    wrong(SCALAR)


@WRONGS.add("`_local` stands around a declaration: `tile = _local(_floatArray(16, 16))`")
def local_later():
    @gp.operator
    def wrong(field):
        x = _floatArray(4)
        x[0] = 1
        tile = _local(x)  # here
        return tile[0]

    wrong(SCALAR)


@WRONGS.add("`table` is in constant memory already")
def local_table():
    @gp.operator
    def wrong(field):
        table = _constantArray([1, 2])
        return _local(table)[0]  # here

    wrong(SCALAR)


@WRONGS.add("the dimensions of an array are positive Python integers, or constants of the launch as `_localRows`, not ")
def computed_dimensions():
    @gp.operator
    def wrong(field):
        tile = _local(_floatArray(_localRow + 1))  # here
        return tile[0]

    wrong(SCALAR)


@WRONGS.add("the dimensions of an array are positive Python integers, or constants of the launch as `_localRows`, not ")
def dimensions_that_were_read():
    @gp.operator
    def wrong(field):
        a = _floatArray(4, _readTensor(field))  # here
        return a[0, 0]

    wrong(INTEGER)


@WRONGS.add(
    "the dimensions of an array are positive Python integers, or constants of the launch as `_localRows`, not 0"
)
def no_elements():
    @gp.operator
    def wrong(field):
        a = _floatArray(0)  # here
        return a[0]

    wrong(SCALAR)


@WRONGS.add("array `tile` has 2 dimensions: give 2 indices, not 1")
def too_few_indices():
    @gp.operator
    def wrong(field):
        tile = _local(_floatArray(4, 4))
        tile[_localRow] = 1  # here
        return 1

    wrong(SCALAR)


@WRONGS.add("array `tile` belongs to a block that has ended, or to another operator; declare it before the block")
def local_array_of_an_ended_block():
    @gp.operator
    def wrong(field):
        with _for(3):
            tile = _local(_floatArray(4))
            tile[0] = 1
        return tile[0]  # here

    wrong(SCALAR)


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message_and_line(wrong):
    wrong.check()
