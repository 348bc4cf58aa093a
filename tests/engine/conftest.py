"""Fixtures of the tests of pipelines and of their sizes."""

from __future__ import annotations

import pytest

from gpuop.runtime.base.compiled import CompilingBackend
from gpuop.runtime.devices import current


@pytest.fixture
def built(monkeypatch):
    """The kernels that drivers have built."""
    if not isinstance(current(), CompilingBackend):
        pytest.skip("no device compiles")
    texts = []
    build = type(current()).build

    def counting(self, program, binary):
        texts.extend((source.entry, source.extents, source.threads) for source in program.sources)
        return build(self, program, binary)

    monkeypatch.setattr(type(current()), "build", counting)
    return texts
