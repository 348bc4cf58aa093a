"""Fixtures of what gpuop keeps on disk."""

from __future__ import annotations

import pytest

from gpuop.base.cache import disk_memo
from gpuop.base.config import config

OLD = -1e9  # seconds that files must be older than the import: all are


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """An empty folder of what is kept, which is looked at though passes are verified in tests."""
    monkeypatch.setattr(config, "cache", tmp_path / "cache")
    monkeypatch.setattr(config, "verify", False)
    monkeypatch.setattr(disk_memo, "SETTLED", OLD)
    disk_memo.makers.cache_clear()
    yield tmp_path / "cache"
    disk_memo.makers.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch, disk):
    """Files in the place of gpuop's."""
    for folder in disk_memo.MAKERS:
        (tmp_path / "package" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "package" / folder / "some.py").write_text(f"# of {folder}")
    monkeypatch.setattr(disk_memo, "PACKAGE", str(tmp_path / "package"))
    return tmp_path / "package"
