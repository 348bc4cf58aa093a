"""Wrong graphs, pipelines and devices: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime import devices
from gpuop.runtime.cuda import device

from .wrong import INTEGER, SCALAR, Wrongs

WRONGS = Wrongs()
ARRAY = np.ones((4, 5), "f")


# --- graphs ------------------------------------------------------------------------------------------------------------


@WRONGS.add("`.next` is set inside `with gp.ComputeGraph() as graph:`")
def next_outside_a_graph():
    SCALAR.next = SCALAR + 1  # here


@WRONGS.add("this field has a `.next` already, and a state takes one")
def next_twice():
    with gp.ComputeGraph():
        state = gp.ScalarField(ARRAY)
        state.next = state + 1
        state.next = state * 2  # here


@WRONGS.add(
    "`.next` of a 4×5 float32 field takes a field of the same type, not 4×5 bool; `.astype('float32')` converts"
)
def next_of_another_type():
    with gp.ComputeGraph():
        state = gp.ScalarField(ARRAY)
        state.next = state > 1  # here


@WRONGS.add("`.next` takes a Field, such as `np.full_like(state, 0)`, not an ndarray")
def next_of_an_array():
    with gp.ComputeGraph():
        state = gp.ScalarField(ARRAY)
        state.next = ARRAY  # here


@WRONGS.add("only a field made from an array has a `.next`: it is a state, and the array is what it starts from")
def next_of_a_result():
    with gp.ComputeGraph():
        state = gp.ScalarField(ARRAY) + 1
        state.next = state * 2  # here


@WRONGS.add("this ComputeGraph is defined already: probe inside its `with`")
def probe_after_the_definition():
    with gp.ComputeGraph() as graph:
        field = gp.ScalarField(ARRAY) + 1
    graph.probe(field)  # here


@WRONGS.add("probe wants a Field, not an ndarray")
def probe_an_array():
    with gp.ComputeGraph() as graph:
        graph.probe(ARRAY)  # here


@WRONGS.add("there is a probe 'sum' already; give another name")
def same_probe_name():
    with gp.ComputeGraph() as graph:
        graph.probe(gp.ScalarField(ARRAY) + 1, "sum")
        graph.probe(gp.ScalarField(ARRAY) + 2, "sum")  # here


@WRONGS.add("this ComputeGraph is still being defined; run it after its `with` block")
def step_in_the_definition():
    with gp.ComputeGraph() as graph:
        graph.probe(gp.ScalarField(ARRAY) + 1)
        graph.step()  # here


@WRONGS.add("'total' is not probed (probes: 'sum'); call `graph.probe(field)` inside the `with`")
def read_an_unknown_probe():
    with gp.ComputeGraph() as graph:
        graph.probe(gp.ScalarField(ARRAY) + 1, "sum")
    graph.read("total")  # here


@WRONGS.add("<Field 4×5 float32> is not probed (probes: 'sum')")
def read_an_unprobed_field():
    with gp.ComputeGraph() as graph:
        field = gp.ScalarField(ARRAY) + 1
        graph.probe(field, "sum")
    graph.read(field + 1)  # here


@WRONGS.add("3 is not probed (probes: 'sum')")
def read_a_number():
    with gp.ComputeGraph() as graph:
        graph.probe(gp.ScalarField(ARRAY) + 1, "sum")
    graph.read(3)  # here


@WRONGS.add("this ComputeGraph was released")
def step_after_release():
    with gp.ComputeGraph() as graph:
        graph.probe(gp.ScalarField(ARRAY) + 1)
    graph.release()
    graph.step()  # here


@WRONGS.add("this ComputeGraph is defined already; make another one")
def define_twice():
    with gp.ComputeGraph() as graph:
        graph.probe(gp.ScalarField(ARRAY) + 1)
    with graph:  # here
        pass


@WRONGS.add("a state of another ComputeGraph is used here; read it there and make a field of the array")
def state_of_another_graph():
    with gp.ComputeGraph() as first:
        state = gp.ScalarField(ARRAY)
        state.next = state + 1
        first.probe(state)
    with gp.ComputeGraph() as second:
        second.probe(state * 2)
    second.step()  # here


def stepped():
    """A graph with a state, which is what it was no more."""
    with gp.ComputeGraph() as graph:
        heat = gp.ScalarField(ARRAY)
        heat.next = heat + 1
        double = graph.probe(heat * 2)
    graph.step(5)
    return heat, double


STATE = (
    "`heat` is a state of a ComputeGraph, and has no values outside of its steps: probe it, or what is computed of it, inside "
    "the graph's `with`, and `graph.read` that"
)


@WRONGS.add(STATE)
def values_of_a_state():
    heat, _ = stepped()
    heat.numpy()  # here


@WRONGS.add(STATE)
def values_of_a_state_of_a_graph_that_is_being_defined():
    """They would be a constant of its steps."""
    with gp.ComputeGraph() as graph:
        heat = gp.ScalarField(ARRAY)
        heat.next = heat + 1
        graph.probe(heat * float(heat.max()))  # here


@WRONGS.add(STATE)
def arithmetic_of_a_state():
    heat, _ = stepped()
    (2 * heat).sum().numpy()  # here


@WRONGS.add(STATE)
def values_computed_of_a_state():
    _, double = stepped()
    float(double[0, 0])  # here


@WRONGS.add(STATE)
def evaluation_of_a_state():
    heat, _ = stepped()
    gp.evaluate(SCALAR, heat)  # here


@WRONGS.add(STATE)
def state_as_an_array():
    heat, _ = stepped()
    np.asarray(heat)  # here


@WRONGS.add(STATE)
def state_in_a_pipeline():
    heat, _ = stepped()
    gp.pipeline(lambda image: gp.ScalarField(image) + heat)(ARRAY)  # here


@WRONGS.add(STATE)
def iteration_of_a_state():
    heat, _ = stepped()
    gp.iterate(lambda u: u + 1, heat, times=3).numpy()  # here


def test_a_field_is_an_array_until_it_is_a_state():
    with gp.ComputeGraph() as graph:
        heat = gp.ScalarField(ARRAY)
        assert heat.numpy()[0, 0] == float(heat[0, 0]) == 1
        heat.next = heat + 1
        graph.probe(heat)
    results = []

    def define():
        with gp.ComputeGraph():
            results.append(other := gp.ScalarField(ARRAY))
            other.next = other + 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        define()
    (other,) = results
    assert other.numpy()[0, 0] == 1


@WRONGS.add("the `with` block of this ComputeGraph ended with an error; define it again")
def step_after_an_error():
    graph = gp.ComputeGraph()
    with pytest.raises(ZeroDivisionError), graph:
        1 / 0
    graph.step()  # here


@WRONGS.add("there is no file none.gpuop; `gpuop compile` writes bundles")
def no_bundle():
    gp.load_bundle("none.gpuop")  # here


# --- pipelines -----------------------------------------------------------------------------------------------------------


@gp.pipeline
def twice(image, factor=2):
    return gp.ScalarField(image) * factor


@WRONGS.add("pipeline `twice`: missing a required argument: 'image'")
def missing_argument():
    twice()  # here


@WRONGS.add("gets Fields and arrays; give it arrays and Parameters only, or Fields only")
def fields_and_arrays():
    twice(ARRAY, SCALAR)  # here


HASHABLE = "what is not an array is a Parameter, or a constant that Python can hash, or a list of those"


@WRONGS.add(f"argument `factor` of pipeline `twice` is a set; {HASHABLE}")
def unhashable_argument():
    twice(ARRAY, {1, 2})  # here


@WRONGS.add(
    "argument `image` of pipeline `twice` has 4200 numbers: arrays and lists are constants that are compiled in, of at"
)
def list_instead_of_an_array():
    twice([[1] * 42] * 100)  # here


@gp.pipeline
def total(*images, **named):
    return sum(gp.ScalarField(image) for image in (*images, *named.values()))


HELD = "of pipeline `total` holds arrays; each array is an argument with a name of its own"
LARGE = np.zeros((100, 100), "f")


@WRONGS.add(f"`images` {HELD}")
def large_arrays_in_a_row():
    total(LARGE, LARGE)  # here


@WRONGS.add(f"`named` {HELD}")
def large_arrays_by_name():
    total(a=LARGE)  # here


@WRONGS.add(f"`images` {HELD}")
def arrays_in_lists():
    total([[ARRAY]])  # here


@WRONGS.add("a pipeline's array argument has no values while the pipeline is traced")
def array_arithmetic():
    @gp.pipeline
    def brighter(image):
        return gp.ScalarField(image + 1)  # here

    brighter(ARRAY)


@WRONGS.add(
    "an array argument of a pipeline does not change: `gp.updated(gp.ScalarField(image), index, values)` makes a new Field"
)
def assignment_to_an_argument():
    @gp.pipeline
    def masked(image):
        image[0] = 0  # here
        return gp.ScalarField(image)

    masked(ARRAY)


@WRONGS.add("and becomes a Field, as in `gp.ScalarField(image)`")
def array_method():
    gp.pipeline(lambda image: gp.ScalarField(image / image.max()))(ARRAY)  # here


@WRONGS.add(
    "this Field stands for an argument of a pipeline and has no values yet: leave out `.numpy()`, `float()` and `int()`. "
    "A 0D Field is a number in arithmetic as it is; `np.where(c, a, b)` chooses by values; `index=` and `np.arange` take "
    "numbers of Python"
)
def values_while_traced():
    @gp.pipeline
    def brighter(image):
        f = gp.ScalarField(image)
        return f / f.numpy().max()  # here

    brighter(ARRAY)


@WRONGS.add("pipeline `nothing` returns None; it returns a Field or a tuple of Fields")
def pipeline_without_return():
    @gp.pipeline
    def nothing(image):  # here
        gp.ScalarField(image) + 1

    nothing(ARRAY)


@WRONGS.add("there is no target 'metal'; one of opencl, opencl:cpu, cuda, or an architecture as in cuda:sm_90")
def unknown_target():
    gp.operator(lambda f: _readTensor(f) + 1).source(SCALAR.type, target="metal")  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()


# --- devices ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["metal:0", "opencl:99"])
def test_unknown_device(name):
    message = f"there is no device '{name}'; found: [^;]*reference(; not [^;]*: .*)*$"
    with pytest.raises(gp.DeviceError, match=message), gp.use_device(name):
        pass
    with pytest.raises(gp.DeviceError, match=message):
        gp.device(name)
    with gp.ComputeGraph(device=name) as graph:
        graph.probe(INTEGER + 1)
    with pytest.raises(gp.DeviceError, match=message):
        graph.step()


def test_a_device_that_is_not_there(monkeypatch):
    monkeypatch.setattr(devices, "_discovered", None)
    monkeypatch.setattr(device, "missing", lambda: "the NVIDIA driver finds no GPU")
    with pytest.raises(gp.DeviceError, match=r"^cuda:0: the NVIDIA driver finds no GPU$"):
        gp.device("cuda:0")
