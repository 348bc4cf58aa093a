"""The functions of `gpuop.random`, beside those of NumPy's generators, whose numbers are others."""

from __future__ import annotations

from .row import Row


def of(name: str, arguments: str, theirs: str = "", torch: str = "") -> Row:
    return Row("random", name, f"random.{name}({arguments})", reference=theirs, compared="", torch=torch)


ROWS = [
    Row("random", "key", "random.key(7)", compared="", eager=True),
    of("split", "random.key(7)"),
    of("fold_in", "random.key(7), 3"),
    of("bits", "random.key(7), shape", "rng.integers(0, 2**32, shape, dtype=np.uint32)"),
    of("uniform", "random.key(7), shape", "rng.random(shape, dtype=np.float32)", "torch.rand(shape, device=device)"),
    of(
        "normal",
        "random.key(7), shape",
        "rng.standard_normal(shape, dtype=np.float32)",
        "torch.randn(shape, device=device)",
    ),
    of("exponential", "random.key(7), shape", "rng.standard_exponential(shape, dtype=np.float32)"),
    of(
        "integers",
        "random.key(7), 0, 100, shape",
        "rng.integers(0, 100, shape, dtype=np.int32)",
        "torch.randint(0, 100, shape, device=device)",
    ),
    of("bernoulli", "random.key(7), 0.3, shape", "rng.random(shape, dtype=np.float32) < 0.3"),
    of("poisson", "random.key(7), 4.0, shape", "rng.poisson(4.0, shape)"),
    of("permutation", "random.key(7), row", "rng.permutation(row)"),
    of("choice", "random.key(7), row, shape", "rng.choice(row, shape)"),
]
