"""Cog names for ports: `gpuop.cog.crossCorrelate(image, filter, gpuop.cog.BorderClamp)`, on page docs/how-to/port-from-cog.md.

Functions take Fields. A name that only renames is the NumPy or gpuop function itself.
"""

import numpy as np

from gpuop import linalg
from gpuop.base import lazy

FUNCTIONS = {
    "filters": (
        "backProjectFrame bilateralFilter convolve convolveFilterAdjoint convolveSeparable crossCorrelate "
        "crossCorrelateFilterAdjoint crossCorrelateSeparable localMax localMaxPosition localMin localMinPosition "
        "medianFilter nonMaximumSuppression orientedNonMaximumSuppression projectFrame backwardDivergence "
        "backwardGradient centralGradient domainFilterColumns domainFilterRows domainTransformRows forwardGradient"
    ),
    "structure": (
        "BorderClamp BorderCyclic BorderFull BorderValid BorderZero apply downsample expand flip matrixField "
        "replicate reshape select shift shiftCyclic stack subfield subfields supersample transpose trim upsample "
        "vectorElements vectorField warp"
    ),
    "values": (
        "blockReduceMax blockReduceMin blockReduceSum colorField complex crossDot dct dctInverse "
        "dctInverseTransposed dctTransposed dot fft fftColumns fftInverse fftInverseColumns fftInverseRI "
        "fftInverseRows fftRI fftRows fieldReduceMax fieldReduceMedian fieldReduceMin fieldReduceSum luminance "
        "maxPosition normalizeL1 normalizeL2 outer polarComplex reciprocal reduceMax reduceMin reduceSum "
        "reverseCrossDot transform transposeVectors winnerTakeAll"
    ),
}
OF_NUMPY = {
    "abs": "absolute", "floor": "floor", "log": "log", "exp": "exp", "sqrt": "sqrt", "sq": "square", "signum": "sign",
    "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "acos": "arccos",
    "asin": "arcsin", "atan2": "arctan2", "pow": "power", "max": "maximum", "min": "minimum", "copy": "copy", "phase": "angle",
    "magnitude": "absolute", "conjugate": "conjugate", "realPart": "real", "imaginaryPart": "imag",
}  # fmt: skip
OF_LINALG = {
    "determinant": "det", "invertMatrices": "inv", "solve": "solve", "conditionNumber": "cond",
    "transposeMatrices": "matrix_transpose",
}  # fmt: skip
_NAMES = lazy.defined("gpuop.lib.cog", FUNCTIONS)
_NAMES |= {name: getattr(np, own) for name, own in OF_NUMPY.items()}
_NAMES |= {name: getattr(linalg, own) for name, own in OF_LINALG.items()}
globals().update(_NAMES)
__all__ = [*sorted(_NAMES)]


def __dir__() -> list[str]:
    return list(__all__)
