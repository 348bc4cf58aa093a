"""NVIDIA libraries in wheels from PyPI, which the linker does not search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def in_wheels(packages: Iterable[str], name: str) -> Iterator[str]:
    """Return the paths of libraries with this file name prefix, in the order of the packages."""
    import importlib.metadata

    for package in packages:
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        yield from (str(file.locate()) for file in files if file.name.startswith(name))
