"""Wrong batches: each message, and the line that it names."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()
THREE = gp.ScalarField(np.ones((3, 4, 5), "f"))


@gp.operator
def twice(f):
    return 2 * _readTensor(f)


@WRONGS.add("vmap takes a function of fields or arrays, not an int")
def no_function():
    gp.vmap(3)  # here


@WRONGS.add("vmap: `in_axes=` is an integer, None, or a tuple of these, one for each argument, not a float")
def axis_of_a_float():
    gp.vmap(twice, in_axes=(0, 0.5))  # here


@WRONGS.add("vmap: `out_axes=` is an integer, None, or a tuple of these, one for each argument, not a str")
def named_axis():
    gp.vmap(twice, out_axes="rows")  # here


@WRONGS.add(
    "vmap of `twice`: `in_axes=` has 2 axes, and the call has 1 arguments by position: give an axis, or None, for each"
)
def too_many_axes():
    gp.vmap(twice, in_axes=(0, None))(THREE)  # here


@WRONGS.add("vmap of `twice`: argument 0 has the shape (3, 4, 5), and so no axis 3 to map over: choose another axis")
def missing_axis():
    gp.vmap(twice, in_axes=3)(THREE)  # here


@WRONGS.add(
    "vmap of `twice`: argument 0 has the shape (), and so no axis 0 to map over: give `in_axes=` None for it, and it is the same "
    "for all entries"
)
def a_number():
    gp.vmap(twice)(gp.Parameter(2.0))  # here


@WRONGS.add(
    "vmap of `added`: mapped axes have as many entries each: argument 0 has 3, and argument 1 has 4",
)
def other_extents():
    def added(f, g):
        return f + g

    gp.vmap(added)(THREE, SCALAR)  # here


@WRONGS.add(
    "vmap of `twice`: none of its arguments is mapped: give a Field or an array, and for it an axis by `in_axes=`"
)
def nothing_mapped():
    gp.vmap(twice, in_axes=None)(THREE)  # here


@WRONGS.add("vmap of `both`: argument 0 has 2 members, and `in_axes=` has 3 for it")
def axes_of_members():
    def both(pair):
        return pair[0] + pair[1]

    gp.vmap(both, in_axes=((0, 0, 0),))((THREE, THREE))  # here


@WRONGS.add("vmap of `twice`: argument 0 is no tuple, and `in_axes=` has 2 axes for it")
def axes_of_no_members():
    gp.vmap(twice, in_axes=((0, 0),))(THREE)  # here


@WRONGS.add("vmap of `counted`: it returns an int; it returns a Field, or a tuple or list of them")
def result_of_python():
    def counted(f):
        return f.size

    gp.vmap(counted)(THREE)  # here


@WRONGS.add("vmap of `pair`: it returns 2 results, and `out_axes=` has 3")
def axes_of_results():
    def pair(f):
        return f, twice(f)

    gp.vmap(pair, out_axes=(0, 0, 0))(THREE)  # here


@WRONGS.add("vmap of `twice`: it returns one result, and `out_axes=` has 2")
def axes_of_one_result():
    gp.vmap(twice, out_axes=(0, 0))(THREE)  # here


@WRONGS.add(
    "vmap of `twice`: a result depends on mapped arguments, so it has a value for each entry: `out_axes=` is an axis for it"
)
def result_without_an_axis():
    gp.vmap(twice, out_axes=None)(THREE)  # here


@WRONGS.add("vmap of `twice`: a result has 3 axes, and so none with the number 3, which `out_axes=` says")
def result_of_few_axes():
    gp.vmap(twice, out_axes=3)(THREE)  # here


@WRONGS.add("vmap of `twice` gives Fields for Fields: leave out `out=`, which is of calls with arrays")
def memory_for_fields():
    gp.vmap(twice)(THREE, out=np.empty((3, 4, 5), "f"))  # here


@WRONGS.add(
    "stands for an array of a pipeline, which is mapped over its first axis, not over axis 1: make it a Field before"
)
def another_axis_in_a_pipeline():
    mapped = gp.vmap(lambda a: twice(gp.ScalarField(a)), in_axes=1)
    gp.pipeline(lambda a: mapped(a))(np.ones((3, 4), "f"))  # here


@WRONGS.add("entry of what `gp.vmap` maps over")
def values_of_an_entry():
    gp.vmap(lambda f: f * float(f.max()))(THREE)  # here


@WRONGS.add(
    "`iterate_twice` ends when its condition holds, for each entry of the batch of `gp.vmap` after another number of iterations: "
    "give `times=` alone"
)
def iterations_until():
    def until(f):
        return gp.iterate(twice, f, until=lambda u: u.max() > 9)  # here

    gp.vmap(until)(THREE)


@WRONGS.add(
    "operator `summed` has work-groups of 2 layers, which would lie in several entries of the batch of `gp.vmap`: give work-groups "
    "of one layer by `_localThreads`"
)
def groups_of_layers():
    @gp.operator
    def summed(f):  # here
        _localThreads(2, 1, 4)
        return _reduceGroup(_readTensor(f), "add")

    gp.vmap(summed)(gp.ScalarField(np.ones((2, 3, 4, 4), "f")))


@WRONGS.add("own points do not match")
def entries_of_other_grids():
    @gp.operator
    def added(f, g):
        return _readTensor(f) + _readTensor(g)  # here

    gp.vmap(added, in_axes=(0, None))(THREE, THREE)


@WRONGS.add(
    "`f` is 3D: give (layer, row, column), or no coordinates, not 2; `gp.vmap` maps operators over leading dimensions"
)
def operator_of_images():
    gp.operator(lambda f: _readTensor(f, _row, _column + 1))(THREE)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_wrong_batches(wrong):
    wrong.check()
