"""The command line: text, IR, examples and bundles of functions in files; its messages, and what it returns."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import gpuop as gp
from gpuop.__main__ import main
from gpuop.base.config import config
from gpuop.engine.cli import devices as devices_command
from gpuop.passes.pipeline import PIPELINE
from gpuop.runtime.cuda import nvrtc
from gpuop.runtime.devices import examined
from gpuop.runtime.profile import device_facts

FILTERS = """
import numpy as np
import gpuop as gp
from gpuop.dsl import *

CONSTANT = 3


@gp.operator
def shifted(field, by, border="clamp"):
    return _readTensor(field, _row, _column + by, border=border)


def edges(image, *others):
    return shifted(image, 1) - shifted(image, -1) + sum(others, 0 * image), image.max()


@gp.operator
def summed(field):
    return _sum([_readTensor(field, _row + y, _column + x) for y in range(-3, 4) for x in range(-3, 4)])


def summed_twice(field):
    return summed(summed(field))


def halved(field):
    with gp.GPUOperator(field.type) as op:
        x = _var(_readTensor(field))
        with _codegenIf(_target.architecture >= 80):
            x @= x * 0.5
        with _codegenElse():
            x /= 2
        _writeTensor(_out0, x)
    return op.output


def example():
    return halved(gp.ScalarField(np.arange(6, dtype="f")))


@gp.pipeline
def stretched(image, by, other=None):
    return gp.VectorField(image) * by


@gp.pipeline
def swapped(first, unused, second):
    return gp.ScalarField(second) - 2 * gp.ScalarField(first)


@gp.pipeline
def coloured(image):
    return gp.ColorField(image) / 2


def number():
    return 3


def wrong(field):
    return halved(field + "x")


@gp.operator(inputs={"images": gp.Dims("img:chan:y:x"), "step": gp.Dims("y:x")})
def moved(images, step):
    return _readTensor(images, y=_dim("y") + step.y, x=_dim("x") - step.x)
"""
SCRIPT = '''
"""An example."""
import sys
import gpuop as gp
from gpuop.runtime.devices import current
import beside
print(__name__, sys.argv[1:], current().name, beside.VALUE)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a file of functions, and the interpreter as it was afterwards."""
    (tmp_path / "filters.py").write_text(FILTERS)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    yield tmp_path
    for name in ("filters", "beside"):
        sys.modules.pop(name, None)


def printed(capsys, *arguments):
    assert main(arguments) == 0
    return capsys.readouterr().out


def refused(capsys, *arguments):
    """The first line of the message of a command that fails."""
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("gpuop: ")
    return err.removeprefix("gpuop: ").partition("\n")[0]


# --- source -------------------------------------------------------------------------------------------------------------


