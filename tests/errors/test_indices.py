"""Wrong indices: each message, and the line that it names."""

import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()


@WRONGS.add('`_index` is "global", "local" or "group", not \'row\'')
def index_of_a_row():
    @gp.operator
    def wrong(f):
        return _index("row")  # here

    wrong(SCALAR)


@WRONGS.add("`_index` belongs in an operator's body")
def index_outside():
    _index()  # here


@WRONGS.add("`_ravel` takes a coordinate for each of 3 dimensions, not 2")
def too_few_coordinates():
    @gp.operator
    def wrong(f):
        return _ravel((_row, _column), (2, 3, 4))  # here

    wrong(SCALAR)


@WRONGS.add("`_ravel` takes a coordinate for each dimension, as `_ravel((row, column), dims)`, not a computed value")
def one_coordinate():
    @gp.operator
    def wrong(f):
        return _ravel(_row + 1, (2, 3))  # here

    wrong(SCALAR)


@WRONGS.add("a coordinate is a scalar integer, not a float; convert with `_convert_int(x)`")
def broken_coordinate():
    @gp.operator
    def wrong(f):
        return _ravel((_readTensor(f), 1), (2, 3))  # here

    wrong(SCALAR)


@WRONGS.add("an index to `_unravel` is a scalar integer, not a float")
def broken_index():
    @gp.operator
    def wrong(f):
        return _unravel(_readTensor(f), (2, 3))  # here

    wrong(SCALAR)


@WRONGS.add("dimensions are a Shape or a tuple of extents, not 'yx'")
def dimensions_by_name():
    @gp.operator
    def wrong(f):
        return _unravel(_column, "yx")  # here

    wrong(SCALAR)


@WRONGS.add("dimensions are a Shape or a tuple of extents, not None")
def no_dimensions():
    @gp.operator
    def wrong(f):
        return _unravel(_column, None)  # here

    wrong(SCALAR)


@WRONGS.add("an extent is 1 or more, not 0: there is no place among these dimensions")
def extent_of_nothing():
    @gp.operator
    def wrong(f):
        return _unravel(_column, (2, 0))  # here

    wrong(SCALAR)


@WRONGS.add("an extent is a scalar integer, not a float; `/` of Python integers gives a float, write `//`;")
def broken_extent():
    @gp.operator
    def wrong(f):
        return _ravel((_row, _column), (2, 6 / 2))  # here

    wrong(SCALAR)


@WRONGS.add("`groups=` has a number for each extent of the work-groups, 2, not 1")
def too_few_numbers_of_groups():
    @gp.operator
    def wrong(f):
        _localThreads(4, 8, groups=3)  # here
        return _row

    wrong(SCALAR)


@WRONGS.add("`groups=` says how many threads there are, and so does `_globalThreads`: give one of them")
def two_grids():
    @gp.operator
    def wrong(f):
        _globalThreads(f)
        _localThreads(4, 8, groups=(2, 2))  # here
        return _row

    wrong(SCALAR)


@WRONGS.add("`groups=` wants work-groups whose extents are known: the thread grid is the same on all targets")
def groups_of_any_size():
    @gp.operator
    def wrong(f):
        _localThreads(4, _target.simd_width, groups=(2, 2))  # here
        return _row

    wrong(SCALAR)


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()
