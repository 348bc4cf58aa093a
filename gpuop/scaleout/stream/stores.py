"""Arrays in files, opened for reads and writes by path."""

from __future__ import annotations

import importlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpuop.base.cache.atomic_files import named
from gpuop.base.errors import SemanticError, described
from gpuop.base.system import release_pages
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Array

OF_GROUPS = {"zarr.json", ".zgroup", ".zattrs", ".zmetadata"}  # files of a zarr group itself
SHOWN = 3
HDF5 = (".h5", ".hdf5")
TIFF = (".tif", ".tiff")
IN_ZARR = re.compile(r"(.*?\.zarr)(?:/+(.*))?", re.IGNORECASE | re.DOTALL)  # a zarr, and a path in it
LEVEL = "multiscales"  # the OME-Zarr attribute that names the array with all points


class TiffStack:
    """A TIFF file with compressed pages: the first axis counts pages, or there is one page."""

    def __init__(self, path: str, tifffile: Any) -> None:
        with tifffile.TiffFile(path) as file:
            series = file.series[0]
            self.shape, self.dtype, pages = tuple(series.shape), np.dtype(series.dtype), len(series.pages)
        if pages not in (1, self.shape[0]):
            raise SemanticError(f"{path}: a compressed TIFF file is read page by page, and its first axis has others")
        self.path, self.chunks = path, self.shape if pages == 1 else (1, *self.shape[1:])
        self._read: Callable[[range], Array] = lambda pages: tifffile.imread(path, key=pages)

    def __getitem__(self, place: Any) -> Array:
        if self.chunks == self.shape:  # one page
            return np.asarray(self._read(range(1)).reshape(self.shape)[place])
        first, *rest = place if isinstance(place, tuple) else (place,)
        pages = range(self.shape[0])[first] if first is not Ellipsis else range(self.shape[0])
        several = pages if isinstance(pages, range) else range(pages, pages + 1)
        stack = self._read(several).reshape(len(several), *self.shape[1:])
        return np.asarray(stack[(slice(None) if several is pages else 0, *rest)])


def opened(source: Any) -> Any:
    """Open an array to read: an object with a shape and a dtype, or a path.

    Raises:
        SemanticError: a file of an unknown kind, or a damaged one, or a package is missing.
        OSError: it cannot be opened.
    """
    if hasattr(source, "shape") and hasattr(source, "dtype"):
        return source
    if isinstance(source, (str, os.PathLike)):
        _check_alone(named(source))
    return _read(_to_read, *in_file(source))


def _check_alone(path: str) -> None:
    """Check that a path is one file: not a folder, or a pattern of names."""
    folder, pattern = os.path.split(path)
    if os.path.isdir(path) and not IN_ZARR.fullmatch(path):
        folder, pattern, what = path, "*" + next(_endings(path), TIFF[0]), "a folder"
    elif "*" in path and not os.path.exists(path):
        what = "a pattern of names"
    else:
        return
    listed = f'sorted(Path("{folder or "."}").glob("{pattern}"))'
    raise SemanticError(f"{path} is {what}, and a source is an array, its path, or a list of paths: `{listed}`")


def _endings(folder: str) -> Iterator[str]:
    """Return the endings of a folder's files that can be read."""
    endings = (os.path.splitext(name)[1] for name in sorted(os.listdir(folder)))
    return (ending for ending in endings if ending.lower() in (".npy", *TIFF, *HDF5))


def _read(how: Callable[[str, str, str], Any], path: str, name: str, kind: str) -> Any:
    os.stat(path)  # raises with the name of a missing file
    try:
        return how(path, name, kind)
    except SemanticError:
        raise
    except Exception as wrong:  # readers of formats raise anything
        raise SemanticError(f"{path} cannot be read: {wrong}") from wrong


def _to_read(path: str, name: str, kind: str) -> Any:
    if kind == ".npy":
        return np.lib.format.open_memmap(path, mode="r")
    if kind in TIFF:
        tifffile = _package("tifffile", path)
        try:
            return tifffile.memmap(path, mode="r")
        except ValueError:  # compressed, or in pieces
            return TiffStack(path, tifffile)
    if kind in HDF5:
        return _dataset(_package("h5py", path).File(path, "r"), name, path)
    return _of_group(_package("zarr", path).open(path, mode="r"))


