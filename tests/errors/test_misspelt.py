"""Arguments that there are not: each message names the one that is unknown, and the one that is near."""

from __future__ import annotations

import contextlib
import inspect
import pickle

import numpy as np
import pytest

import gpuop as gp
import gpuop.dsl as k
import gpuop.testing
from gpuop.dsl import *

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()
ARRAY = SCALAR.numpy()


@WRONGS.add("reads take `border=` and `offset=` besides. Did you mean 'border'?")
def border_beside_coordinates():
    gp.operator(lambda f: _readTensor(f, _row, _column, boarder="clamp"))(SCALAR)  # here


@WRONGS.add("`f` has no dimension 'boarder'")
def border_of_a_sample():
    gp.operator(lambda f: _sampleTensor(f, _row * 1.5, _column, boarder="zero"))(SCALAR)  # here


@WRONGS.add(
    "_out0 has no dimension 'ofset': its dimensions have no names; reads take `border=` and `offset=` besides. Did"
)
def offset_of_a_write():
    gp.operator(lambda f: _writeTensor(_out0, 1, ofset=(0, 1)))(SCALAR)  # here


@WRONGS.add(
    "`f` has no dimension 'colum': it has row:column; reads take `border=` and `offset=` besides. Did you mean 'column'?"
)
def dimension():
    named = gp.Field(ARRAY, 0, dims="row:column")
    gp.operator(lambda f: _readTensor(f, colum=0))(named)  # here


@WRONGS.add("_out0 is written, and writes take no `border=`: what is outside is dropped")
def border_of_a_write():
    gp.operator(lambda f: _writeTensor(_out0, 1, _row, _column, border="clamp"))(SCALAR)  # here


@WRONGS.add("`_for(*bounds, step=1, unroll=1)` got an unexpected keyword argument 'unrol'. Did you mean 'unroll'?")
def loop():
    @gp.operator
    def wrong(f):
        with k._for(3, unrol=True):  # here
            pass

    wrong(SCALAR)


@WRONGS.add(
    "`_localThreads(*shape, whole_groups=False, groups=None)` got an unexpected keyword argument 'whole_group'. Did"
)
def threads_in_cogs_form():
    with gp.GPUOperator(SCALAR.type):
        _localThreads(8, 8, whole_group=True)  # here


@WRONGS.add("`_floatVar(init=0)` has too many arguments")
def too_many():
    gp.operator(lambda f: _floatVar(1, 2))(SCALAR)  # here


@WRONGS.add("missing 1 required positional argument: 'field'")
def too_few():
    gp.operator(lambda f: _readTensor(border="zero"))(SCALAR)  # here


@WRONGS.add("operator `scaled`: got an unexpected keyword argument 'factr'. Did you mean 'factor'?")
def argument_of_an_operator():
    @gp.operator
    def scaled(f, factor):
        return _readTensor(f) * factor

    scaled(SCALAR, factr=2)  # here


@WRONGS.add("gaussian_filter: got an unexpected keyword argument 'sigm'. Did you mean 'sigma'?")
def filter_of_a_field():
    gp.ndimage.gaussian_filter(SCALAR, sigm=1)  # here


@WRONGS.add("fft: got an unexpected keyword argument 'axs'. Did you mean 'axis'?")
def transform_of_an_array():
    gp.fft.fft(ARRAY, axs=1)  # here


@WRONGS.add("matmul: missing a required argument: 'x2'")
def product():
    gp.linalg.matmul(ARRAY)  # here


@WRONGS.add("operator `alone`: too many positional arguments; it takes (f)")
def fields_of_an_operator_of_one():
    @gp.operator
    def alone(f: gp.Field):
        return _readTensor(f)

    alone(SCALAR, SCALAR)  # here


@WRONGS.add("a Field is not called; `_readTensor(f, row, column)` is its value at a place")
def field_as_in_halide():
    gp.operator(lambda f: f(_row, _column))(SCALAR)  # here


