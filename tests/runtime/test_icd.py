"""Discovery of OpenCL drivers: whose choice wins, what is said of what cannot be used. In processes of their own."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import gpuop as gp
from gpuop.runtime.opencl import icd
from tests.process import DOUBLE, devices, python

pytest.importorskip("pyopencl")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the loader is left alone")
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}  # which would be the default
WORKING = [d for d in gp.devices() if d.name.startswith("opencl")]
pytestmark = linux


def vendors(folder: Path, *libraries: str) -> str:
    folder.mkdir()
    for number, library in enumerate(libraries):
        (folder / f"{number}.icd").write_text(f"{library}\n")
    return str(folder)


@pytest.mark.skipif(not WORKING, reason="no OpenCL driver that works")
def test_the_users_choice_wins(tmp_path):
    """Of the drivers that work only the last is named."""
    library = icd.find()[-1].library
    printed = devices(**NO_GPU, OCL_ICD_VENDORS=vendors(tmp_path / "mine", library))
    assert printed.count("opencl:") - printed.count("opencl:cpu") - printed.count("opencl:gpu") == 1
    assert f"OpenCL drivers:\n  {library} (OCL_ICD_VENDORS)\n" in printed


def test_no_drivers(tmp_path):
    printed = devices(**NO_GPU, OCL_ICD_VENDORS=vendors(tmp_path / "none"))
    assert (
        "  opencl:0                     OpenCL\n"
        "    skipped: pyopencl finds no driver; `pip install '.[cpu]'` in gpuop's checkout brings one for x86-64, or install PoCL\n"
        "* reference                    NumPy interpreter of the recorded program\n"
    ) in printed
    assert "OpenCL drivers:" not in printed
    done = python("-W", "error", "-c", DOUBLE, **NO_GPU, OCL_ICD_VENDORS=str(tmp_path / "none"))
    assert done.stdout.split() == ["20.0", "reference"]


def test_drivers_that_cannot_be_loaded(tmp_path):
    text = tmp_path / "libtext.so"
    text.write_text("not a library")
    printed = devices(**NO_GPU, OCL_ICD_VENDORS=vendors(tmp_path / "broken", "/nowhere/libmissing.so", str(text)))
    assert (
        "  /nowhere/libmissing.so (OCL_ICD_VENDORS)\n"
        "    cannot be loaded: /nowhere/libmissing.so: cannot open shared object file: No such file or directory\n"
    ) in printed
    assert f"  {text} (OCL_ICD_VENDORS)\n    cannot be loaded: {text}: " in printed
    assert "* reference" in printed


@pytest.mark.skipif(not WORKING, reason="no OpenCL driver that works")
def test_a_broken_driver_beside_one_that_works(tmp_path):
    library = icd.find()[0].library
    folder = vendors(tmp_path / "both", "/nowhere/libmissing.so", library)
    printed = devices(**NO_GPU, OCL_ICD_VENDORS=folder)
    assert "* opencl:0" in printed and "cannot be loaded" in printed
    assert python("-c", DOUBLE, **NO_GPU, OCL_ICD_VENDORS=folder).stdout.split() == ["20.0", "opencl:0"]


@pytest.mark.skipif(not WORKING, reason="no OpenCL driver that works")
def test_child_processes_choose_for_themselves():
    """The variable that gpuop sets for the loader is inherited, and is not the user's choice."""
    code = (
        "import os, subprocess, sys\nfrom gpuop.runtime.opencl import icd\nicd.prepare()\n"
        "assert 'gpuop-icd-' in os.environ['OCL_ICD_VENDORS']\n"
        "print(len(icd.find()), flush=True)\n"
        "subprocess.run([sys.executable, '-c', 'from gpuop.runtime.opencl import icd; print(len(icd.find()))'], check=True)"
    )
    mine, childs = python("-c", code).stdout.split()
    assert mine == childs != "0"


def test_folder_names_every_driver(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = icd._directory(["/a/libone.so", "/b/libtwo.so"])
    assert [path.read_text() for path in sorted(folder.iterdir())] == ["/a/libone.so", "/b/libtwo.so"]
    assert folder == icd._directory(["/a/libone.so", "/b/libtwo.so"])  # written once
    assert folder != icd._directory(["/b/libtwo.so"])
    assert folder.stat().st_mode & 0o077 == 0


def test_home_that_cannot_be_written(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/dev/null/home")
    folder = icd._directory(["/a/libone.so"])
    assert (folder / "00.icd").read_text() == "/a/libone.so"
    assert "/dev/null" not in str(folder)


def test_entries_that_are_no_files(tmp_path, monkeypatch):
    """The loader passes over them, and a pipe is waited for by who opens it."""
    (tmp_path / "folder.icd").mkdir()
    os.mkfifo(tmp_path / "pipe.icd")
    (tmp_path / "nowhere.icd").symlink_to(tmp_path / "missing")
    (tmp_path / "zeros.icd").write_bytes(bytes(100))
    (tmp_path / "cut.icd").write_bytes(b"/opt/libcut.so\0\0\0")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    assert icd.find() == [icd.Driver("/opt/libcut.so", "OCL_ICD_VENDORS")]
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "pipe.icd"))
    assert icd.find() == []


def test_a_library_is_named_once(tmp_path, monkeypatch):
    """Twice the same library would be a platform twice."""
    for name in ("first", "second"):
        (tmp_path / f"{name}.icd").write_text("/opt/libsame.so\n")
    (tmp_path / "empty.icd").write_text("")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    assert icd.find() == [icd.Driver("/opt/libsame.so", "OCL_ICD_VENDORS")]
    monkeypatch.setenv("OCL_ICD_VENDORS", "/opt/libdirect.so")
    assert icd.find() == [icd.Driver("/opt/libdirect.so", "OCL_ICD_VENDORS")]
    monkeypatch.delenv("OCL_ICD_VENDORS")
    monkeypatch.setenv("OPENCL_VENDOR_PATH", str(tmp_path))
    assert icd.find() == [icd.Driver("/opt/libsame.so", "OPENCL_VENDOR_PATH")]


def test_the_intel_wheel_on_windows(tmp_path, monkeypatch):
    """The loader there has a registry, and a variable for other libraries; what the user has set stays."""
    library = tmp_path / "intelocl64.dll"
    library.touch()
    file = SimpleNamespace(name=library.name, locate=lambda: library)
    monkeypatch.setattr("importlib.metadata.files", lambda name: [file] if name == "intel-opencl-rt" else [])
    monkeypatch.setattr(icd, "_LINUX", False)
    monkeypatch.setattr(icd, "WINDOWS", True)
    monkeypatch.setattr(icd, "_INTEL", library.name)
    for value, expected in (("", str(library)), ("mine.dll", "mine.dll")):
        monkeypatch.delenv("OCL_ICD_FILENAMES", raising=False)
        if value:
            monkeypatch.setenv("OCL_ICD_FILENAMES", value)
        assert icd.prepare() == [icd.Driver(str(library), "PyPI intel-opencl-rt")]
        assert os.environ["OCL_ICD_FILENAMES"] == expected
