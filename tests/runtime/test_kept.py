"""Texts and choices of schedules that other processes have made: found where all is equal that they depend on, and nowhere else."""

import os
import threading
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.cache import disk_memo
from gpuop.base.config import config
from gpuop.base.lru import BoundedCache
from gpuop.codegen import generate as generating
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel, Pin
from gpuop.passes import lowering_cache, pipeline
from gpuop.passes.schedules import methods as schedules
from gpuop.runtime.tuning.chooser import limits_for
from tests.composed import PIPELINES
from tests.process import python

from .test_cache import DAMAGE, OPENCL, needs_opencl

VARIED = ("harris", "canny", "camera", "auto_exposure", "statistics", "total_of_bytes")

# How many kernels were lowered, how many were asked for schedules, and a sum; then what a graph says of itself.
COUNTED = """
import numpy as np
import gpuop as gp
from gpuop import ndimage
from gpuop.codegen import generate as generating
from gpuop.fusion import schedule_choice
from gpuop.passes import lowering_cache
from gpuop.base.cache import disk_memo
from gpuop.runtime.profile import device_facts
def unmeasured(backend): raise gp.GpuopError("times are not compared")
device_facts._base = unmeasured
disk_memo.SETTLED = -1e9
made = []
for module, name in (generating, "lower"), (lowering_cache, "choice"), (schedule_choice, "choice"):
    given = getattr(module, name)
    setattr(module, name, lambda *args, given=given, name=name: made.append(name) or given(*args))
image = np.arange(4096, dtype=np.float32).reshape(64, 64) % 7
smooth = ndimage.gaussian_filter(gp.ScalarField(image), 1)
found = gp.evaluate(smooth * 2).numpy()
print(made.count("lower"), made.count("choice"), float(found.sum(dtype=np.float64)))
with gp.ComputeGraph() as graph:
    graph.probe(smooth * 2, "out")
print(*(line for line in graph.explain().splitlines() if "predicted" not in line), sep="\\n")  # by what is measured
print(graph.source())
"""


@pytest.fixture
def lowered(disk, monkeypatch):
    """Generate as a process does that begins; how often kernels were lowered."""
    results = []
    monkeypatch.setattr(
        generating, "lower", lambda kernel, target: results.append(target) or pipeline.lower(kernel, target)
    )

    def anew(kernel, target):
        monkeypatch.setattr(generating, "_sources", BoundedCache(8))
        return generate(kernel, target)

    return results, anew


def recorded(factor=2):
    @gp.operator(name="scaled")
    def scaled(field):
        return _readTensor(field) * factor

    return scaled(gp.ScalarField(np.ones((3, 4), np.float32))).node.call.kernel


def kernels(name, target):
    nodes = [field.node for field in PIPELINES[name](67, 130)]
    steps = plan(program(nodes), limits=limits_for(target)).launches
    return [step.kernel for step in steps if isinstance(step.kernel, Kernel)]


def facts(source):
    """All that is known of a source; arguments are other objects, and equal."""
    arguments = [(p.hint, p.type, p.by_value) for p in source.arguments]
    rest = {name: value for name, value in vars(source).items() if name != "arguments"}
    return arguments, rest, source.identity, source.own if source.shared else ""


@pytest.mark.parametrize("target", ["opencl:cpu", "cuda"])
@pytest.mark.parametrize("name", VARIED)
def test_what_is_found_is_what_was_made(lowered, name, target):
    result, anew = lowered
    target = target_named(target)
    for kernel in kernels(name, target):
        new = anew(kernel, target)
        count = len(result)
        actual = anew(kernel, target)
        assert len(result) == count and actual is not new
        assert facts(actual) == facts(new)


@pytest.mark.parametrize("fill", [0.0, -0.0, float("nan"), float("-inf"), 3])
def test_what_is_there_before_a_launch(lowered, fill):
    _, anew = lowered
    kernel = recorded()
    filled = replace(kernel, outputs=(replace(kernel.outputs[0], fill=fill),))
    for _ in range(2):
        assert repr(anew(filled, target_named("opencl")).fills) == repr({1: fill})


