"""Bundles: what `gpuop compile` writes runs as what it was made of, with nothing recorded or planned. NumPy expects it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.engine.bundles import reading
from gpuop.engine.bundles.architectures import holes
from gpuop.engine.bundles.bundle import save_bundle
from gpuop.ir.target import Target
from gpuop.ir.values import Leaf
from gpuop.runtime.cuda import nvrtc
from tests.fuzz import files

CARDS = [d.name for d in gp.devices() if d.name != "reference"]
OPENCL = [card for card in CARDS if card.startswith("opencl")]
needs_a_device = pytest.mark.skipif(not CARDS, reason="no device but the reference works")
needs_nvrtc = pytest.mark.skipif(not nvrtc.architectures(), reason="NVRTC is not installed")
each_device = pytest.mark.parametrize("card", CARDS)
rng = np.random.default_rng(3)
CUDA = [str(gp.device(card).target) for card in CARDS if card.startswith("cuda")]  # the architectures that are here
TARGETS = ("opencl", *(dict.fromkeys(CUDA) or ["cuda:sm_90"])) if nvrtc.architectures() else ("opencl",)


@gp.operator
def left(field):
    return _readTensor(field, _row, _column - 1, border="wrap")


@gp.operator
def by_target(field):
    x = _var(_readTensor(field))
    with _codegenIf(_target.backend == "cuda"):
        x += 1000
    with _codegenElse():
        x += 1
    return x


def floats(*shape: int) -> Any:
    return rng.integers(-99, 100, shape).astype(np.float32)


def saved(path: Path, function: Callable[..., Any], *types: gp.FieldType, targets: tuple[str, ...] = TARGETS) -> Path:
    """A bundle of a function of fields."""
    fields = {f"f{k}": gp.Field.of(Leaf(kind)) for k, kind in enumerate(types)}
    save_bundle(path, function.__name__, fields, function(*fields.values()), [target_named(t) for t in targets])
    return path


@contextmanager
def nothing_recorded() -> Iterator[None]:
    """Whoever records, plans, lowers or prints meanwhile fails."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("this is done when the bundle is made")

    with pytest.MonkeyPatch.context() as patch:
        for place in (
            "dsl.recorder.recorder.Recorder.__init__",
            "fusion.register_split.splice",
            "passes.pipeline.lower",
            "codegen.generate.generate",
            "runtime.base.compiled.generate",
        ):
            patch.setattr(f"gpuop.{place}", refuse)
        yield


def added(card: str) -> int:
    """The entries that `by_target` adds on a device."""
    return 1000 if card.startswith("cuda") else 1


def several_kernels(a: gp.Field, b: gp.Field) -> tuple[gp.Field, gp.Field]:
    moved = left(by_target(a) * b.sum())
    return left(moved).max(axis=1), moved


def expected(card: str, a: Any, b: Any) -> tuple[Any, Any]:
    moved = np.roll((a + added(card)) * b.sum(), 1, 1)
    return np.roll(moved, 1, 1).max(axis=1), moved


# --- running ------------------------------------------------------------------------------------------------------------


@each_device
def test_arrays_in_arrays_out(card: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "f.gpuop", several_kernels, gp.FieldType((20, 33)), gp.FieldType((7,)))
    loaded = gp.load_bundle(path)
    assert (loaded.name, loaded.targets) == ("several_kernels", TARGETS)
    assert loaded.types == {"f0": gp.FieldType((20, 33)), "f1": gp.FieldType(7)}
    with gp.use_device(card), nothing_recorded():
        for a, b in ((floats(20, 33), floats(7)), (floats(20, 33), floats(7))):
            for result, want in zip(loaded(a, f1=b), expected(card, a, b), strict=True):
                assert np.array_equal(result, want) and result.dtype == want.dtype