@WRONGS.add("writes want an output first, `_out0` … `_out9`, not a computed value")
def write_of_a_value_to_an_output():
    gp.operator(lambda f: _writeTensor(_readTensor(f), _out0))(SCALAR)  # here


@WRONGS.add("_atomic_add takes a pointer, as `_atomic_add(_pointerTo(v)…)`, not `_out0` as a whole")
def atomic_function_of_an_output():
    gp.operator(lambda f: _atomic_add(_out0, 1))(SCALAR)  # here


@WRONGS.add("an operator is made of a Python function, not of a ScalarField; write a `def`")
def operator_of_a_field():
    gp.operator(SCALAR)  # here


@WRONGS.add("fields have no dtype 'str")
def dtype():
    gp.ScalarField(ARRAY, dtype=str)  # here


@WRONGS.add("fields have no dtype '4'; extents stand in a tuple, as in `gp.zeros((rows, columns))`")
def extents_one_by_one():
    gp.zeros(3, 4)  # here


@WRONGS.add("complex128, unorm8, bfloat16. Did you mean 'complex128'?")
def near_dtype():
    gp.ScalarField(ARRAY, dtype="complex182")  # here


@WRONGS.add(
    "gpuop.ndimage has no `gausian_filter`; `scipy.ndimage.gausian_filter`, if there is one, takes `f.numpy()`. Did you mean"
)
def function_of_the_library():
    gp.ndimage.gausian_filter(SCALAR, 1)  # here


@WRONGS.add("an output is declared by a FieldType, Dims or \"same\", not by 'sam'. Did you mean 'same'?")
def output_of_the_same_type():
    gp.operator(outputs="sam")(lambda f: _readTensor(f))(SCALAR)  # here


@WRONGS.add("gpuop has no `ScalerField`. Did you mean 'ScalarField'?")
def name_of_gpuop():
    gp.ScalerField(ARRAY)  # here


@WRONGS.add("gpuop has no `quux`")
def name_like_no_other():
    gp.quux  # here


@WRONGS.add("gpuop.testing is a module: `import gpuop.testing`")
def module_that_is_not_imported():
    imported = vars(gp).pop("testing", None)  # by another test
    try:
        gp.testing  # here
    finally:
        vars(gp).update({"testing": imported} if imported else {})


@WRONGS.add("gpuop.dask has no `mapblocks`. Did you mean 'map_blocks'?")
def name_of_dask():
    pytest.importorskip("dask.array")
    import gpuop.dask

    gpuop.dask.mapblocks  # here


@WRONGS.add("gpuop.mpi has no `Domian`. Did you mean 'Domain'?")
def name_of_mpi():
    import gpuop.mpi

    gpuop.mpi.Domian  # here


@WRONGS.add("a ComputeGraph has no attribute 'explian'. Did you mean 'explain'?")
def attribute_of_a_graph():
    with gp.ComputeGraph() as graph:
        graph.probe(SCALAR * 2, "twice")
    graph.explian()  # here


@WRONGS.add("an Operator has no attribute 'sorce'. Did you mean 'source'?")
def attribute_of_an_operator():
    gp.operator(lambda f: _readTensor(f)).sorce(SCALAR)  # here


@WRONGS.add("a Pipeline has no attribute 'profle'. Did you mean 'profile'?")
def attribute_of_a_pipeline():
    gp.pipeline(lambda a: gp.ScalarField(a)).profle(ARRAY)  # here


@WRONGS.add("an Event has no attribute 'wayt'. Did you mean 'wait'?")
def attribute_of_an_event():
    gp.submit(SCALAR * 2).wayt()  # here


@WRONGS.add("a FieldType has no attribute 'replce'. Did you mean 'replace'?")
def attribute_of_a_type():
    SCALAR.type.replce(dtype="int32")  # here


