"""Images as PNG, without a library."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
COLORS = {1: 0, 3: 2, 4: 6}  # the PNG colour type, by channels


def png(pixels: Pixels) -> bytes:
    """The bytes of a PNG file, from uint8 of shape (rows, columns) or (rows, columns, 3 or 4)."""
    rows, columns = pixels.shape[:2]
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    lines = np.zeros((rows, 1 + columns * channels), np.uint8)  # each line starts with its filter, none
    lines[:, 1:] = pixels.reshape(rows, -1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, COLORS[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(_chunk, chunks))


def _chunk(named: tuple[bytes, bytes]) -> bytes:
    name, data = named
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def data_uri(pixels: Pixels) -> str:
    """An image as a data URI."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")
