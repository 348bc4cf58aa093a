"""The cache of compiled kernels: shared by processes, proof against damage, not needed."""

import hashlib
import multiprocessing
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.cache import blob_store
from gpuop.base.config import config
from gpuop.base.errors import Loc
from gpuop.base.lru import BoundedCache
from gpuop.codegen import generate as generating
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.ir.kernel import Pin
from gpuop.ir.layout import planar
from gpuop.ir.nodes import Ref, Var
from gpuop.ir.text import content
from gpuop.ir.visit import Copier
from gpuop.passes.pipeline import lower
from tests.process import DOUBLE, python

OPENCL = [d.name for d in gp.devices() if d.name.startswith("opencl")]
needs_opencl = pytest.mark.skipif(not OPENCL, reason="no OpenCL driver that works")
# As DOUBLE, but says how many kernels were built from source: only those are stored, where passes are verified.
COUNTED = (
    "from gpuop.base.cache import blob_store\nstore, built = blob_store.store, []\n"
    "blob_store.store = lambda *given: (built.append(1), store(*given))\n" + DOUBLE + "print(len(built))"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "cache", tmp_path / "cache")
    return tmp_path / "cache"


def kept(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_load_gives_what_was_stored(folder):
    name = blob_store.key("text", "options")
    assert blob_store.load(name) is None
    blob_store.store(name, b"binary")
    assert blob_store.load(name) == b"binary"
    blob_store.store(name, b"another")
    assert blob_store.load(name) == b"another"
    assert len(kept(folder)) == 1


def test_key_tells_parts_apart():
    assert (
        len(
            {blob_store.key("a", "bc"), blob_store.key("ab", "c"), blob_store.key("abc"), blob_store.key("a", "bc", "")}
        )
        == 4
    )


DAMAGE = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "cut in the head": lambda data: data[:20],
    "one bit": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "garbage": lambda data: os.urandom(len(data)),
    "longer": lambda data: data + b"x",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_file(folder, damage):
    name = blob_store.key("text")
    blob_store.store(name, b"binary" * 100)
    (path,) = kept(folder)
    path.write_bytes(damage(path.read_bytes()))
    assert blob_store.load(name) is None
    blob_store.store(name, b"binary")
    assert blob_store.load(name) == b"binary"


def test_folder_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(config, "cache", tmp_path / "file" / "cache")
    blob_store.store(blob_store.key("text"), b"binary")
    assert blob_store.load(blob_store.key("text")) is None


def test_disk_that_is_full(folder, monkeypatch):
    """A file that could not be written whole is not left behind."""

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    blob_store.store(blob_store.key("text"), b"binary")
    assert kept(folder) == []


# --- of a device ---------------------------------------------------------------------------------------------------------


@needs_opencl
@pytest.mark.in_turn
@pytest.mark.parametrize("name", OPENCL)
def test_second_process(name, tmp_path):
    if gp.device(name).late:
        pytest.skip("it keeps what it compiles itself")

    def run():
        settings = {"GPUOP_CACHE": str(tmp_path), "GPUOP_DEVICE": name, "GPUOP_VERIFY": "1"}
        total, device, built = python("-c", COUNTED, **settings).stdout.split()
        assert (total, device) == ("20.0", name)
        return int(built)

    # the program of the self-test, its text and three kernels, the trust in the driver, and the kernel of the user
    assert run() == 7
    files = [file for file in kept(tmp_path) if len(file.read_bytes()) > 1000]  # the trust is a few bytes
    assert len(files) == 3
    foreign = b"another driver's"  # whole, but not to be loaded
    for file in files[:-1]:
        file.write_bytes(blob_store.MAGIC + hashlib.sha256(foreign).digest() + foreign)
    files[-1].write_bytes(files[-1].read_bytes()[:100])
    assert run() == 2  # what the driver is trusted with is not tried again
    assert run() == 0  # what the first or the second process has stored


@needs_opencl
@pytest.mark.in_turn
@pytest.mark.parametrize(
    "missing", [{"GPUOP_CACHE": "/dev/null/cache"}, {"GPUOP_CACHE": None, "HOME": "/dev/null/home"}]
)
def test_no_folder(missing):
    """Neither the cache nor the folder of .icd files can be written at home."""
    done = python("-c", DOUBLE, GPUOP_DEVICE=OPENCL[0], XDG_CACHE_HOME=None, **missing)
    assert done.stdout.split() == ["20.0", OPENCL[0]]
    assert done.stderr == ""


@needs_opencl
def test_folder_from_the_environment(tmp_path):
    python("-c", DOUBLE, GPUOP_DEVICE=OPENCL[0], GPUOP_CACHE=None, XDG_CACHE_HOME=str(tmp_path))
    assert [path for path in kept(tmp_path / "gpuop") if path.suffix != ".icd"]


@needs_opencl
def test_options_make_another_kernel(folder):
    """The driver, its version and the options are in the key: here with and without fused multiply-add."""
    backend = gp.device(OPENCL[0])
    again = type(backend)(OPENCL[0], backend.identity.split("|")[0], backend.device)
    operator = gp.operator(lambda f: _readTensor(f) * 2 + 1)(gp.ScalarField(np.arange(5, dtype="f")))
    kernel = operator.node.call.kernel
    again.compile(kernel)
    assert len(kept(folder)) == 1
    again.programs.clear()
    again.compile(kernel)
    assert len(kept(folder)) == 1
    again.options.append("-cl-mad-enable")
    again.identity += "|-cl-mad-enable"
    again.programs.clear()
    again.compile(kernel)
    assert len(kept(folder)) == 2
    assert all(option in backend.identity.split("|") for option in backend.options)
    assert backend.device.driver_version in backend.identity


def compute(name, folder, start, results):
    config.cache = Path(folder)
    start.wait()
    with gp.use_device(name):
        field = gp.ScalarField(np.arange(5, dtype="f"))
        for k in range(3):
            results.put((k, gp.operator(lambda f, k=k: _readTensor(f) * 2 + k)(field).numpy().tolist()))


@needs_opencl
def test_processes_at_once(tmp_path):
    """Two processes build the same kernels at the same time into one cache."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(2), context.Queue()
    processes = [context.Process(target=compute, args=(OPENCL[0], str(tmp_path), start, results)) for _ in range(2)]
    for process in processes:
        process.start()
    for k, values in [results.get(timeout=100) for _ in range(6)]:
        assert values == [k, k + 2, k + 4, k + 6, k + 8]
    for process in processes:
        process.join(100)
        assert process.exitcode == 0
    for path in kept(tmp_path):  # nothing but whole files
        data = path.read_bytes()
        assert data.startswith(blob_store.MAGIC) and len(path.name) == 64


# --- texts ------------------------------------------------------------------------------------------------------------


def recorded(factor=2, name="scaled", shape=(3, 4)):
    @gp.operator(name=name)
    def scaled(field):
        return _readTensor(field) * factor

    return scaled(gp.ScalarField(np.ones(shape, np.float32))).node.call.kernel


def test_the_text_of_an_equal_kernel_is_that_of_before(monkeypatch):
    """A kernel recorded anew, on the same lines, is generated once for each target; another one is not taken for it."""
    results = []
    monkeypatch.setattr(generating, "_sources", BoundedCache(8))
    monkeypatch.setattr(generating, "lower", lambda kernel, target: results.append(target) or lower(kernel, target))
    opencl, cuda = target_named("opencl"), target_named("cuda")
    first = generate(recorded(), opencl).text
    assert generate(recorded(), opencl).text is first
    assert results == [opencl] and "* 2.0f" in first
    others = (recorded(3), recorded(name="other"), recorded(shape=(4, 3)))
    pinned = replace(recorded(), pin=Pin("plain", ()))
    texts = {generate(kernel, opencl).text for kernel in others} | {generate(recorded(), cuda).text, first}
    assert len(texts) == 5 and len(results) == 5
    assert generate(pinned, opencl).text == first and len(results) == 6


def test_what_text_depends_on_is_told_apart():
    """Names and lines of the user's, memory that is not gpuop's own, and which names are gpuop's."""
    kernel = recorded()
    (param,), (read, *rest) = kernel.inputs, kernel.body
    other = Var(read.var.hint, read.var.type, temporary=not read.var.temporary)
    renamed = (replace(read, var=other), *Copier(tuple(rest), exprs={read.var: Ref(other)}).copy())
    kinds = [
        kernel,
        replace(kernel, layouts=((param, replace(planar(param.type), element=5)),)),
        replace(kernel, body=renamed),
        replace(kernel, body=(replace(read, loc=Loc("elsewhere.py", 3)), *rest)),
        replace(kernel, points=gp.Shape(12)),
    ]
    assert len({content(each) for each in kinds}) == len(kinds)


@needs_opencl
def test_a_graph_generates_nothing_that_fields_had_generated(monkeypatch):
    @gp.operator
    def quarter(field):
        return _readTensor(field) / 4

    image = np.arange(12, dtype=np.float32).reshape(3, 4)
    with gp.use_device(OPENCL[0]):
        quarter(gp.ScalarField(image)).numpy()
        monkeypatch.setattr(generating, "lower", None)
        with gp.ComputeGraph() as graph:
            graph.probe(quarter(gp.Sensor(gp.FieldType((3, 4)), lambda: image)), "out")
        graph.step()
        assert np.array_equal(graph.read("out"), image / 4)