def test_another_kernel_target_or_setting_is_none_of_before(lowered, monkeypatch):
    result, anew = lowered
    opencl = target_named("opencl")
    anew(recorded(), opencl)
    assert len(result) == 1
    others = [
        lambda: anew(recorded(3), opencl),
        lambda: anew(replace(recorded(), pin=Pin("plain")), opencl),
        lambda: anew(recorded(), target_named("opencl:cpu")),
        lambda: anew(recorded(), replace(opencl, local_memory_bytes=opencl.local_memory_bytes + 1)),
        lambda: anew(recorded(), replace(opencl, least_threads=opencl.least_threads + 1)),
    ]
    for count, other in enumerate(others, 2):
        for _ in range(2):
            other()
            assert len(result) == count
    for name, value in (("widen", False), ("schedule", "plain")):
        monkeypatch.setattr(config, name, value)
        count = len(result)
        anew(recorded(), opencl)
        assert len(result) == count + 1
    anew(recorded(), opencl)
    assert len(result) == count + 1


@pytest.mark.parametrize("setting", ["verify", "debug"])
def test_who_wants_to_see_passes_does(lowered, monkeypatch, setting, capsys):
    result, anew = lowered
    anew(recorded(), target_named("opencl"))
    monkeypatch.setattr(config, setting, 1)
    for count in (2, 3):
        anew(recorded(), target_named("opencl"))
        assert len(result) == count


def test_passes_that_somebody_has_changed_make_their_own(lowered):
    result, anew = lowered
    anew(recorded(), target_named("opencl"))
    for module, name in ((schedules, "METHODS"), (pipeline, "PIPELINE")):
        with mock.patch.object(module, name, getattr(module, name)[1:]):
            count = len(result)
            anew(recorded(), target_named("opencl"))
            anew(recorded(), target_named("opencl"))
            assert len(result) == count + 2
    anew(recorded(), target_named("opencl"))
    assert len(result) == count + 2


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_texts_are_made_again(lowered, disk, damage):
    result, anew = lowered
    new = anew(recorded(), target_named("opencl"))
    (path,) = (path for path in disk.rglob("*") if path.is_file())
    path.write_bytes(damage(path.read_bytes()))
    for _ in range(2):
        assert facts(anew(recorded(), target_named("opencl"))) == facts(new)
        assert len(result) == 2


def test_a_folder_that_cannot_be_written_is_done_without(lowered, tmp_path, monkeypatch):
    result, anew = lowered
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(config, "cache", tmp_path / "file" / "cache")
    texts = {anew(recorded(), target_named("opencl")).text for _ in range(2)}
    assert len(texts) == 1 and len(result) == 2


def test_errors_are_those_of_before(disk, monkeypatch):
    """A kernel that is refused is refused again: nothing of it is kept."""

    @gp.operator
    def chosen(field):
        _localThreads(1, _target.choose({"cuda:sm_90": 32}))
        return _readTensor(field) * 2

    kernel = chosen(gp.ScalarField(np.ones((3, 4), np.float32))).node.call.kernel
    messages = set()
    for _ in range(2):
        monkeypatch.setattr(generating, "_sources", BoundedCache(8))
        with pytest.raises(gp.SemanticError) as failed:
            generate(kernel, target_named("opencl"))
        messages.add(str(failed.value))
    (message,) = messages
    assert "the table has no entry for opencl" in message and 'choose({"cuda:sm_90": 32})' in message
    assert not disk.exists()


# --- who has made it --------------------------------------------------------------------------------------------------


def makers():
    disk_memo.makers.cache_clear()
    return disk_memo.makers()


def test_makers_are_told_apart(package):
    first = makers()
    assert makers() == first is not None
    results = {first}
    for folder in disk_memo.MAKERS:
        (package / folder / "some.py").write_text("# another")
        results.add(makers())
        (package / folder / "some.py").rename(package / folder / "other.py")
        results.add(makers())
        (package / folder / "one_more.py").write_text("")
        results.add(makers())
    assert len(results) == 3 * len(disk_memo.MAKERS) + 1 and None not in results
    with mock.patch.object(np, "__version__", "another"):
        assert makers() not in results
    (package / "ir" / "some.txt").write_text("no code")
    assert makers() in results


