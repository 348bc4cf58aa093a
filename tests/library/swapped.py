"""A plugin for pytest that puts gpuop.ndimage into the place of scipy.ndimage, for SciPy's own tests of it."""

from __future__ import annotations

from typing import Any


def pytest_configure(config: Any) -> None:
    import scipy.ndimage as theirs
    from scipy._lib._array_api import xp_capabilities_table as known

    import gpuop.ndimage as ours

    for name in ours.__all__:
        old, new = getattr(theirs, name), getattr(ours, name)
        known[new] = known[old]
        setattr(theirs, name, new)
