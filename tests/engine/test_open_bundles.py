"""Bundles of extents that come with each call: `gpuop compile --types "float32[?,?]"`. NumPy expects the values."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.__main__ import main
from gpuop.runtime.cuda import nvrtc

from .test_bundles import CARDS, CUDA, changed, nothing_recorded, setting

FILTERS = """
import gpuop as gp
from gpuop.dsl import *


def chain(f):
    return below(turned(f)) * 2, abs(f)


@gp.operator
def turned(f):
    return _readTensor(f, _rows - 1 - _row, _columns - 1 - _column)


@gp.operator
def below(f):
    return _readTensor(f, _row + 1, _column - 2, border="reflect") - _readTensor(f, _row, _column + 1)


@gp.pipeline
def filtered(image, weights):
    f, w = gp.ScalarField(image), gp.ScalarField(weights)
    return weighted(f, w)


@gp.operator
def weighted(f, w):
    return sum(_readTensor(f, _row, _column + k - 1) * _readTensor(w, k) for k in range(3))


@gp.operator
def gathered(f, rows):
    return _readTensor(f, _readTensor(rows), _column)


def doubled(f):
    return f * 2


def first(f, unused):
    return f * 2


def counted(f):
    return f * f.field_shape[0]


def constant(f):
    return f * gp.ScalarField([f.field_shape[1]])


def cut(f):
    return f[1:]


@gp.operator
def neighbours(f):
    _localThreads(64, whole_groups=True)
    kept = _local(_floatArray(_localColumns))
    kept[_localColumn] = _readTensor(f)
    _syncThreadsLocal()
    _writeTensor(_out0, kept[_localColumn ^ 1] + _readTensor(f))
"""
TARGETS = ",".join(["opencl", "opencl:cpu", *dict.fromkeys(CUDA)])
each_device = pytest.mark.parametrize("card", CARDS)
rng = np.random.default_rng(23)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("crops.py").write_text(FILTERS)
    return tmp_path


def compiled(name: str, *types: str, targets: str = TARGETS) -> gp.Bundle:
    assert main(["compile", f"crops.py:{name}", "--types", *types, "--targets", targets, "-o", "b"]) == 0
    return gp.load_bundle("b")


def ints(*shape: int, dtype: str = "float32") -> Any:
    return rng.integers(0, 100, shape).astype(dtype)


def below(x: Any) -> Any:
    down = np.pad(x, ((0, 1), (2, 0)), "reflect")[1:, :-2]
    return down - np.pad(x, ((0, 0), (0, 1)), "edge")[:, 1:]


# --- running ------------------------------------------------------------------------------------------------------------


@each_device
def test_arrays_of_all_sizes(card: str, folder: Path) -> None:
    loaded = compiled("chain", "float32[?,?]")
    assert loaded.types == {"f": "?0×?1 float32"}
    with gp.use_device(card), nothing_recorded():
        for shape in ((40, 55), (129, 36), (64, 64), (90, 301), (40, 55)):
            x = ints(*shape)
            first, second = loaded(x)
            assert np.array_equal(first, below(x[::-1, ::-1]) * 2) and np.array_equal(second, x)


@each_device
def test_pipelines_and_extents_that_are_known(card: str, folder: Path) -> None:
    loaded = compiled("filtered", "float32[?x?]", "float32[3]")
    assert loaded.types == {"image": "?0×?1 float32", "weights": gp.FieldType(3)}
    with gp.use_device(card), nothing_recorded():
        for shape in ((70, 81), (41, 200)):
            x, w = ints(*shape), ints(3)
            y = np.pad(x, ((0, 0), (1, 1)), "edge")
            assert np.array_equal(loaded(x, w), y[:, :-2] * w[0] + y[:, 1:-1] * w[1] + y[:, 2:] * w[2])


@each_device
def test_extents_that_are_equal(card: str, folder: Path) -> None:
    """A gather; extents of one number are those of both arguments, in other processes too."""
    loaded = pickle.loads(pickle.dumps(compiled("gathered", "float32[?1,?2]", "int32[?1x?2]")))
    with gp.use_device(card):
        for shape in ((40, 50), (100, 300)):
            x, rows = ints(*shape), ints(*shape, dtype="int32")
            assert np.array_equal(loaded(x, rows), x[np.minimum(rows, shape[0] - 1), np.arange(shape[1])])
        with pytest.raises(gp.SemanticError) as caught:
            loaded(ints(40, 50), ints(40, 60, dtype="int32"))
    assert caught.value.message == (
        "bundle `gathered`: extent ?1 must be the same everywhere: it is 50 in `f` and 60 in `rows`"
    )


@each_device
def test_fields_and_their_dimensions(card: str, folder: Path) -> None:
    """Of which kernels take the first together; what was large while it was compiled may be small."""
    loaded = compiled("doubled", "uint8[img=?:chan=3:y=20:x=?]x2")
    with gp.use_device(card):
        for images, columns in ((9, 40), (20, 33)):
            x = ints(images, 3, 20, columns, 2, dtype="uint8")
            field = loaded(gp.VectorField(x, dims="img:chan:y:x:"))
            assert str(field.type) == f"{images}×3×20×{columns} uint8[2] (img:chan:y:x:_)"
            assert np.array_equal((field + 1).numpy(), x * 2 + 1)


# --- files --------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif("sm_90" not in nvrtc.architectures(), reason="no NVRTC")
def test_kernels_are_stored_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As one text and its binaries, which gets its extents."""
    compiled("chain", "float32[?,?]", targets="opencl,opencl:cpu,sm_90")
    assert "b: chain for extents from 19 to 46338 for opencl, opencl:cpu, cuda:sm_90 (" in capsys.readouterr().out
    with zipfile.ZipFile("b") as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".text")}
    assert all("const int rows" in text and "1009" not in text.rpartition("\n//")[0] for text in texts.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (setting("version", 4), "has version 4 of the format, and this gpuop reads version 5; write it anew"),
        (setting("sizes", [7, 8, 9, 10]), "`sizes` is a list, not the extents that arguments have"),
        (setting("arguments", 0, 2, 0, 0, "open", []), "has 307×311 float32 for value 0, which is 1×311 float32"),
        (
            setting("arguments", 1, 2, 0, 0, "factor", 2),
            "[0]` is a dict, not a number, or an extent that arguments have",
        ),
        (setting("arguments", 1, 2, 0, 0, "open", [0, 1]), "open` is a list, not an array of 1"),
        (setting("range", [5]), "`range` is a list, not an array of 2"),
        (setting("arguments", 0, 2, 0, 0, "open", [9]), "open[0]` is 9, not an integer from 0 to 2"),
        (
            setting("arguments", 0, 2, 0, 0, "factor", 2),
            "has 307×311 float32 for value 0, which is 614×311 float32",
        ),
        (
            setting("targets", "opencl", "steps", 0, "threads", 0, "multiple", 0),
            "multiple` is 0, not an integer from 1",
        ),
        (setting("targets", "opencl", "steps", 0, "extents", [-1]), "extents[0]` is -1, not an integer from 0"),
    ],
)
def test_what_a_head_cannot_say(change: Any, message: str, folder: Path) -> None:
    compiled("first", "float32[?,?]", "uint8[?]", targets="opencl")
    with pytest.raises(gp.SemanticError) as caught:
        gp.load_bundle(changed(Path("b"), change))
    assert message in str(caught.value)


