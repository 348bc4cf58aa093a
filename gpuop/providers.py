"""Which function answers each question that fields ask of the layers above them (`gpuop/dsl/fields/services.py`)."""

from __future__ import annotations

from gpuop import array_namespace, evaluation, interop, submission, texts
from gpuop.dsl.fields import services
from gpuop.graphs import defining, inspection


class Providers:
    """Services: a type checker compares the signatures where they are set."""

    evaluate = staticmethod(evaluation.arrays)
    fetch = staticmethod(submission.fetch)
    keep = staticmethod(evaluation.keep)
    buffer = staticmethod(evaluation.buffer)
    source = staticmethod(texts.source)
    adopt = staticmethod(interop.adopt)
    export = staticmethod(interop.export)
    own = staticmethod(interop.own)
    set_next = staticmethod(defining.set_next)
    show = staticmethod(inspection.show)
    array_namespace = staticmethod(array_namespace.of_version)
    device_in_use = staticmethod(interop.device_in_use)


services.above = Providers()
