"""The kernels written by hand that gpuop is measured beside compile, where there is no GPU too."""

from __future__ import annotations

import pytest

from benchmarks.pipelines.by_hand_cuda import HANDS, text_of
from tests.codegen.nvrtc import compile_cuda


@pytest.mark.parametrize("name", HANDS)
def test_by_hand_cuda(name):
    compile_cuda(text_of(HANDS[name], (64, 256, 256) if name == "heat1" else (256, 512)), "sm_90")