# --- errors -------------------------------------------------------------------------------------------------------------


def test_wrong_arguments(folder: Path) -> None:
    loaded = compiled("doubled", "float32[?,?]", targets="opencl")
    expected = "argument `f` of bundle `doubled` is ?0×?1 float32, an array or a Field, not "
    for wrong, messages in (
        (ints(20), f"{expected}of shape (20,)"),
        (gp.ScalarField(ints(2, 3, 40)), f"{expected}of shape (2, 3, 40)"),
        ([[1.0]], f"{expected}a list"),
        (3.0, f"{expected}a float"),
        (
            ints(20, 30, dtype="int32"),
            "argument `f` of bundle `doubled` is a 20×30 float32 field, or an array of float32",
        ),
        (ints(20, 1), "bundle `doubled` is made for extents from 3 to 32750 where they are open, and `f` has 1; make "),
    ):
        with pytest.raises(gp.SemanticError) as caught:
            loaded(wrong)
        assert caught.value.message.startswith(messages)


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("neighbours", "float32[?,?]", "`neighbours` is compiled for each size on opencl: its tail threads run too; write"),
        ("counted", "float32[?,?]", "`multiply` has another text where open extents are 2 and 3: Python code computes with an"),
        ("constant", "float32[?,?]", "`constant` has other constants where open extents are "),
        ("cut", "float32[?,?]", "`cut` has other kernels, or results of other extents, where open extents are "),
        ("gathered", "float32[?,?]", "`gathered`: missing a required argument"),
        ("gathered", "float32[?,?] int32[?,?]", "`rows` is 313×317, the threads are 307×311 (as `f` is, the first Field): "),
        ("doubled", "float32[4]x?", "'float32[4]x?' leaves more open than the extents of a field's grid; write the others"),
    ],
)  # fmt: skip
def test_what_needs_its_extents(
    name: str, kind: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", f"crops.py:{name}", "--types", *kind.split(), "--targets", "opencl", "-o", "b"]) == 1
    text = capsys.readouterr().err.removeprefix("gpuop: ")
    assert text.startswith(message) and not Path("b").exists()
    assert "crops.py:" in text or name in ("constant", "cut", "gathered", "doubled")
