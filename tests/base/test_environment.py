"""Environment variables: the device, prints and dumps; and a Python without pyopencl."""

import os
import runpy
from pathlib import Path

import networkx
import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.dsl import *
from tests.process import DOUBLE, ROOT, devices, python

OPENCL = [d.name for d in gp.devices() if d.name.startswith("opencl")]
needs_opencl = pytest.mark.skipif(not OPENCL, reason="no OpenCL driver that works")


# --- GPUOP_DEVICE ----------------------------------------------------------------------------------------------------------


@pytest.mark.in_turn
@pytest.mark.parametrize("name", [d.name for d in gp.devices()])
def test_device(name):
    assert python("-c", DOUBLE, GPUOP_DEVICE=name).stdout.split() == ["20.0", name]


def test_use_device_wins():
    code = "import gpuop as gp\nfrom gpuop.runtime.devices import current\nwith gp.use_device('reference'): print(current().name)"
    assert python("-c", code, GPUOP_DEVICE="opencl:99").stdout.split() == ["reference"]


def test_unknown_device():
    code = (
        "import gpuop as gp\ntry: gp.ScalarField([1, 2]).numpy()\nexcept gp.DeviceError as error: print(error)\n"
        "with gp.use_device('reference'): print(gp.ScalarField([1, 2]).numpy())"
    )
    lines = python("-c", code, GPUOP_DEVICE="metal:0").stdout.splitlines()
    assert lines[0].startswith("GPUOP_DEVICE=metal:0: there is no device 'metal:0'; found: ")
    assert lines[1:] == ["[1 2]"]


def test_devices_marks_the_one_in_the_environment():
    printed = devices(GPUOP_DEVICE="reference")
    assert [line for line in printed.splitlines() if line.startswith("*")] == [
        "* reference                    NumPy interpreter of the recorded program"
    ]
    printed = devices(GPUOP_DEVICE="metal:0")
    assert "\nGPUOP_DEVICE=metal:0 names none of the devices that work\n" in printed
    assert "*" not in printed


# --- GPUOP_PLAN_FOR ----------------------------------------------------------------------------------------------------------

PLANNED = """
import numpy as np, gpuop as gp
from gpuop.runtime.profile import device_facts
def unmeasured(backend): raise gp.GpuopError("times are not what is asked for")
device_facts._base = unmeasured
x = np.arange(512 * 1024, dtype="f").reshape(512, 1024)
print(gp.device().description.endswith(", planned for as a GPU"), gp.device().target.device)
made = {
    "double": (lambda f: f * 2, x * 2),
    "turn": (lambda f: f.T + 1, x.T + 1),
    "fft": (gp.fft.fft, np.fft.fft(x)),
}
for name, (function, expected) in made.items():
    pipeline = gp.pipeline(lambda x: function(gp.ScalarField(x)))
    text = pipeline.source(x) + pipeline.explain(x)
    told = [word for word in ("*(__global float4", "__local", "fft_library") if word in text]
    print(name, np.allclose(pipeline(x), expected, 1e-5, 100), *told)
"""


@needs_opencl
@pytest.mark.in_turn
@pytest.mark.parametrize("name", [name for name in OPENCL if gp.device(name).target.device == "cpu"])
def test_plans_of_a_gpu(name):
    """A CPU's driver accesses 16 bytes at multiples of 16, has tiles in local memory, and transforms by kernels."""
    planned = ["True gpu", "double True *(__global float4", "turn True *(__global float4 __local", "fft True"]
    assert python("-c", PLANNED, GPUOP_DEVICE=name, GPUOP_PLAN_FOR="gpu").stdout.splitlines() == planned
    own = python("-c", PLANNED, GPUOP_DEVICE=name).stdout.splitlines()
    assert (own[0], own[-1]) == ("False cpu", "fft True fft_library")
    assert not any("__global float4" in line for line in own)


def test_plans_of_a_gpu_change_no_other_device():
    code = "import gpuop as gp; print(gp.device().target)"
    assert python("-c", code, GPUOP_DEVICE="reference", GPUOP_PLAN_FOR="gpu").stdout == "reference\n"


# --- GPUOP_DEBUG, GPUOP_DUMP -------------------------------------------------------------------------------------------------

# By level: what is printed from there on.
SEEN = {
    1: "gpuop: launch ",
    2: "gpuop: 1 kernel for 1 operator",
    3: "kernel doubled [",
    4: "__kernel void gpuop_doubled(",
    5: "--- after lower_fields",
}


@needs_opencl
@pytest.mark.parametrize("level", range(6))
def test_debug(level, monkeypatch, capsys):
    @gp.operator
    def doubled(field):
        return _readTensor(field) * 2

    with gp.use_device(OPENCL[0]):
        monkeypatch.setattr(config, "debug", level)
        doubled(gp.ScalarField(np.arange(10 + level))).numpy()  # of a shape that was not planned before
    printed = capsys.readouterr().err
    assert {k for k, text in SEEN.items() if text in printed} == {k for k in SEEN if k <= level}, printed