@each_device
def test_fields_in_fields_out(card: str, tmp_path: Path) -> None:
    loaded = gp.load_bundle(saved(tmp_path / "f.gpuop", several_kernels, gp.FieldType((20, 33)), gp.FieldType((7,))))
    a, b = floats(20, 33), floats(7)
    with gp.use_device(card):
        results = loaded(left(gp.ScalarField(a)), gp.ScalarField(b))  # as a field that is to be computed
        assert [r.type for r in results] == [gp.FieldType(20), gp.FieldType((20, 33))]
        following = (results[1] * 2).numpy()
    assert np.array_equal(following, expected(card, np.roll(a, 1, 1), b)[1] * 2)


@each_device
def test_every_type_goes_through(card: str, tmp_path: Path) -> None:
    kinds = [
        gp.FieldType((3, 5), (), "uint8"), gp.FieldType(6, 3, "int16"), gp.FieldType((2, 3, 4), (2, 2), "float32"),
        gp.FieldType((), (), "int64"), gp.FieldType(4, (), "bool"), gp.FieldType(5, (), "complex64"), gp.FieldType(5, 4, "unorm8"),
        gp.FieldType((0, 4), (), "float32"), gp.FieldType(3, 9, "float16"),
    ]  # fmt: skip

    def same(*fields: gp.Field) -> tuple[gp.Field, ...]:
        return tuple(copied(f) for f in fields)

    copied = gp.operator(lambda f: _readTensor(f))
    big = gp.operator(outputs=lambda f: f.type)(_copy_elements)
    small = [k for k in kinds if not gp.is_big_tensor(k)]
    arrays = {k: rng.integers(0, 2, k.array_shape).astype("uint8" if k.dtype == "unorm8" else k.dtype) for k in kinds}
    loaded = gp.load_bundle(saved(tmp_path / "f.gpuop", same, *small))
    other = gp.load_bundle(saved(tmp_path / "g.gpuop", lambda f: big(f), kinds[-1]))
    with gp.use_device(card):
        for kind, result in zip(small, loaded(*(arrays[k] for k in small)), strict=True):
            if result.dtype == arrays[kind].dtype:
                assert np.array_equal(result, arrays[kind])
            else:  # a value that was read is of another type
                assert (kind.dtype, result.dtype.name) in (("unorm8", "float32"), ("complex64", "float32"))
        assert np.array_equal(other(arrays[kinds[-1]]), arrays[kinds[-1]])


def _copy_elements(field):
    with _forEachTensorElement(field.tensor_shape):
        _writeTensorElement(_out0, _readTensorElement(field))


@each_device
def test_what_is_captured_is_constant(card: str, tmp_path: Path) -> None:
    weights, gain = gp.ScalarField(floats(4, 6)), gp.Parameter(2.5)

    def weighted(f: gp.Field) -> tuple[gp.Field, gp.Field, gp.Field]:
        return f * weights * gain, f, gain + 0

    path = saved(tmp_path / "f.gpuop", weighted, gp.FieldType((4, 6)))
    gain.set(7.0)
    a = floats(4, 6)
    with gp.use_device(card):
        product, same, number = gp.load_bundle(path)(a)
    assert np.array_equal(product, a * weights.numpy() * np.float32(2.5))
    assert np.array_equal(same, a) and number == 2.5


@each_device
def test_a_function_without_arguments(card: str, tmp_path: Path) -> None:
    a = floats(4, 6)
    path = saved(tmp_path / "f.gpuop", lambda: by_target(gp.ScalarField(a)))
    with gp.use_device(card):
        assert np.array_equal(gp.load_bundle(path)(), a + added(card))


@each_device
def test_an_argument_that_nothing_needs(card: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "f.gpuop", lambda a, b: by_target(b), gp.FieldType(3), gp.FieldType(5))
    b = floats(5)
    with gp.use_device(card):
        assert np.array_equal(gp.load_bundle(path)(floats(3), b), b + added(card))


