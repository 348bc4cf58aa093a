"""Gradients of pipelines, beside those of JAX and PyTorch."""