@WRONGS.add("a Field has no attribute 'shapee'; `.numpy()` gives an array. Did you mean 'shape'?")
def attribute_of_a_field():
    SCALAR.shapee  # here


@WRONGS.add("operator: got an unexpected keyword argument 'outptus'. Did you mean 'outputs'?")
def argument_of_the_decorator():
    @gp.operator(outptus="same")  # here
    def same(f):
        return _readTensor(f)


@WRONGS.add("pipeline: got an unexpected keyword argument 'dynamc'. Did you mean 'dynamic'?")
def argument_of_the_decorator_of_pipelines():
    gp.pipeline(lambda a: gp.ScalarField(a), dynamc=True)  # here


@WRONGS.add("ComputeGraph: too many positional arguments; it takes (device, optimize, checked, precision)")
def arguments_of_a_graph():
    gp.ComputeGraph("reference", True, False, "exact", 1)  # here


@WRONGS.add("ComputeGraph.gradient: argument `steps` is missing")
def argument_of_a_method():
    gp.ComputeGraph().gradient("loss", ("u",))  # here


@WRONGS.add("stream: too many positional arguments; it takes (function, source, out)")
def arguments_of_a_stream():
    gp.stream(lambda a: gp.ScalarField(a), ARRAY, None, 16)  # here


@WRONGS.add("iterate: got an unexpected keyword argument 'tims'. Did you mean 'times'?")
def argument_of_an_iteration():
    gp.iterate(lambda f: f, SCALAR, tims=2)  # here


@WRONGS.add("Sensor: got an unexpected keyword argument 'nme'. Did you mean 'name'?")
def argument_of_a_sensor():
    gp.Sensor(SCALAR.type, lambda: ARRAY, nme="camera")  # here


@WRONGS.add("Actuator: got an unexpected keyword argument 'pipelind'. Did you mean 'pipelined'?")
def argument_of_an_actuator():
    gp.Actuator(SCALAR, print, pipelind=True)  # here


@WRONGS.add("GPUOperator: got an unexpected keyword argument 'defualt'. Did you mean 'default'?")
def argument_of_cogs_form():
    gp.GPUOperator(SCALAR.type, defualt=0)  # here


@WRONGS.add("HostOperator: got an unexpected keyword argument 'outptus'. Did you mean 'outputs'?")
def argument_of_a_function_of_the_host():
    gp.HostOperator(np.sin, SCALAR, outptus=SCALAR.type)  # here


@WRONGS.add("DeviceOperator: got an unexpected keyword argument 'outptus'. Did you mean 'outputs'?")
def argument_of_a_function_of_the_device():
    gp.DeviceOperator(np.sin, SCALAR, outptus=SCALAR.type)  # here


@WRONGS.add(
    "`gp.profile(…)` alone has no attribute 'spans': it begins with its block, `with gp.profile(…) as it:`, and"
)
def attribute_of_a_profile_before_its_block():
    gp.profile().spans  # here


@WRONGS.add(
    "fill_value=300 does not fit the field's dtype, uint8; its least and greatest value are 0 and 255, or fill_value=-"
)
def number_that_bytes_do_not_hold():
    np.full_like(SCALAR, 300, dtype="uint8")  # here


@WRONGS.add("ComputeGraph: got an unexpected keyword argument 'devcie'. Did you mean 'device'?")
def argument_of_a_graph():
    gp.ComputeGraph(devcie="reference")  # here


@WRONGS.add("einsum: axes that are multiplied have 5 and 3 elements")
def extents_of_einsum():
    np.einsum("ij,jk->ik", gp.zeros((4, 5)), gp.zeros((3, 2)))  # here


@WRONGS.add("`_readTensr` is not defined. Did you mean '_readTensor'?")
def builtin():
    gp.operator(lambda f: _readTensr(f) * 2)(SCALAR)  # here