def test_version(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0 and capsys.readouterr().out == f"gpuop {gp.__version__}\n"


def test_source_of_an_operator(folder, capsys):
    text = printed(
        capsys, "source", "filters.py:shifted", "--types", "float32[480x640]x3", "2", "'wrap'", "--target", "cuda"
    )
    assert "gpuop_shifted" in text and "__global__" in text
    assert "field_rows = 480, field_columns = 640, field_tensorElements = 3" in text and "_column + 2" in text


@pytest.mark.parametrize(
    ("types", "shown"),
    [
        ("float32[480x640]", "480x640 float32"), ("uint8[5,6]x2x2", "5x6 uint8[2x2]"), ("int32[7]", "7 int32"),
        ("float64[]", "0D float64"), ("float16[2×3×4]", "2x3x4 float16"), ("unorm8[3x4]x4", "3x4 unorm8[4]"),
        ("float32x3", "0D float32[3]"), ("bool[4]", "4 bool"),
    ],
)  # fmt: skip
def test_types(folder, capsys, types, shown):
    assert f"// field: {shown}\n" in printed(
        capsys, "source", "filters.py:halved", "--types", types, "--target", "opencl"
    )


def test_source_of_several_kernels_and_of_architectures(folder, capsys):
    text = printed(
        capsys, "source", "filters.py:edges", "--types", "float32[9x70]", "float32[9x70]", "--target", "opencl"
    )
    assert text.count("__kernel") > 1
    old, new = (printed(capsys, "source", "filters.py:example", "--target", t) for t in ("cuda:sm_75", "cuda:sm_90"))
    assert "/ 2.0f" in old and "/ 2.0f" not in new and "* 0.5f" in new


def test_source_by_default_is_what_a_graph_runs_on_the_device(folder, capsys, device):
    sys.path.insert(0, str(folder))
    summed_twice = importlib.import_module("filters").summed_twice
    field = gp.ScalarField(np.zeros((90, 256), "f"))
    with gp.ComputeGraph() as graph:
        graph.probe(summed_twice(field))
    assert printed(capsys, "source", "filters.py:summed_twice", "--types", "float32[90x256]") == graph.source()


def test_source_for_an_architecture_is_fused_as_on_a_gpu_of_it(folder, capsys):
    """For "opencl" it is what every device takes: there are schedules for none of them."""
    command = ("source", "filters.py:summed_twice", "--types", "float32[900x2560]", "--target")
    assert printed(capsys, *command, "cuda:sm_80").count("__global__") == 1
    assert printed(capsys, *command, "opencl").count("__kernel") == 2


def test_source_for_cpus_is_fused_and_in_vectors(folder, capsys):
    command = ("source", "filters.py:summed_twice", "--types", "float32[900x2560]", "--target")
    text = printed(capsys, *command, "opencl:cpu")
    assert text.count("__kernel") == 1 and "float16" in text
    assert "float16" not in printed(capsys, *command, "opencl")


def test_source_of_a_pipeline(folder, capsys):
    text = printed(capsys, "source", "filters.py:stretched", "--types", "float32[9x70]x3", "2.5", "--target", "opencl")
    assert "* 2.5f" in text and "tensorElements = 3" in text


def test_architectures_have_short_names(folder, capsys):
    long, short = (printed(capsys, "source", "filters.py:example", "--target", t) for t in ("cuda:sm_75", "sm_75"))
    assert long == short


def test_where_there_is_no_line_of_the_users(folder, capsys):
    """Errors of the command line itself are in no file."""
    assert main(("source", "filters.py:example", "--target", "cude")) == 1
    message = capsys.readouterr().err
    assert (
        message
        == "gpuop: there is no target 'cude'; one of opencl, opencl:cpu, cuda, or an architecture as in cuda:sm_90\n"
    )


def test_a_file_of_something_else(folder, capsys):
    Path("notes.md").write_text("half = 0.5\n")
    message = refused(capsys, "source", "notes.md:half")
    assert message == "notes.md is not a Python file; write FILE:FUNCTION, as `filters.py:sharpen`"


def test_output_that_cannot_be_written(folder, capsys):
    for output, messages in (("none/f", "there is no such folder"), (".", "this is a folder, not a file")):
        kinds = ("float32[9x70]", "float32[9x70]")
        message = refused(
            capsys, "compile", "filters.py:edges", "--types", *kinds, "--targets", " opencl", "-o", output
        )
        assert messages in message


# --- passes -------------------------------------------------------------------------------------------------------------


def titles(text):
    """The passes that a text has, and those of them that changed something."""
    matches = re.findall(r"^--- after (\w+) \((\w+)\)(: nothing changed)?$", text, re.MULTILINE)
    return [(name, form) for name, form, _ in matches], [name for name, _, unchanged in matches if not unchanged]


def test_passes_of_an_operator(folder, capsys):
    kind = "--types", "int32[9x70]", "2"
    text = printed(capsys, "passes", "filters.py:shifted", *kind, "--target", "opencl")
    assert text.startswith("--- recorded\nkernel shifted [9×70] group None\nin field%0: 9×70 int32\n")
    every, changing = titles(text)
    assert every == [(step.__name__, form.value) for step, form in PIPELINE]
    assert changing[0] == "lower_fields" and changing[-1] == "inline_once" and "widen" not in changing
    assert "read field%0[global.row, global.column+2] clamp" in text.partition("--- after lower_fields")[0]
    assert "min(global.column+2, sub(field%0.columns=70, 1:int))" in text.partition("--- after inline_once")[2]


def test_passes_of_one_name_are_all_printed(folder, capsys):
    command = "passes", "filters.py:shifted", "--types", "float32[9x70]", "2", "--after"
    text = printed(capsys, *command, "simplify")
    assert titles(text) == ([("simplify", "recorded"), ("simplify", "lowered")], ["simplify"] * 2)
    assert "read field%0" in text and "field%0.rowStride=70" in text
    assert titles(printed(capsys, *command, "half_as_float"))[1] == ["half_as_float"]  # though it changes nothing


def test_passes_are_those_of_the_target(folder, capsys):
    def last(target):
        return printed(capsys, "passes", "filters.py:example", "--target", target, "--after", "inline_once")

    assert "div(" in last("cuda:sm_75") and "mul(" in last("cuda:sm_90") and "div(" in last("opencl")
    command = "passes", "filters.py:shifted", "--types", "float32[4096x4096]", "0", "--target"
    wide, narrow = (titles(printed(capsys, *command, target))[1] for target in ("cuda", "opencl"))
    assert "widen" in wide and "widen" not in narrow


def test_passes_of_several_kernels(folder, capsys):
    kinds = "--types", "float32[9x70]", "float32[9x70]"
    text = printed(capsys, "passes", "filters.py:edges", *kinds, "--target", "opencl")
    source = printed(capsys, "source", "filters.py:edges", *kinds, "--target", "opencl")
    assert text.count("--- recorded\n") == text.count("\n\n--- recorded\n") + 1 == source.count("__kernel") > 1


# --- bundles ------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif("sm_70" not in nvrtc.architectures(), reason="no NVRTC for old architectures")
def test_compile_for_several_targets(folder, capsys):
    message = printed(
        capsys, "compile", "filters.py:edges", "--types", "float32[9x70]", "float32[9x70]", "--targets",
        "sm_70,sm_80,sm_90,opencl", "-o", "edges.gpuop",
    )  # fmt: skip
    size = Path("edges.gpuop").stat().st_size
    assert (
        message
        == f"edges.gpuop: edges for cuda:sm_70, cuda:sm_80, cuda:sm_90, opencl (CUDA from sm_70 on), {size} bytes\n"
    )
    assert repr(gp.load_bundle("edges.gpuop")) == (
        "<Bundle edges(image: 9×70 float32, others0: 9×70 float32) for cuda:sm_70, cuda:sm_80, cuda:sm_90, opencl>"
    )


@pytest.mark.parametrize("kind", ["float32[?,?]", "uint8[?1x480]x3", "float32[9x70]x?", "int16[y=?:x=70]", "y=2:x=?"])
def test_extents_that_are_left_open(folder, capsys, kind):
    """Bundles have such."""
    message = refused(capsys, "source", "filters.py:halved", "--types", kind)
    assert message.startswith(
        f"{kind!r} leaves extents open, which `gpuop compile` alone takes: write them all, as float32[480x640]"
    )


def test_question_marks_of_literals(folder, capsys):
    """Question marks of literals are those of texts; what is no type but for them is not taken for one."""
    assert "* 2.5" in printed(capsys, "source", "filters.py:stretched", "--types", "float32[4]x2", "2.5", "'int8[?]'")
    assert "is neither a field's type" in refused(capsys, "source", "filters.py:halved", "--types", "float32[?")


@pytest.mark.skipif("sm_86" not in nvrtc.architectures(), reason="no NVRTC")
def test_named_dimensions(folder, capsys):
    """Of fields, whose bundle takes and gives arrays of them, and by themselves."""
    types = ["float32[img=2:chan=3:y=4:x=5]", "y=1:x=2"]
    text = printed(capsys, "source", "filters.py:moved", "--types", *types, "--target", "cuda")
    assert "moved: 6x4x5 threads" in text
    printed(capsys, "compile", "filters.py:moved", "--types", *types, "--targets", "opencl", "-o", "moved")
    moved, array = gp.load_bundle("moved"), np.arange(120, dtype="f").reshape(2, 3, 4, 5)
    want = array[:, :, [1, 2, 3, 3]][..., [0, 0, 0, 1, 2]]
    with gp.use_device("opencl:0"):
        assert np.array_equal(moved(array), want)
        field = moved(gp.ScalarField(array))
        assert np.array_equal(field.numpy(), want)
    assert str(field.type) == "2×3×4×5 float32 (img:chan:y:x)"
    with pytest.raises(gp.SemanticError, match=r"of shape \(2, 3, 4, 5\), not float32 of shape \(6, 4, 5\)"):
        moved(array.reshape(6, 4, 5))


def test_compile_warns_of_gpus_that_run_nothing(folder, capsys):
    command = ["compile", "filters.py:stretched", "--types", "float32[4]x2", "2.5", "--targets", "sm_86", "-o", "p"]
    assert main(command) == 0
    assert capsys.readouterr().err == (
        "gpuop: warning: sm_80 cannot run it: code for sm_86 is for newer GPUs; add --targets sm_80,…\n"
    )


def test_a_bundle_computes_what_the_function_does(folder, capsys):
    cards = [d.name for d in gp.devices() if d.name.startswith("opencl")]
    a, b = np.random.default_rng(1).integers(-9, 9, (2, 9, 70)).astype("f")
    vectors = np.ones((4, 2), "f")
    types = "--types", "float32[9x70]", "float32[9x70]"
    printed(capsys, "compile", "filters.py:edges", *types, "--targets", "opencl", "-o", "edges")
    printed(capsys, "compile", "filters.py:example", "--targets", "opencl", "-o", "example")
    printed(
        capsys, "compile", "filters.py:stretched", "--types", "float32[4]x2", "2.5", "--targets", "opencl", "-o", "p"
    )
    printed(
        capsys, "compile", "filters.py:swapped", "--types", *["float32[9x70]"] * 3, "--targets", "opencl", "-o", "s"
    )
    for card in cards:
        with gp.use_device(card):
            assert np.array_equal(gp.load_bundle("s")(a, a, b), b - 2 * a)
            padded = np.pad(a, ((0, 0), (1, 1)), mode="edge")
            first, second = gp.load_bundle("edges")(a, others0=b)
            assert np.array_equal(first, padded[:, 2:] - padded[:, :-2] + b) and second == a.max()
            assert np.array_equal(gp.load_bundle("example")(), np.arange(6) / 2)
            assert np.array_equal(gp.load_bundle("p")(vectors), vectors * 2.5)


# --- run ----------------------------------------------------------------------------------------------------------------


def test_run_a_file_and_a_module(folder, capsys):
    message = printed(capsys, "run", "--device", "reference", "script.py", "--border", "wrap")
    assert message == "__main__ ['--border', 'wrap'] reference 7\n"
    assert printed(capsys, "run", "--device", "reference", "beside") == ""
    best = gp.devices()[0].name
    assert printed(capsys, "run", "script.py") == f"__main__ [] {best} 7\n"


# --- errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["source", "filters.py"], "'filters.py' names no function; write FILE:FUNCTION, as `filters.py:sharpen`"),
        (["source", "none.py:f"], "there is no file none.py; write FILE:FUNCTION, as `filters.py:sharpen`"),
        (
            ["source", "filters.py:CONSTANT"],
            ("filters.py has no function of fields 'CONSTANT'; it has shifted, edges, summed, summed_twice, halved, example, "
            "stretched, swapped, coloured, number, wrong, moved"),
        ),
        (["source", "filters.py:number"], "`number` gives an int; name a function that gives a Field, or a tuple of them"),
        (
            ["source", "filters.py:halved"],
            "`halved`: missing a required argument: 'field'; `--types` gives the types of its fields, and its other arguments",
        ),
        (
            ["source", "filters.py:halved", "--types", "float32[3"],
            ("'float32[3' is neither a field's type, as float32[480x640], uint8[480x640]x3, float32[y=480:x=640] or float32[] for "
            "a number on the device, nor dimensions, as y=2:x=2, nor a Python literal, as 0.5 or \"'clamp'\""),
        ),
        (
            ["source", "filters.py:halved", "--types", "float31[3]"],
            ("fields have no dtype 'float31'; one of bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, "
            "float32, float64, complex64, complex128, unorm8"),
        ),
        (
            ["source", "filters.py:example", "--target", "metal"],
            "there is no target 'metal'; one of opencl, opencl:cpu, cuda, or an architecture as in cuda:sm_90",
        ),
        (
            ["compile", "filters.py:example", "--targets", "opencl,metal", "-o", "x"],
            "there is no target 'metal'; one of opencl, opencl:cpu, cuda, or an architecture as in cuda:sm_90",
        ),
        (
            ["compile", "filters.py:coloured", "--types", "uint8[4x5]x3", "--targets", "opencl", "-o", "x"],
            ("pipeline `coloured` converts its array `image`, or makes several fields of it; a bundle takes the arrays of its "
            "fields: name a function of fields"),
        ),
        (
            ["passes", "filters.py:example", "--after", "simplif"],
            "there is no pass 'simplif'; one of resolve_target, drop_asserts, unroll, join_loops, simplify, drop_hints, ",
        ),
        (
            ["passes", "filters.py:example", "--target", "metal"],
            "there is no target 'metal'; one of opencl, opencl:cpu, cuda, or an architecture as in cuda:sm_90",
        ),
        (["passes", "filters.py:half"], "filters.py has no function of fields 'half'; it has shifted, edges, "),
        (["passes", "filters.py:number"], "`number` gives an int; name a function that gives a Field, or a tuple of them"),
        (["passes", "filters.py:halved", "--types", "float31[3]"], "fields have no dtype 'float31'; one of bool, int8, "),
        (["run", "none.py"], "there is no file or module none.py; give a path, as `gpuop run examples/unsharp.py`"),
        (["run", "no_such_module"], "there is no file or module no_such_module; give a path, as `gpuop run examples/unsharp.py`"),
        (["run", "--device", "none", "script.py"], "there is no device 'none'; found: "),
    ],
)  # fmt: skip
def test_messages(folder, capsys, arguments, message):
    assert refused(capsys, *arguments).startswith(message)
    assert not (folder / "x").exists()


