"""Pipelines as functions of the tensors of PyTorch and of the arrays of JAX, with gradients."""