@each_device
def test_iterations(card: str, tmp_path: Path) -> None:
    step = gp.FieldType(())

    def grown(f: gp.Field, by: gp.Field) -> tuple[gp.Field, ...]:
        some = gp.iterate(lambda u: left(u) + by, f, times=5)
        many = gp.iterate(lambda u: by_target(u), f, until=lambda u: u.max() >= 300, every=4)
        return some, many, gp.iterate(lambda u, v: (v, u), (some, many), times=3)[0] * 2

    loaded = gp.load_bundle(saved(tmp_path / "f.gpuop", grown, gp.FieldType((4, 6)), step))
    a = floats(4, 6)
    some, many = np.roll(a, 5, 1) + 15, a.copy()
    while many.max() < 300:
        many += 4 * added(card)
    with gp.use_device(card), nothing_recorded():
        for result, want in zip(loaded(a, np.array(3, "f")), (some, many, many * 2), strict=True):
            assert np.array_equal(result, want)


@each_device
def test_scattered_outputs_start_from_their_default(card: str, tmp_path: Path) -> None:
    @gp.operator(default=-1.5)
    def diagonal(f):
        with _if(_row == _column):
            _writeTensor(_out0, _readTensor(f), _row, 0)

    a = floats(4, 6)
    path = saved(tmp_path / "f.gpuop", lambda f: diagonal(f), gp.FieldType((4, 6)))
    expected = np.full_like(a, -1.5)
    expected[:, 0] = a.diagonal()
    with gp.use_device(card):
        assert np.array_equal(gp.load_bundle(path)(a), expected)


# --- files --------------------------------------------------------------------------------------------------------------


@needs_nvrtc
def test_binaries_and_texts(tmp_path: Path) -> None:
    path = saved(tmp_path / "f.gpuop", by_target, gp.FieldType(5), targets=("cuda:sm_75", "cuda:sm_90", "opencl"))
    with zipfile.ZipFile(path) as archive:
        assert sorted(n for n in archive.namelist() if n != "bundle.json") == [
            "cuda_sm_75/0.cubin", "cuda_sm_75/0.ptx", "cuda_sm_75/0.text", "cuda_sm_90/0.cubin", "cuda_sm_90/0.ptx",
            "cuda_sm_90/0.text", "opencl/0.text",
        ]  # fmt: skip
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert b".target sm_75" in archive.read("cuda_sm_75/0.ptx")
        assert archive.read("cuda_sm_75/0.cubin")[:4] == archive.read("cuda_sm_90/0.cubin")[:4] == b"\x7fELF"
        assert b".target sm_90" in archive.read("cuda_sm_90/0.ptx") and archive.read("cuda_sm_90/0.ptx")[-1] == 0
        assert b"1000.0f" in archive.read("cuda_sm_75/0.text") and b"1000.0f" not in archive.read("opencl/0.text")
        head = json.loads(archive.read("bundle.json"))
    (step,) = head["targets"]["opencl"]["steps"]
    assert step["entry"] == "gpuop_by_target" and step["threads"] == [8, 1, 1]
    assert (step["inputs"], step["outputs"]) == ([0], [1])


def test_equal_bundles_are_equal_files(tmp_path: Path) -> None:
    first, second = (saved(tmp_path / name, by_target, gp.FieldType(5)) for name in "ab")
    assert first.read_bytes() == second.read_bytes()


@needs_nvrtc
def test_threads_that_have_several_points(tmp_path: Path) -> None:
    """The kernel's grid is a row of points there, its fields are not."""
    path = saved(tmp_path / "f.gpuop", by_target, gp.FieldType((512, 512)), targets=("cuda:sm_90",))
    (step,) = reading.read(path).code["cuda:sm_90"].launches
    (param,) = step.kernel.inputs
    assert param.type.field_shape == (512, 512)
    assert np.prod(step.kernel.source.threads) < 512 * 512


CHOSEN = {  # by what a bundle is made for: what devices get
    (75, 80, 90): {75: "75 cubin", 80: "80 cubin", 86: "80 cubin", 90: "90 cubin", 100: "90 ptx", 120: "90 ptx"},
    (75, 90): {75: "75 cubin", 80: "75 ptx", 86: "75 ptx", 89: "75 ptx", 90: "90 cubin", 120: "90 ptx"},
    (80, 86): {80: "80 cubin", 86: "86 cubin", 87: "86 cubin", 89: "86 cubin", 90: "86 ptx"},
}