def created(out: Any, kind: FieldType, shape: tuple[int, ...], chunks: Sequence[int], mode: str) -> Any:
    """Open an array to write: the caller's, one in a file, or a new one.

    Args:
        mode: "r+" continues a file with a part of the result; "r" reads it, because HDF5 would otherwise change the
            file's time; "" creates it.

    Raises:
        SemanticError: an array of another shape or dtype, or as of `opened`; a file or folder with something else in it.
        OSError: it cannot be written.
    """
    if out is None:
        return np.empty(shape, kind.array_dtype)
    if hasattr(out, "shape") and hasattr(out, "dtype"):
        if not getattr(getattr(out, "flags", None), "writeable", True):
            raise SemanticError("`out=` is a read-only array; give one that can be written, or the path of a file")
        return _fitting(out, shape, kind.array_dtype)
    path, name, ending = in_file(out)
    if mode:
        try:
            return _fitting(_read(partial(_again, mode=mode), path, name, ending), shape, kind.array_dtype)
        except SemanticError as wrong:
            raise SemanticError(f"{wrong.message}; leave out `resume=` to begin anew") from wrong
    if ending == ".npy":
        return np.lib.format.open_memmap(path, mode="w+", dtype=kind.array_dtype, shape=shape)
    if ending in TIFF:
        return _tiff(path, shape, kind.array_dtype)
    if ending in HDF5:
        h5py = _package("h5py", path)
        spare_in_hdf5(h5py, path, name)
        file = h5py.File(path, "a" if name else "w")
        if name in file:
            del file[name]
        return file.create_dataset(name or "data", shape, kind.array_dtype, chunks=tuple(chunks))
    zarr = _package("zarr", path)
    spare_in_zarr(path)
    return zarr.open_array(path, mode="w", shape=shape, chunks=tuple(chunks), dtype=kind.array_dtype)


