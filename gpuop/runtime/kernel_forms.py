"""The forms of a kernel for users: its text, and the results of compilers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gpuop.base.errors import DeviceError, SemanticError
from gpuop.codegen.c.dialect import Source
from gpuop.ir.target import Target
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.base.interruptible import call_interruptibly
from gpuop.runtime.cuda.nvrtc import compile_cuda, resource_log
from gpuop.runtime.opencl.device import OpenCL
from gpuop.runtime.opencl.programs import resources

USED = r"Used (\d+) registers"
SPILLS = r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
SHARED = r"(\d+) bytes smem"


def kernel_form(source: Source, form: str, target: Target, backend: Backend | None) -> str:
    """Return a kernel in a form of FORMS.

    Args:
        backend: the device, if no target was named.

    Raises:
        SemanticError: there is no such form, or not for this target.
        CompileError, DeviceError: the compiler refuses the text, or there is none.
    """
    if form == "text":
        return source.text
    if form not in FORMS:
        raise SemanticError(f"there is no form {form!r}; one of {', '.join(map(repr, ('text', *FORMS)))}")
    if target.backend == "cuda":
        where, make = str(target), partial(FORMS[form], source.text, f"sm_{target.architecture}")
    elif form != "resources":
        raise SemanticError(f"{form} is a form of CUDA kernels; name a target as cuda:sm_90")
    elif isinstance(backend, OpenCL):
        where = backend.name
        make = partial(resources, backend.context, backend.device, backend.options, source.text, source.entry)
    else:
        name = backend.name if backend else target
        raise SemanticError(f"the resources of kernels are known for OpenCL devices and CUDA targets, not for {name}")
    try:
        text = call_interruptibly((form, where, source.text), make, where, source.name)
    except RuntimeError as refused:
        raise source.refused(where, str(refused)) from None
    return f"// {source.name} on {where}\n{text.strip()}\n"


# --- of CUDA ------------------------------------------------------------------------------------------------------------


def _resources(text: str, architecture: str) -> str:
    log = resource_log(text, architecture)
    used, spills, local = (re.search(pattern, log) for pattern in (USED, SPILLS, SHARED))
    stack, stored, loaded = spills.groups() if spills else (0, 0, 0)
    return (
        f"{used[1] if used else 0} registers of a thread, {stored} bytes spilled and {loaded} loaded again, {stack} bytes of "
        f"stack, {local[1] if local else 0} bytes of local memory"
    )


def _sass(text: str, architecture: str) -> str:
    tool = shutil.which("nvdisasm")
    if tool is None:
        raise DeviceError("sass needs nvdisasm, which is not on the PATH; it comes with the CUDA toolkit")
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(compile_cuda(text, architecture))
        return subprocess.run([tool, str(cubin)], capture_output=True, text=True, check=True).stdout


FORMS: dict[str, Callable[[str, str], str]] = {
    "resources": _resources,
    "ptx": lambda text, architecture: compile_cuda(text, architecture, "ptx").decode().rstrip("\0"),
    "sass": _sass,
}
