"""All rows, of which the benchmark and docs/reference/library-table.md are made."""

from __future__ import annotations

from . import arrays, images, matrices, numbers, spectra, ufuncs
from .row import Row

ROWS: dict[str, Row] = {
    row.key: row
    for rows in (images.ROWS, matrices.ROWS, spectra.ROWS, numbers.ROWS, arrays.ROWS, ufuncs.ROWS)
    for row in rows
}
