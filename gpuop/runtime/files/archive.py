"""Zip files from untrusted sources: their headers are checked against their contents before anything is read.

Members lie uncompressed and one after the other, so a file's length bounds what is read from it.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np

from gpuop.base.cache.atomic_files import Path
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import DTYPES, FieldType
from gpuop.runtime.base.backend import Array

MAGIC = b"\x93NUMPY\x01\x00"
# The header as NumPy writes it for arrays in C order. NumPy evaluates the text there, which trusts it far more.
HEADER = re.compile(
    rb"\{'descr': '([<>|])([a-zA-Z]\d{1,9})', 'fortran_order': False, 'shape': \(([\d, ]{0,99})\), \} *\n"
)
LITTLE = "<|"
NAMES = {
    np.dtype(name).str[1:]: name for name in (*(d.name for d in DTYPES.values()), *COMPLEX_DTYPES)
}  # dtype names by NumPy code


class Damaged(Exception):
    """An error: a statement of the file does not hold; the message says which."""


class Foreign(Damaged):
    """An error: it is no zip file, or it is cut off."""


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open the members of a file.

    Raises:
        Foreign, Damaged: it is no such file, or its headers are wrong.
        OSError: it cannot be opened.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # open() of a pipe would wait for a writer
        raise Foreign
    with open(path, "rb") as file:
        yield Archive(file)


@contextmanager
def _damaged() -> Iterator[None]:
    """Turn the many exceptions of zipfile on malformed files into one."""
    try:
        yield
    except Exception as wrong:  # noqa: BLE001
        raise Damaged(str(wrong) or type(wrong).__name__) from None


class Archive:
    """The members of a file, by name."""

    def __init__(self, file: IO[bytes]) -> None:
        import zipfile

        self._file = file
        with _damaged():
            whole = zipfile.is_zipfile(file)
        if not whole:
            raise Foreign
        with _damaged():
            self._zip = zipfile.ZipFile(file)
        members = self._zip.infolist()
        for member in members:
            if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
                raise Damaged(f"{member.filename} is compressed, and members are stored as they are")
        length = file.seek(0, os.SEEK_END)
        if sum(member.file_size for member in members) > length or any(member.file_size < 0 for member in members):
            raise Damaged("its members are larger than the file")
        self.names = [member.filename for member in members]
        if len(set(self.names)) < len(members):
            raise Damaged("it has members of one name")

    def whole(self) -> bytes:
        """Return the whole file."""
        self._file.seek(0)
        return self._file.read()

    def read(self, name: str) -> bytes:
        if name not in self.names:
            raise Damaged(f"it has no {name}")
        with _damaged():
            return self._zip.read(name)

    def array(self, name: str, kind: FieldType) -> Array:
        """Return an array of a field's type."""
        array_dtype = kind.array_dtype
        order, code, shape, data = self._npy(name)
        if code != array_dtype.str[1:] or shape != tuple(kind.array_shape):
            dtype = NAMES.get(code, order + code)
            raise Damaged(f"{name} is {dtype} of shape {shape}, for a {kind} field")
        if len(data) != math.prod(shape) * array_dtype.itemsize:
            raise Damaged(f"{name} has {len(data)} bytes, for a {kind} field")
        array = np.frombuffer(data, order + code).reshape(shape).astype(array_dtype)
        if kind.dtype == "bool" and (array.view(np.uint8) > 1).any():
            raise Damaged(f"{name} has bytes that are no bools")
        return array

    def text(self, name: str) -> str:
        """Return the text in a NumPy array that has nothing else."""
        order, code, shape, data = self._npy(name)
        if code[0] != "U" or shape or len(data) != 4 * int(code[1:]):
            raise Damaged(f"{name} is no text")
        try:
            return data.decode("utf-32-le" if order in LITTLE else "utf-32-be")
        except UnicodeDecodeError as wrong:
            raise Damaged(f"{name}: {wrong}") from None

    def _npy(self, name: str) -> tuple[str, str, tuple[int, ...], bytes]:
        """Return the byte order, dtype and shape of an array, and its bytes."""
        data = self.read(name)
        start = len(MAGIC) + 2
        end = start + int.from_bytes(data[len(MAGIC) : start], "little")
        header = HEADER.fullmatch(data[start:end])
        if not data.startswith(MAGIC) or header is None:
            raise Damaged(f"{name} is no array as NumPy's `save` writes it")
        order, code, shape = (group.decode() for group in header.groups())
        return order, code, tuple(map(int, re.findall(r"\d+", shape))), data[end:]