@WRONGS.add("`_rown` is not defined. Did you mean '_row'?")
def thread_constant():
    @gp.operator
    def wrong(f):
        with _if(_readTensor(f) > 1):
            _writeTensor(_out0, _rown)  # here

    wrong(SCALAR)


@WRONGS.add("`_writTensor` is not defined. Did you mean '_writeTensor'?")
def builtin_of_an_anonymous_operator():
    with gp.GPUOperator(SCALAR.type):
        _writTensor(_out0, 1.0)  # here


@WRONGS.add("`_row` is not imported; write `from gpuop.dsl import *` at the beginning of this file")
def builtin_without_import():
    code = compile("lambda f: _row", __file__, "eval").replace(co_firstlineno=1)
    function = eval(code, {})
    with pytest.raises(gp.SemanticError) as caught:
        gp.operator(function)(SCALAR)
    raise gp.SemanticError(str(caught.value).partition("\n")[0])  # here


@WRONGS.add("gpuop.dsl has no `_readTensr`. Did you mean '_readTensor'?")
def builtin_of_the_module():
    k._readTensr  # here


@WRONGS.add("nan_to_num of a Field and a str: beside a Field are Fields and numbers")
def text_for_nan():
    np.nan_to_num(SCALAR, nan="0")  # here


@WRONGS.add("select of a Field and a str: beside a Field are Fields and numbers")
def text_for_a_choice():
    np.select([SCALAR > 0], ["0"])  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message_and_line(wrong):
    wrong.check()


def test_others_words_are_pythons():
    """A function of the user's that has a word's name has Python's message."""

    def _for(count):
        return count

    with pytest.raises(TypeError, match="unexpected keyword argument 'unrol'") as caught:
        gp.operator(lambda f: _readTensor(f) * _for(unrol=1))(SCALAR)
    assert not isinstance(caught.value, gp.GpuopError)


def test_names_that_nothing_is_near_are_attribute_errors():
    for each in (gp.ComputeGraph(), gp.operator(lambda f: f), gp.pipeline(lambda a: a), SCALAR.type):
        assert not hasattr(each, "xyzzy") and not hasattr(each, "_private")
        assert getattr(each, "__array_interface__", None) is None
    with pytest.raises(TypeError, match="unexpected keyword argument 'xyzzy'"):
        gp.operator(xyzzy=1)


def test_names_without_a_builtin_near_are_name_errors():
    for body in (lambda f: undefined(f), lambda f: _xyzzy(f)):
        with pytest.raises(NameError, match=r"is not defined$") as caught:
            gp.operator(body)(SCALAR)
        assert not isinstance(caught.value, gp.GpuopError)


def _is_checked(value):
    """Return whether it is a function of gpuop, or a class whose objects users make; GPUOperator takes outputs by position."""
    if isinstance(value, type):
        return issubclass(value, (gp.Field, gp.FieldType, gp.Sensor, gp.Actuator, gp.ComputeGraph))
    return callable(value) and getattr(value, "__module__", "").startswith("gpuop")


PACKAGES = {module.__name__: module for module in (gp, gp.ndimage, gp.linalg, gp.fft, gp.random, gp.cog, gp.testing)}


def public(package):
    """Functions and classes of a package for users."""
    values = (getattr(PACKAGES[package], name) for name in dir(PACKAGES[package]) if not name.startswith("_"))
    return [value for value in values if _is_checked(value)]


@pytest.mark.parametrize("package", PACKAGES)
def test_misspelt_keywords_of_public_functions(package):
    """Of every keyword with four letters or more, the last but one left out."""
    for function in public(package):
        parameters = inspect.signature(function).parameters
        if any(each.kind == each.VAR_KEYWORD for each in parameters.values()):
            continue
        named = [n for n, each in parameters.items() if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)]
        for name in (name for name in named if len(name) > 3 and name[:-2] + name[-1] not in named):
            wrong = name[:-2] + name[-1]
            with pytest.raises((TypeError, gp.SemanticError)) as caught, contextlib.ExitStack() as stack:
                stack.enter_context(function(**{wrong: 1}))
            near = "stop" if wrong == "stp" else name
            assert f"unexpected keyword argument '{wrong}'. Did you mean '{near}'?" in str(caught.value), function


