"""Libraries of NVIDIA's in PyPI's packages, which are not where the linker looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def in_wheels(packages: Iterable[str], name: str) -> Iterator[str]:
    """Paths of the libraries whose file names begin so, in the order of the packages."""
    import importlib.metadata

    for package in packages:
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        yield from (str(file.locate()) for file in files if file.name.startswith(name))
