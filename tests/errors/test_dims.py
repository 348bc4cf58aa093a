"""Wrong names of dimensions, and arguments that are not as declared: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()
IMAGES = gp.Dims("img:chan:y:x")
BATCH = gp.ScalarField(np.ones((2, 3, 4, 5), "f"), dims=IMAGES)
COLOURS = gp.VectorField(np.ones((4, 5, 3), "f"), dims="y:x:rgb")


@gp.operator(inputs={"images": IMAGES, "filters": gp.Dims("oc:chan:ky:kx", kx=3), "stride": gp.Dims("y:x")})
def convolution(images, filters, stride):
    return _readTensor(images)


@WRONGS.add(
    "operator `convolution` does not take these arguments: `images` is to be img:chan:y:x, and is chan=4:y=5; `filters` is to be "
    "oc:chan:ky:kx=3, and is chan=2:oc=3:ky=4:kx=5; `stride` is to be a Field or Dims of y:x, and is an int"
)
def every_argument():
    swapped = BATCH.named("chan:oc:ky:kx")
    convolution(SCALAR.named("chan:y"), swapped, 2)  # here


@WRONGS.add("operator `convolution` does not take these arguments: `filters` has chan=2, and `images` has chan=3")
def dimensions_of_one_name():
    convolution(BATCH, gp.ScalarField(np.ones((7, 2, 3, 3), "f")), gp.Dims("y:x"))  # here


@WRONGS.add("`stride` is to be y:x, and is x=2:y=1")
def dims_in_another_order():
    convolution(BATCH, gp.ScalarField(np.ones((1, 3, 3, 3), "f")), gp.Dims(x=2, y=1))  # here


@WRONGS.add("operator `typed` does not take these arguments: `f` is to be 4×5 float32, and is 4×5 int32")
def another_type():
    typed = gp.operator(inputs={"f": SCALAR.type}, name="typed")(lambda f: _readTensor(f))
    typed(SCALAR.astype("int32"))  # here


@WRONGS.add("`f` is to be y:x[rgb=3], and is y=4:x=5")
def a_tensor_is_declared():
    taken = gp.operator(inputs={"f": gp.Dims("y:x")(rgb=3)}, name="taken")(lambda f: _readTensor(f))
    taken(SCALAR.named("y:x"))  # here


@WRONGS.add("operator `blur` declares `image`, and has no such argument: it has f")
def no_such_argument():
    gp.operator(inputs={"image": IMAGES}, name="blur")(lambda f: _readTensor(f))  # here


@WRONGS.add("operator `blur`: `f` is declared by gp.Dims or a FieldType, not by a str")
def declared_by_text():
    gp.operator(inputs={"f": "y:x"}, name="blur")(lambda f: _readTensor(f))  # here


@WRONGS.add("an output is oc:y:x, and no argument has a dimension 'oc' to say how long it is")
def an_extent_that_nobody_knows():
    gp.operator(outputs=gp.Dims("oc:y:x"))(lambda f: _readTensor(f))(BATCH)  # here


@WRONGS.add("add: the dimensions differ, img:chan:y:x and chan:img:y:x; `f.named(…)` gives them other names")
def equal_extents_in_another_order():
    square = gp.ScalarField(np.ones((3, 3, 4, 5), "f"), dims=IMAGES)
    square + square.swapaxes("img", "chan")  # here


@WRONGS.add("multiply: the dimensions differ, img:chan:y:x and _:_:_:chan")
def a_name_beside_another():
    BATCH * gp.ScalarField(np.ones(5, "f"), dims="chan")  # here


@WRONGS.add("there is no axis 'depth' of a 2×3×4×5 float32 (img:chan:y:x) field")
def no_such_axis():
    BATCH.sum(axis="depth")  # here


@WRONGS.add("there is no axis 'x' of a 4×5 float32 field")
def names_of_an_axis_without():
    np.flip(SCALAR, "x")  # here


@WRONGS.add("'img:y:x' names 3 dimensions, and an array of shape (4, 5) has 2")
def too_many_names():
    gp.ScalarField(np.ones((4, 5)), dims="img:y:x")  # here


@WRONGS.add("a field of _=4:_=5 has not the dimensions y:x=3")
def an_extent_that_it_has_not():
    gp.ScalarField(np.ones((4, 5)), dims=gp.Dims("y:x", x=3))  # here


@WRONGS.add("the dimension 'x' is named twice in 'x:y:x'")
def one_name_twice():
    gp.Dims("x:y:x")  # here


@WRONGS.add(
    "'shape' is not a name of a dimension: names are Python identifiers, without a leading underscore, and not "
)
def a_reserved_name():
    gp.Dims("y:shape")  # here


@WRONGS.add("the extent of 'y' is not known in y:x=3: it is any")
def an_unknown_extent():
    gp.Dims("y:x", x=3).y  # here


@WRONGS.add("`f` has no dimension 'z': it has img:chan:y:x")
def a_place_along_none():
    @gp.operator
    def wrong(f):
        return _readTensor(f, z=0)  # here

    wrong(BATCH)


@WRONGS.add("`f` has no dimension 'x': its dimensions have no names")
def a_name_of_none():
    @gp.operator
    def wrong(f):
        return _readTensor(f, x=0)  # here

    wrong(SCALAR)


@WRONGS.add("`g`: give the place along 'oc' too: the threads have img:chan:y:x, so there is none of their own")
def a_place_that_threads_have_not():
    @gp.operator
    def wrong(f, g):
        return _readTensor(f) + _readTensor(g, x=0)  # here

    wrong(BATCH, gp.ScalarField(np.ones((3, 4), "f"), dims="oc:x"))


@WRONGS.add("`f`: coordinates stand one by one or by name, not both")
def places_in_both_ways():
    @gp.operator
    def wrong(f):
        return _readTensor(f, 0, y=1)  # here

    wrong(BATCH)


@WRONGS.add("`f` is 4D: give (img, chan, y, x), or no coordinates, not 3")
def three_of_four_coordinates():
    @gp.operator
    def wrong(f):
        return _readTensor(f, _layer, _row, _column)  # here

    wrong(BATCH)


@WRONGS.add(
    "`g` has img:oc:y:x, and the threads have img:chan:y:x: own points do not match; name what to read at, as in `x=…`"
)
def own_points_of_other_names():
    @gp.operator
    def wrong(f, g):
        return _readTensor(f) + _readTensor(g)  # here

    wrong(BATCH, gp.ScalarField(np.ones((2, 3, 4, 5), "f"), dims="img:oc:y:x"))


@WRONGS.add("`g` is 3×2×4×5, the threads are 2×3×4×5 (as `f` is, the first Field): own points do not match")
def own_points_of_other_extents():
    @gp.operator
    def wrong(f, g):
        return _readTensor(f) + _readTensor(g)  # here

    wrong(BATCH, BATCH.swapaxes("img", "chan"))


@WRONGS.add("the threads have no dimension 'rgb': they have y:x")
def threads_along_a_tensor():
    @gp.operator
    def wrong(f):
        return _readTensor(f).x + _dim("rgb")  # here

    wrong(COLOURS)


@WRONGS.add("the threads have no dimension 2: they have 2 dimensions without names")
def the_third_of_two():
    @gp.operator
    def wrong(f):
        return _readTensor(f) + _dim(2)  # here

    wrong(SCALAR)


@WRONGS.add(
    "`.next` of a 2×3×4×5 float32 (img:chan:y:x) field takes a field of the same type, not 3×2×4×5 float32 (chan:img:y:x)"
)
def a_state_of_other_dimensions():
    with gp.ComputeGraph():
        state = gp.ScalarField(np.ones((2, 3, 4, 5), "f"), dims=IMAGES)
        state.next = state.swapaxes("img", "chan")  # here


@WRONGS.add("the field is 4D: write `_tile(f, 1, layers, rows, columns)`, not 2 extents")
def a_tile_of_four_dimensions():
    @gp.operator
    def wrong(f):
        return _tile(f, 4, 4)[_localRow, _localColumn]  # here

    wrong(BATCH)


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message_and_line(wrong):
    wrong.check()