@needs_nvrtc
@pytest.mark.parametrize("values", CHOSEN, ids=str)
def test_the_code_for_a_device(values: tuple[int, ...], tmp_path: Path) -> None:
    """No architecture from the oldest on is left without any."""
    path = saved(tmp_path / "f.gpuop", by_target, gp.FieldType(5), targets=tuple(f"cuda:sm_{n}" for n in values))
    contents = reading.read(path)
    results = {}
    for architecture in CHOSEN[values]:
        (step,) = reading.plan_on(contents, Target("cuda", architecture)).launches
        (code,) = (n for n in values if any(step.kernel is kernel for kernel in kernels_for(contents, n)))
        kind = "cubin" if step.kernel.binary.startswith(b"\x7fELF") else "ptx"
        assert kind == "cubin" or f".target sm_{code}".encode() in step.kernel.binary
        results[architecture] = f"{code} {kind}"
    assert results == CHOSEN[values]


HOLES = {
    (75, 90): [
        "sm_70, sm_72 cannot run it: code for sm_75 is for newer GPUs; add --targets sm_70,…",
        "sm_80, sm_86, sm_87, sm_88, sm_89 run PTX of sm_75, which their driver compiles at the first call; add --targets sm_80,…",
    ],
    (86, 89): ["sm_80 cannot run it: code for sm_86 is for newer GPUs; add --targets sm_80,…"],
    (80, 90): [],
    (): [],
}


@pytest.mark.parametrize("values", HOLES, ids=str)
def test_gpus_without_machine_code(values: tuple[int, ...]) -> None:
    assert list(holes(values)) == HOLES[values]


def kernels_for(contents: reading.Contents, architecture: int) -> list[Any]:
    plans = contents.code[f"cuda:sm_{architecture}"], contents.portable[architecture]
    return [step.kernel for plan in plans for step in plan.launches]


@needs_nvrtc
def test_no_code_for_a_device(tmp_path: Path) -> None:
    contents = reading.read(
        saved(tmp_path / "f.gpuop", by_target, gp.FieldType(5), targets=("cuda:sm_80", "cuda:sm_90"))
    )
    for target, form in ((Target("opencl"), "opencl"), (Target("cuda", 75), "sm_75")):
        with pytest.raises(gp.DeviceError) as caught:
            reading.plan_on(contents, target)
        assert str(caught.value) == (
            f"bundle `by_target` has no code for {target}: it has cuda:sm_80, cuda:sm_90; "
            f"add it with `gpuop compile --targets {form},…`"
        )


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "f.gpuop", by_target, gp.FieldType(5))
    before = path.read_bytes()

    def fails(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fails)
    with pytest.raises(OSError, match="no space left"):
        saved(path, by_target, gp.FieldType(6))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# --- errors -------------------------------------------------------------------------------------------------------------


def refused(error: type[gp.GpuopError], action: Callable[[], Any]) -> str:
    with pytest.raises(error) as caught:
        action()
    return str(caught.value).partition("\n")[0]


@pytest.mark.skipif(not OPENCL, reason="no OpenCL driver that works")
def test_bundles_compute_when_they_are_called(tmp_path: Path) -> None:
    """As parts of a graph they would have been computed once, and their values kept."""
    loaded = gp.load_bundle(saved(tmp_path / "f", by_target, gp.FieldType(5), targets=("opencl",)))
    first = "bundle `by_target` computes when it is called, so it cannot be a part of a ComputeGraph, a pipeline or an iteration"
    with gp.use_device(OPENCL[0]):
        with gp.ComputeGraph() as graph:
            state = gp.ScalarField(np.ones(5, np.float32))
            assert refused(gp.SemanticError, lambda: loaded(state)).startswith(first)
            state.next = state * gp.ScalarField(loaded(np.ones(5, np.float32)))
        graph.step()
        assert refused(
            gp.SemanticError, lambda: gp.pipeline(lambda a: loaded(gp.Field(a)))(np.ones(5, "f"))
        ).startswith(first)
        assert refused(gp.SemanticError, lambda: gp.iterate(loaded, state, times=3).numpy()).startswith(first)