def test_an_error_names_the_line_of_the_file(folder, capsys):
    assert main(["source", "filters.py:wrong", "--types", "float32[4]"]) == 1
    assert 'filters.py:62\n    return halved(field + "x")\n' in capsys.readouterr().err


@pytest.mark.parametrize("which", [device.name for device in gp.devices()])
def test_devices_are_measured_anew(which, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(config, "cache", tmp_path)
    monkeypatch.setattr(device_facts, "_facts", {})
    monkeypatch.setattr(device_facts, "COPIED", {"cpu": (2**18,), "gpu": (2**18,)})
    monkeypatch.setattr(device_facts, "COMPUTED", {"cpu": 1024, "gpu": 1024})
    monkeypatch.setattr(devices_command, "FUNCTIONS", ("exp",))
    monkeypatch.setattr(devices_command, "examined", lambda: [result for result in examined() if result.name == which])
    assert main(["devices", "--measure"]) == 0
    printed = capsys.readouterr().out
    if which == "reference":
        assert "\n    nothing is predicted of it\n" in printed
        return
    number = r"[\d.e+-]+"
    assert re.search(rf"\n    {number} GB/s in copies of 2 MiB; a launch takes {number} µs\n", printed)
    assert re.search(
        f"\n    {number} billion operations on float32 a second; reading a neighbour takes as long as {number} of them\n",
        printed,
    )
    vectors = re.search(rf"\n    {number} billion in vectors\n", printed)
    assert (vectors is None) == (gp.device(which).target.device == "gpu")
    assert re.search(rf"\n    of float32: exp {number}\n    of float64: exp {number}\n", printed)
    assert len({name for _, name in device_facts._facts} & {"base", "exp float32", "exp float64"}) == 3