@gp.pipeline
def scaled(image, scale=1.0):
    return gp.ScalarField(image) * scale


@gp.pipeline
def without_fields(image, device):
    return gp.ScalarField(image) * device


def objects_with_methods():
    """Objects that users have, and the methods whose keywords nothing checks before Python does."""
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(ARRAY, dtype="float32")
        state.next = state * 0.5
        graph.probe(state, "state")
    with gp.profile() as timeline:
        pass
    return (
        graph,
        graph.footprint(),
        graph.window((0, 0), (2, 2)),
        gp.Parameter(1.0),
        timeline,
    )


def test_misspelt_keywords_of_methods():
    """Of every keyword of every public method with four letters or more, the last but one left out."""
    checked = set()
    *others, timeline = objects_with_methods()
    for each in (*others, timeline):
        own = type(each)
        for method in (name for name in vars(own) if not name.startswith("_") and inspect.isfunction(vars(own)[name])):
            parameters = inspect.signature(getattr(each, method)).parameters.values()
            named = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
            if method not in getattr(own, "users", (method,)) or (own is type(timeline) and method != "save"):
                continue  # it is for gpuop itself
            for name in (name for name in named if len(name) > 3):
                wrong = name[:-2] + name[-1]
                with pytest.raises((TypeError, gp.SemanticError), match=f"'{wrong}'. Did you mean '{name}'\\?"):
                    getattr(each, method)(**{wrong: 1})
                checked.add((own.__name__, method))
    assert {("ComputeGraph", "read"), ("Footprint", "window"), ("GraphWindow", "put"), ("Parameter", "set")} <= checked


def test_misspelt_options_of_calls():
    for call, wrong, near in (
        (lambda: scaled(ARRAY, devcie="reference"), "devcie", "device"),
        (lambda: scaled(ARRAY, otu=ARRAY), "otu", "out"),
        (lambda: scaled(ARRAY, scal=2.0), "scal", "scale"),
        (lambda: scaled.explain(ARRAY, devcie="reference"), "devcie", "device"),
        (lambda: without_fields(ARRAY, devcie=2), "devcie", "device"),
    ):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{wrong}'. Did you mean '{near}'\\?"):
            call()
    for name, wrong, near in (("sum", "axsi", "axis"), ("std", "ddfo", "ddof"), ("max", "keepdim", "keepdims")):
        with pytest.raises(gp.SemanticError, match=f"`{wrong}=`; .* Did you mean '{near}'\\?"):
            getattr(SCALAR, name)(**{wrong: 0})
    graph = objects_with_methods()[0]
    with pytest.raises(TypeError, match=r"step\(\) got an unexpected keyword argument 'steps'; it takes n$"):
        graph.step(steps=3)
    with pytest.raises(TypeError, match=r"run\(\) got an unexpected keyword argument 'steps'; it takes no arguments$"):
        graph.run(steps=3)


def test_keywords_that_nothing_is_near():
    for call in (gp.zeros, gp.random.uniform, gp.Parameter):
        names = ", ".join(inspect.signature(call).parameters)
        with pytest.raises(TypeError, match=rf"^{call.__name__}\(\) got an .* 'xyzzy'; it takes {names}$"):
            call(xyzzy=1)


def test_errors_within_functions_stay():
    with pytest.raises(TypeError, match=r"got an unexpected keyword argument 'x'$"):
        gp.fromfunction(lambda i: (lambda: 0)(x=i), gp.FieldType(3))


def test_public_functions_are_pickled_by_their_names():
    for function in (function for package in PACKAGES for function in public(package)):
        assert pickle.loads(pickle.dumps(function)) is function, function