def _tiff(path: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """Create a TIFF file, whose pages lie as arrays do."""
    tifffile = _package("tifffile", path)
    if np.dtype(dtype) == bool:
        raise SemanticError(
            f"{path}: TIFF files pack eight bools in a byte, which windows cannot write: give the result as "
            '`.astype("uint8")`, or stream to .npy, .zarr or .h5'
        )
    if len(shape) < 2:
        raise SemanticError(
            f"{path}: pages of TIFF files have two axes, but the result has one; stream to .npy, .zarr or .h5"
        )
    return tifffile.memmap(path, shape=shape, dtype=dtype, bigtiff=True, photometric="minisblack")


def written(array: Any, at: Any, points: Array) -> None:
    """Write points of a result, so that another process sees them if this one is killed."""
    array[at] = points
    file = getattr(array, "file", None)
    if file is not None and hasattr(file, "flush"):
        file.flush()
    unmapped(array)


def checksum(points: Array) -> int:
    """Return a checksum of points, by which a later stream recognizes what was written."""
    return zlib.crc32(np.ascontiguousarray(points).reshape(-1).view(np.uint8).data)


def is_written(array: Any, at: Any, sum_: int) -> bool:
    """Return whether points of a result are as they were written: files may be cut off, or replaced."""
    now = checksum(array[at])
    unmapped(array)
    return now == sum_


def unmapped(array: Any) -> None:
    """Release the pages of a file from this process; the system still caches them."""
    mapped = mapping(array)
    if mapped is not None and mapped.mode != "c":
        release_pages(mapped._mmap)  # type: ignore[attr-defined]


def file_of(out: Any) -> str | None:
    """Return the file of an array, if it has one."""
    if isinstance(out, (str, os.PathLike)):
        return in_file(out)[0]
    return os.fspath(out.filename) if isinstance(out, np.memmap) and out.filename else None


def mapping(array: Any) -> np.memmap[Any, Any] | None:
    """Return the memory map of a file that an array is a part of, if there is one."""
    maps = [each for each in _bases(array) if isinstance(each, np.memmap) and each.filename]
    return maps[-1] if maps else None


def _bases(array: Any) -> Iterator[Any]:
    while isinstance(array, np.ndarray):
        yield array
        array = array.base


def _again(path: str, name: str, ending: str, mode: Any) -> Any:
    if ending == ".npy":
        return np.lib.format.open_memmap(path, mode="r+")
    if ending in TIFF:
        return _package("tifffile", path).memmap(path, mode="r+")
    if ending in HDF5:
        return _dataset(_package("h5py", path).File(path, mode), name or "data", path)
    return _package("zarr", path).open_array(path, mode="r+")


def _fitting(out: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    if tuple(out.shape) != shape or np.dtype(out.dtype) != dtype:
        raise SemanticError(
            f"`out=` is {tuple(out.shape)} {np.dtype(out.dtype)}, and the result {shape} {np.dtype(dtype)}"
        )
    return out


def in_file(source: Any) -> tuple[str, str, str]:
    """Return a path, the name of an array in the file, and the kind of file."""
    if not isinstance(source, (str, os.PathLike)):
        instead = "; write `list(…)` around it" * isinstance(source, Iterator)
        raise SemanticError(f"a source is an array, its path, or a list of paths, not {described(source)}{instead}")
    path, _, name = named(source).partition(":/")
    kind = os.path.splitext(path.rstrip("/"))[1].lower()
    if IN_ZARR.fullmatch(path):
        kind = ".zarr"
    if kind not in (".npy", ".zarr", *TIFF, *HDF5):
        raise SemanticError(
            f"{path}: files are .npy, .tif, .zarr (or an array in one, `volume.zarr/0`), or .h5 (with the array's name, "
            "`volume.h5:/data`)"
        )
    return path, name, kind


def _package(name: str, path: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise SemanticError(f"{path} needs the package {name}: `pip install {name}`") from None


def _dataset(file: Any, name: str, path: str) -> Any:
    if name in file or (not name and len(file) == 1):
        return file[name or next(iter(file))]
    what = f"no array {name!r}" if name else f"{len(file)} arrays"
    raise SemanticError(f"{path} has {what}; name one, as in `{path}:/{next(iter(file), 'data')}`")


def _of_group(group: Any) -> Any:
    """Return an array, or the array of an OME-Zarr group that has all points."""
    if hasattr(group, "shape"):
        return group
    facts = dict(group.attrs)
    scales = facts.get("ome", facts).get(LEVEL)
    if not scales:
        raise SemanticError("this zarr group has several arrays and is no OME-Zarr image; give the path of one")
    return group[scales[0]["datasets"][0]["path"]]


def spare_in_zarr(path: str) -> None:
    """Raise a SemanticError if a new array would replace a non-empty group, or a folder that is no zarr."""
    if not os.path.lexists(path) or _is_array(path):
        return
    others = sorted(set(os.listdir(path)) - OF_GROUPS) if os.path.isdir(path) else [os.path.basename(path)]
    if others:
        raise SemanticError(
            f"`out=` {path} is no array and has {_list(others)}: give an array in it, as `{path}/data`, or delete it first"
        )


def spare_in_hdf5(h5py: Any, path: str, name: str) -> None:
    """Raise a SemanticError if a new dataset would replace others, a group, or a file that is not HDF5."""
    if not os.path.lexists(path) or not os.path.getsize(path):
        return
    if not h5py.is_hdf5(path):
        raise SemanticError(f"`out=` {path} is there and no HDF5 file: give another path, or delete it first")
    try:
        with h5py.File(path, "r") as file:
            replaced = file.get(name or "data")
            inside = sorted(replaced) if isinstance(replaced, h5py.Group) else None
            others = [] if name else sorted(set(file) - {"data"})
    except OSError:  # cut off while it was written
        return
    if inside is not None:
        raise SemanticError(
            f"`out=` {path}:/{name or 'data'} is a group with {_list(inside)}: give the name of an array, or of none that is there"
        )
    if others:
        raise SemanticError(
            f"`out=` {path} is there and has {_list(others)}: name the array to write, as `{path}:/data`, or delete it first"
        )


def _is_array(path: str) -> bool:
    if os.path.exists(os.path.join(path, ".zarray")):
        return True
    try:
        with open(os.path.join(path, "zarr.json"), encoding="utf-8") as file:
            return bool(json.load(file).get("node_type") == "array")
    except (OSError, ValueError, AttributeError):
        return False


def _list(names: list[str]) -> str:
    first = ", ".join(map(repr, names[:SHOWN])) or "nothing in it"
    return f"{first} and {len(names) - SHOWN} more" if len(names) > SHOWN else first