def test_debug_in_the_environment():
    """The reference has no source, and nothing to lower."""
    printed = python("-c", DOUBLE, GPUOP_DEVICE="reference", GPUOP_DEBUG="5").stderr
    assert {k for k, text in SEEN.items() if text in printed} == {1, 2, 3}
    assert "gpuop: launch doubled, threads 5\n" in printed


@pytest.mark.parametrize(
    ("name", "value", "values"),
    [
        ("GPUOP_DEBUG", "yes", "0, 1, 2, 3, 4, 5"),
        ("GPUOP_DEBUG", "7", "0, 1, 2, 3, 4, 5"),
        ("GPUOP_WIDEN", "maybe", "1, 0"),
        ("GPUOP_SCHEDULE", "PLAIN", "auto, plain"),
        ("GPUOP_PLAN_FOR", "cuda", "device, gpu"),
        ("GPUOP_VERIFY", "on", "0, 1"),
    ],
)
def test_settings_that_are_none(name, value, values, monkeypatch):
    monkeypatch.setenv(name, value)
    anew = runpy.run_path(str(ROOT / "gpuop" / "base" / "config.py"))["config"]
    with pytest.raises(gp.GpuopError, match=f"^{name}={value} is none of its values; one of {values}$"):
        anew.check()


def test_importing_does_not_fail():
    """Settings are refused when a device is first used, or text is generated for another."""
    code = (
        "import gpuop as gp\nfrom gpuop.engine.dump import source\n"
        "x = gp.ScalarField([1, 2])\n"
        "for use in (lambda: (x + 1).numpy(), lambda: source([x + 1], 'cuda')):\n"
        "    try: use()\n    except gp.GpuopError as error: print(error)"
    )
    message = "GPUOP_DEBUG=7 is none of its values; one of 0, 1, 2, 3, 4, 5"
    assert python("-c", code, GPUOP_DEVICE="reference", GPUOP_DEBUG="7").stdout.splitlines() == [message] * 2


@needs_opencl
def test_dump(tmp_path):
    """Kernels of one name are told apart; what is dumped is the source."""
    code = DOUBLE + "doubled(gp.ScalarField(np.arange(6))).numpy()"
    folder = tmp_path / "new" / "dump"
    for _ in range(2):  # the second time from the cache
        python("-c", code, GPUOP_DEVICE=OPENCL[0], GPUOP_DUMP=str(folder), GPUOP_CACHE=str(tmp_path / "cache"))
        files = [path for path in folder.iterdir() if path.name.startswith("gpuop_doubled-")]
        assert len(files) == 2
        assert all(path.suffix == ".cl" and "__kernel void gpuop_doubled(" in path.read_text() for path in files)


@needs_opencl
@pytest.mark.parametrize("folder", ["/dev/null", "/proc/dump"])
def test_a_dump_that_cannot_be_written(folder):
    """Costs a warning, and no device."""
    done = python("-c", DOUBLE, GPUOP_DEVICE=OPENCL[0], GPUOP_DUMP=folder)
    assert done.stdout.split() == ["20.0", OPENCL[0]]
    assert done.stderr.count("UserWarning: GPUOP_DUMP: [Errno") == 1 and "; nothing more is dumped" in done.stderr


# --- without pyopencl ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def bare(tmp_path):
    """The folder of packages of a Python that has NumPy and networkx only."""
    for package in (np, networkx):
        home = Path(package.__file__).parent
        for part in (home, home.parent / f"{home.name}.libs"):
            if part.exists():
                (tmp_path / part.name).symlink_to(part)
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]), "PYTHONDONTWRITEBYTECODE": "1"}


def test_without_pyopencl(bare):
    done = python("-S", "-W", "error", "-c", DOUBLE, **bare)
    assert done.stdout.split() == ["20.0", "reference"]
    printed = python("-S", "-m", "gpuop", "devices", **bare).stdout
    assert (
        "skipped: No module named 'pyopencl'; install it with `pip install '.[cpu]'` in gpuop's checkout\n" in printed
    )
    assert "\n* reference" in printed


def test_asking_for_opencl_without_pyopencl(bare):
    code = "import gpuop as gp\ntry: gp.device('opencl:0')\nexcept gp.DeviceError as error: print(error)"
    printed = python("-S", "-c", code, **bare).stdout
    assert (
        printed == "opencl:0: No module named 'pyopencl'; install it with `pip install '.[cpu]'` in gpuop's checkout\n"
    )


def test_a_pyopencl_that_cannot_be_imported(bare, tmp_path):
    """Such as one built for another NumPy: no reason to stop."""
    (tmp_path / "pyopencl").mkdir()
    (tmp_path / "pyopencl" / "__init__.py").write_text("raise ImportError('undefined symbol: PyArray')\n")
    printed = python("-S", "-m", "gpuop", "devices", **bare).stdout
    assert "skipped: undefined symbol: PyArray; install it with `pip install '.[cpu]'` in gpuop's checkout\n" in printed
    assert "\n* reference" in printed


# --- the command line ------------------------------------------------------------------------------------------------------------


def test_no_command():
    code = "import sys\nfrom gpuop.__main__ import main\ntry: main([])\nexcept SystemExit as stop: print(stop.code)"
    done = python("-c", code)
    assert done.stdout == "2\n"
    assert "usage: gpuop" in done.stderr