@pytest.mark.skipif(not OPENCL, reason="no OpenCL driver that works")
def test_numbers_of_0D_fields(tmp_path: Path) -> None:
    types = gp.FieldType(5), gp.FieldType((), (), "uint8")
    loaded = gp.load_bundle(saved(tmp_path / "f", lambda f, g: f * g, *types, targets=("opencl",)))
    with gp.use_device(OPENCL[0]):
        for three in (3, 3.0, np.float32(3), np.int64(3), np.uint8(3)):
            assert loaded(np.ones(5, np.float32), three).tolist() == [3] * 5
        refused(gp.SemanticError, lambda: loaded(np.ones(5, np.float32), np.float32(2.5)))
        message = refused(gp.SemanticError, lambda: loaded(np.ones(5, np.float32), 300))
    assert message.startswith("argument `f1` of bundle `<lambda>` is a 0D uint8 field") and message.endswith("one type")


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    good = saved(tmp_path / "good", by_target, gp.FieldType(5)).read_bytes()
    path = tmp_path / "bad"
    folder = refused(gp.SemanticError, lambda: gp.load_bundle(tmp_path))
    assert folder == f"{tmp_path} is a folder; name the file that `gpuop compile` wrote"
    assert (
        refused(gp.SemanticError, lambda: gp.load_bundle(path))
        == f"there is no file {path}; `gpuop compile` writes bundles"
    )
    for data in (b"", b"hello", good[: len(good) // 2]):
        path.write_bytes(data)
        message = refused(gp.SemanticError, lambda: gp.load_bundle(path))
        assert message == f"{path} is not a bundle that `gpuop compile` wrote, or it is cut off"
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    message = refused(gp.SemanticError, lambda: gp.load_bundle(tmp_path / "other.npz"))
    assert message == f"{tmp_path / 'other.npz'} is a zip file, but no bundle that `gpuop compile` wrote"
    at = good.index(b"opencl/0.text") + 40
    path.write_bytes(good[:at] + bytes(b ^ 0xFF for b in good[at : at + 8]) + good[at + 8 :])
    message = refused(gp.SemanticError, lambda: gp.load_bundle(path))
    assert message.startswith(f"{path} is damaged: ") and message.endswith("; write it anew with `gpuop compile`")


def changed(path: Path, change: Callable[[Any], Any], digest: bool = True) -> Path:
    """The bundle with another head, as one who means it would write it, or without the digest of that."""
    members = files.unzipped(path.read_bytes())
    head = files.BUNDLES.read(members)
    change(head)
    path.write_bytes(files.zipped(files.BUNDLES.put(members, json.dumps(head), digest)))
    return path


def setting(*path: Any) -> Callable[[Any], Any]:
    """Sets what is at all but the last of the path to the last."""
    return lambda head: files.at(head, path[:-2]).__setitem__(path[-2], path[-1])


STEP = ("targets", "opencl", "steps", 0)
SECOND = ("targets", "opencl", "steps", 1)
REPEAT = (*SECOND, "repeat")
WRONG_HEADS = {
    "has version 9 of the format, and this gpuop reads version 5; write it anew": setting("version", 9),
    "`version` is 'two', not an integer from 0 to": setting("version", "two"),
    "not an object of format, version": setting("more", 1),
    "`arguments[0][2]`: fields have no dtype 'float31'": setting("arguments", 0, 2, 2, "float31"),
    "`arguments[0][2][2]` is 'single', not 'float32'": setting("arguments", 0, 2, 2, "single"),
    "`arguments[0][2][0][0]` is -5, not an integer": setting("arguments", 0, 2, 0, 0, -5),
    "`arguments[0][0]` is 'class; import os', not a Python identifier": setting("arguments", 0, 0, "class; import os"),
    "`arguments[0][0]` is 'lambda', not a Python identifier": setting("arguments", 0, 0, "lambda"),
    "`arguments` is a list, not arguments of different names": setting("arguments", 1, 0, "f0"),
    "arguments and constants are the same values": setting("arguments", 1, 1, 0),
    "`constants[0]` is a 4×6 float32 field, which is not passed by value": setting("constants", 0, 2, True),
    "constants/9.npy": setting("constants", 0, 0, 9),
    "constants/4.npy is float32 of shape (4, 6), for a 4×7 float32 field": setting("constants", 0, 1, 0, 1, 7),
    "`several` is None, not true or false": setting("several", None),
    "gives 2 results": setting("several", False),
    "there is no target 'metal'": lambda head: head["targets"].update(metal=head["targets"]["opencl"]),
    "`targets` is a dict, not the code of a target": setting("targets", {}),
    "has 4×6 float32 for value 0, which is": setting("arguments", 0, 2, 0, 0, 5),
    "has value 99, which nothing has computed before": setting(*STEP, "inputs", 0, 99),
    "are no new values with types": setting(*STEP, "outputs", [0]),
    "passes other values than its kernel takes": lambda head: files.at(head, STEP)["arguments"].pop(),
    "`targets.opencl.steps[0].threads` is a list, not an array of 3": setting(*STEP, "threads", [8, 1]),
    "steps[0].threads[0]` is -1, not an integer from 0": setting(*STEP, "threads", 0, -1),
    "steps[0].threads` are none, and there is something to write": setting(*STEP, "threads", [0, 0, 0]),
    "not whole groups of": setting(*STEP, "threads", 0, 9),
    "steps[0].group[0]` is 0, not an integer from 1": setting(*STEP, "group", 0, 0),
    "steps[0].fills.9` is 1, not what an output holds": setting(*STEP, "fills", {"9": 1}),
    "`targets.opencl.steps[0].fills` is a dict, not an object whose names are numbers": setting(
        *STEP, "fills", {"x": 1}
    ),
    "steps[0].entry` is 'gone', not the name of a function of its text": setting(*STEP, "entry", "gone"),
    "`targets.opencl.steps[0].needs[0]` is 5, not a text": setting(*STEP, "needs", [5]),
    "steps[1].repeat.times` is 0, not an integer from 1": setting(*REPEAT, "times", 0),
    "steps[1].repeat.every` is 0, not an integer from 1": setting(*REPEAT, "every", 0),
    "steps[1].repeat` never ends": lambda head: files.at(head, REPEAT).update(times=None, until=None),
    "turn.given.0` is 7, not an integer from 0 to": lambda head: files.at(head, (*REPEAT, "turn")).update(
        given={"0": 7}
    ),
    "until` does not give a number": lambda head: files.at(head, (*REPEAT, "until", "plan", "wanted")).clear(),
}


def turning(f: gp.Field, by: gp.Field) -> tuple[gp.Field, gp.Field]:
    weights = gp.ScalarField(np.arange(24, dtype=np.float32).reshape(4, 6))
    return gp.iterate(lambda u: u + weights, left(f * by), until=lambda u: u.max() > 9, times=5), by_target(f)


@pytest.fixture(scope="module")
def turning_bundle(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("bundle") / "f"
    return saved(path, turning, gp.FieldType((4, 6)), gp.FieldType((4, 6)), targets=("opencl",)).read_bytes()


@pytest.mark.parametrize("message", WRONG_HEADS)
def test_what_a_head_cannot_say(message: str, turning_bundle: bytes, tmp_path: Path) -> None:
    """Found when it is loaded, though its digest fits."""
    path = tmp_path / "b"
    path.write_bytes(turning_bundle)
    text = refused(gp.SemanticError, lambda: gp.load_bundle(changed(path, WRONG_HEADS[message])))
    assert message in text
    assert "damaged" in text or "version" in text


def test_a_head_that_is_not_the_one_that_was_written(turning_bundle: bytes, tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.write_bytes(turning_bundle)
    message = refused(
        gp.SemanticError, lambda: gp.load_bundle(changed(path, setting(*REPEAT, "times", 6), digest=False))
    )
    assert message == f"{path} is damaged: it does not hold what was written; write it anew with `gpuop compile`"


@pytest.mark.skipif(not OPENCL, reason="no OpenCL driver that works")
@pytest.mark.parametrize(
    ("old", "new"),
    [("__global float *restrict out0", ""), ("__global const float *restrict f", "const float f"), (";", "")],
)
def test_a_text_that_takes_other_arguments(old: str, new: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "f", left, gp.FieldType((4, 6)), targets=("opencl",))
    members = files.unzipped(path.read_bytes())
    text = members["opencl/0.text"].decode()
    assert old in text
    members["opencl/0.text"] = text.replace(old, new, 1).encode()
    path.write_bytes(files.zipped(members))
    loaded = gp.load_bundle(changed(path, lambda head: None))
    with gp.use_device(OPENCL[0]), pytest.raises(gp.CompileError, match=r"refused the kernel gpuop_left:"):
        loaded(floats(4, 6))


@needs_a_device
def test_wrong_arguments(tmp_path: Path) -> None:
    loaded = gp.load_bundle(
        saved(tmp_path / "f.gpuop", several_kernels, gp.FieldType((2, 3)), gp.FieldType(4, 2, "uint8"))
    )
    a, b = floats(2, 3), np.ones((4, 2), np.uint8)

    def said(*args: Any) -> str:
        return refused(gp.SemanticError, lambda: loaded(*args))

    with gp.use_device(CARDS[0]):
        first = "argument `f0` of bundle `several_kernels` is a 2×3 float32 field, or an array of float32 of shape (2, 3), not "
        assert said(floats(2, 4), b) == first + "float32 of shape (2, 4); bundles are made for one type"
        assert said(a.astype("d"), b) == first + "float64 of shape (2, 3); bundles are made for one type"
        assert said(gp.VectorField(a), b) == first + "a 2 float32[3] field; bundles are made for one type"
        assert said([1, 2], b) == first + "a list; bundles are made for one type"
        assert said(a) == "bundle `several_kernels`: missing a required argument: 'f1'"
        assert said(gp.ScalarField(a), b) == "bundle `several_kernels` gets Fields and arrays; give it one of them"


def test_the_reference_runs_no_bundle(tmp_path: Path) -> None:
    loaded = gp.load_bundle(saved(tmp_path / "f.gpuop", by_target, gp.FieldType(5)))
    with gp.use_device("reference"):
        message = refused(gp.DeviceError, lambda: loaded(floats(5)))
    assert message == "reference interprets what was recorded, which is not in a bundle; use a device of OpenCL or CUDA"


def test_what_runs_on_the_host_is_refused(tmp_path: Path) -> None:
    kind = gp.FieldType(5)
    message = refused(
        gp.SemanticError, lambda: saved(tmp_path / "f", lambda f: gp.HostOperator(np.sort, f, outputs=kind), kind)
    )
    assert message == "a bundle holds kernels, and `sort` runs on the host"


@needs_nvrtc
def test_an_architecture_that_the_compiler_has_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    message = refused(
        gp.DeviceError, lambda: saved(tmp_path / "f", by_target, gp.FieldType(5), targets=("cuda:sm_30",))
    )
    assert message.startswith("NVRTC does not compile for sm_30, and there is no nvcc that does; it knows sm_")
    assert message.endswith("nvidia-cuda-nvrtc-cu12` brings one for older GPUs") == (
        "sm_70" not in nvrtc.architectures()
    )
    assert not list(tmp_path.iterdir())


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(nvrtc, "_compilers", dict)
    message = refused(gp.DeviceError, lambda: saved(tmp_path / "f", by_target, gp.FieldType(5), targets=("cuda",)))
    assert message == (
        "CUDA needs NVRTC, which is not installed: `pip install nvidia-cuda-nvrtc`, or install the CUDA toolkit"
    )


@pytest.mark.skipif(not OPENCL, reason="no OpenCL driver that works")
def test_a_device_without_doubles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = gp.load_bundle(saved(tmp_path / "f", by_target, gp.FieldType(5, (), "float64"), targets=("opencl",)))
    with gp.use_device(OPENCL[0]) as backend:
        monkeypatch.setattr(backend, "features", set())
        message = refused(gp.DeviceError, lambda: loaded(np.ones(5)))
    assert "computes with double, which" in message