def test_makers_that_may_have_changed_since_they_were_imported_are_not_known(package, monkeypatch):
    """A process that lives while gpuop is edited does not keep what it makes as made by the new files."""
    monkeypatch.setattr(disk_memo, "SETTLED", 2.0)
    monkeypatch.setattr(disk_memo, "IMPORTED", (package / "ir" / "some.py").stat().st_ctime + 60)
    assert makers() is not None
    long_ago = 1.0
    (package / "ir" / "some.py").write_text("# edited")
    os.utime(package / "ir" / "some.py", (long_ago, long_ago))  # as tools do that keep times
    monkeypatch.setattr(disk_memo, "IMPORTED", (package / "ir" / "some.py").stat().st_ctime + 1)
    assert makers() is None


@pytest.mark.parametrize("missing", ["file", "folder"])
def test_makers_without_files_are_not_known(package, missing):
    """As where there is bytecode alone."""
    (package / "passes" / "some.py").unlink()
    if missing == "folder":
        (package / "passes").rmdir()
    assert makers() is None


def test_what_others_have_made_is_made_anew_and_written_over(lowered, disk, package):
    result, anew = lowered
    for count, text in enumerate(["# one", "# another", "# one"], 1):
        (package / "passes" / "some.py").write_text(text)
        disk_memo.makers.cache_clear()
        for _ in range(2):
            anew(recorded(), target_named("opencl"))
            assert len(result) == count
    assert len([path for path in disk.rglob("*") if path.is_file()]) == 1


def test_nothing_is_kept_where_makers_are_not_known(lowered, disk, package):
    result, anew = lowered
    (package / "passes" / "some.py").unlink()
    for count in (1, 2):
        anew(recorded(), target_named("opencl"))
        assert len(result) == count
    assert not disk.exists()


# --- processes --------------------------------------------------------------------------------------------------------


def test_choices_of_schedules_are_found(disk, monkeypatch):
    """A plan is the same whether its kernels are tried or were tried before."""
    target = target_named("opencl:cpu")
    stages = kernels("harris", target)
    generate(next(kernel for kernel in stages if kernel.intermediates), target)  # of which another kind is kept
    first = [kernel.name for kernel in kernels("harris", target)]
    assert any(kernel.intermediates for kernel in kernels("harris", target))
    monkeypatch.setattr(lowering_cache, "choice", None)
    assert [kernel.name for kernel in kernels("harris", target)] == first
    monkeypatch.setattr(config, "schedule", "plain")
    again = [kernel.name for kernel in kernels("harris", target)]
    monkeypatch.undo()
    with mock.patch.object(config, "schedule", "plain"):
        assert [kernel.name for kernel in kernels("harris", target)] == again != first


@needs_opencl
@pytest.mark.in_turn
@pytest.mark.parametrize("name", OPENCL)
def test_another_process_generates_nothing(name, tmp_path):
    def run(**settings):
        settings = {"GPUOP_CACHE": str(tmp_path), "GPUOP_DEVICE": name, **settings}
        return python("-c", COUNTED, **settings).stdout.split("\n", 1)

    (first, message), (second, again) = run(), run()
    total = first.split()[2]
    assert int(first.split()[0]) > 0
    assert second == f"0 0 {total}" and again == message
    (plain, _), (same, _) = run(GPUOP_SCHEDULE="plain"), run(GPUOP_SCHEDULE="plain")
    assert int(plain.split()[0]) > 0 and same.split()[0] == "0"
    assert plain.split()[2] == same.split()[2] == total


@needs_opencl
def test_processes_that_write_at_once(tmp_path):
    results: list[str] = []

    def run():
        results.append(python("-c", COUNTED, GPUOP_CACHE=str(tmp_path), GPUOP_DEVICE=OPENCL[0]).stdout.split("\n", 1))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({(first.split()[2], message) for first, message in results}) == 1 and len(results) == 2
    assert all(len(path.name) == 64 for path in Path(tmp_path).rglob("*") if path.is_file())
