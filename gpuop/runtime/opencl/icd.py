"""Discovery of OpenCL drivers for the ICD loader, without importing pyopencl.

By itself the loader in pyopencl's wheel reads /etc/OpenCL/vendors. That misses Intel's CPU runtime from PyPI, whose
own .icd names a path that does not exist, and NVIDIA's driver in containers, which has none. So `prepare` writes a
directory naming every driver found and points OCL_ICD_VENDORS at it. The loader looks once, at the first platform
query: call `prepare` before that. Users who set one of the loader's variables themselves keep what they set.
"""

import atexit
import ctypes
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpuop.base.cache.atomic_files import private_folder, replacing
from gpuop.base.records import dataclass
from gpuop.base.system import WINDOWS

_LINUX = sys.platform.startswith(
    "linux"
)  # elsewhere the loader has other ways; only Intel's wheel on Windows needs help
_VARIABLES = ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH")  # in the loader's order
_OURS = "gpuop-icd-"  # child processes inherit the variable: to them it must not look like the user's choice
_SYSTEM = Path("/etc/OpenCL/vendors")
_LINKER_CACHE = Path("/etc/ld.so.cache")
_NVIDIA = "libnvidia-opencl.so.1"
_INTEL = "intelocl64.dll" if WINDOWS else "libintelocl.so"
_ADDED = "OCL_ICD_FILENAMES"  # of the loader on Windows: libraries besides those of the registry


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver library, as a path or a name for the dynamic linker, and the source of that name."""

    library: str
    origin: str


def find() -> list[Driver]:
    """Return the drivers for the loader. Nothing is loaded: some may not work."""
    if not _LINUX:
        return list(_intel_wheel()) if WINDOWS else []
    # A library that is named twice is a platform twice. Of two copies of one runtime the one from PyPI comes first.
    unique: dict[str, Driver] = {}
    for driver in (*_named(), *_bundled()):
        unique.setdefault(Path(driver.library).name, driver)
    return list(unique.values())


def prepare() -> list[Driver]:
    """Make the loader see the drivers of `find`, and return them."""
    drivers = find()
    if _LINUX and _users_choice() is None:
        bundled = set(_bundled())
        os.environ["OCL_ICD_VENDORS"] = str(_directory([d.library for d in drivers if d not in bundled]))
    elif WINDOWS and drivers:
        os.environ.setdefault(_ADDED, drivers[0].library)
    return drivers


def load_error(driver: Driver) -> str | None:
    """Return why the driver's library cannot be loaded (the loader skips it in silence), or None."""
    try:
        ctypes.CDLL(driver.library)
    except OSError as error:
        return str(error)
    return None


def _users_choice() -> tuple[str, Path] | None:
    settings = ((name, Path(value)) for name in _VARIABLES if (value := os.environ.get(name)))
    return next(((name, path) for name, path in settings if not path.name.startswith(_OURS)), None)


def _named() -> Iterator[Driver]:
    if choice := _users_choice():
        name, path = choice
        yield from _listed(path, name) if path.is_dir() or path.suffix == ".icd" else [Driver(str(path), name)]
        return
    yield from _intel_wheel()
    yield from _listed(_SYSTEM)
    # drivers of a conda environment, and files of the Intel wheel that name nothing
    yield from (d for d in _listed(Path(sys.prefix, "etc/OpenCL/vendors")) if os.path.exists(d.library))
    if _LINKER_CACHE.exists() and f"/{_NVIDIA}\0".encode() in _LINKER_CACHE.read_bytes():  # `ldconfig -p` takes 7 ms
        yield Driver(_NVIDIA, "loader cache (NVIDIA)")


def _intel_wheel() -> Iterator[Driver]:
    import importlib.metadata

    try:
        files = importlib.metadata.files("intel-opencl-rt") or []
    except importlib.metadata.PackageNotFoundError:
        return
    for path in (Path(str(file.locate())).resolve() for file in files if file.name == _INTEL):
        if path.exists():  # `pip install --target` records it, but leaves it out
            yield Driver(str(path), "PyPI intel-opencl-rt")


def _bundled() -> Iterator[Driver]:
    """Return the drivers in the pyopencl wheel (pocl-binary-distribution and others): its loader adds them itself."""
    if (spec := importlib.util.find_spec("pyopencl")) and spec.origin:
        folder = Path(spec.origin).parent / ".libs"
        for driver in _listed(folder):
            yield Driver(str(folder / driver.library), f"PyPI {Path(driver.origin).stem}-binary-distribution")


def _listed(path: Path, origin: str | None = None) -> Iterator[Driver]:
    for file in sorted(path.glob("*.icd")) if path.is_dir() else [path]:
        text = file.read_text("utf-8", errors="replace") if file.is_file() and os.access(file, os.R_OK) else ""
        if library := re.split("[\n\0]", text)[0].strip():  # the loader too reads one line only, up to a zero byte
            yield Driver(library, origin or str(file))


def _directory(libraries: list[str]) -> Path:
    """Write a folder of .icd files, named by a hash of them: processes that write it at once write the same."""
    name = _OURS + hashlib.sha256("\n".join(libraries).encode()).hexdigest()[:16]
    try:
        return _write(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gpuop", name), libraries)
    except (OSError, RuntimeError):  # no home, or a read-only one; in a shared folder a fixed name could be planted
        folder = Path(tempfile.mkdtemp(prefix=_OURS))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return _write(folder, libraries)


def _write(folder: Path, libraries: list[str]) -> Path:
    private_folder(folder)
    for number, library in enumerate(libraries):
        path = folder / f"{number:02}.icd"
        line = os.fsencode(library)
        if not path.exists() or path.read_bytes() != line:
            with replacing(path, durable=False) as file:
                file.write(line)
    return folder
