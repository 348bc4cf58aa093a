"""The plugin of pytest for environments that were installed when it lay here; `pip install -e .` finds it in its place."""

from gpuop.testing.plugin import *  # noqa: F403
