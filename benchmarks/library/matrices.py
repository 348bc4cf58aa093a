"""The functions of `gpuop.linalg`."""

from __future__ import annotations

from .row import Row


def of(name: str, arguments: str, torch: str = "", compared: str = "r", module: str = "linalg") -> Row:
    """PyTorch's is the same call of its own module, unless another is given.

    Args:
        module: of the reference: `numpy.linalg`, or `np`.
    """
    reference = "" if module == "linalg" else f"{module}.{name}({arguments})"
    theirs = torch or f"torch.linalg.{name}({arguments})"
    return Row("linalg", name, f"linalg.{name}({arguments})", reference, compared, torch=theirs)


OF_VALUES = "[r[0], (r[1] * r[0][..., None, :]) @ r[1].swapaxes(-1, -2)]"
OF_PRODUCT = "[r[1], (r[0] * r[1][..., None, :]) @ r[2]]"
SQUARES, ROW = "square, other_square", "row[:size], other_row[:size]"
ROWS = [
    of("matmul", SQUARES),
    of("dot", SQUARES, f"torch.matmul({SQUARES})", module="np"),
    of("einsum", f"'ij,jk', {SQUARES}", f"torch.einsum('ij,jk', {SQUARES})", module="np"),
    of("tensordot", f"{SQUARES}, axes=1", f"torch.tensordot({SQUARES}, 1)"),
    of("outer", ROW, f"torch.outer({ROW})"),
    of("matvec", "matrices, columns", "torch.einsum('nij,nj->ni', matrices, columns)", module="np"),
    of("vecmat", "columns, matrices", "torch.einsum('ni,nij->nj', columns, matrices)", module="np"),
    of("vecdot", "vectors, other_vectors"),
    of("cross", "vectors, other_vectors"),
    of("trace", "matrices", "torch.einsum('nii->n', matrices)"),
    of("diagonal", "matrices"),
    of("matrix_transpose", "matrices", "matrices.mT.contiguous()"),
    of("det", "matrices"),
    of("slogdet", "matrices"),
    of("inv", "matrices"),
    of("solve", "matrices, positive"),
    of("cholesky", "positive"),
    Row(
        "linalg", "qr", "linalg.qr(matrices)", compared="[abs(x) for x in r]", torch="torch.linalg.qr(matrices)", part=8
    ),
    of("eigh", "positive", compared=OF_VALUES),
    of("eigvalsh", "positive"),
    of("svd", "matrices", compared=OF_PRODUCT),
    of("svdvals", "matrices"),
    of("pinv", "matrices"),
    of("lstsq", "rectangle, line"),
    of("matrix_rank", "matrices"),
    of("cond", "matrices"),
    of("norm", "image"),
]
