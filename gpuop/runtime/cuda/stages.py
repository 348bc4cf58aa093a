"""Stages of CUDA: page-locked memory of the host and a block of the device."""

from __future__ import annotations

from gpuop.base.errors import DeviceError
from gpuop.ir.types import FieldType
from gpuop.runtime.base.launch_list import LaunchList, Values
from gpuop.runtime.base.stages import Stage, Stages
from gpuop.runtime.cuda.memory import CudaMemory


class CudaStages(Stages):
    """The stages of a stream."""

    def __init__(self, memory: CudaMemory) -> None:
        super().__init__()
        self.memory = memory

    def new(self, size: int) -> Stage:
        block = self.memory.allocate(FieldType((size,), (), "uint8"))
        return Stage(self.memory.host_memory(size), block.address, block)

    def run(self, stage: Stage, launches: LaunchList, values: Values, sent: int, end: int) -> None:
        memory, host = self.memory, stage.host.__array_interface__["data"][0]
        calls, stream = memory.stream.calls, memory.handle
        try:
            with memory.active():
                if sent:
                    calls.to_device(stage.address, host, sent, stream)
                launches.run(values, {})
                calls.to_host(host + sent, stage.address + sent, end - sent, stream)
                calls.finish(stream)
        except DeviceError as failed:
            raise DeviceError(f"{memory.name}: {failed}; CUDA is lost to this process, start another one") from None
