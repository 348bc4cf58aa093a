"""Calls of the library's functions: what a type checker knows of them, and what it refuses.

`test_typing.py` runs mypy on this file. It is never imported.
"""

from typing import Any, assert_type

import numpy as np

import gpuop as gp
from gpuop import testing

field = gp.ScalarField(np.zeros((8, 8), np.float32))
array = np.zeros((8, 8), np.float32)

# Of a field they give a field, of an array what it is of: with SciPy's and NumPy's names of arguments
assert_type(gp.ndimage.gaussian_filter(field, 2), gp.Field)
assert_type(gp.ndimage.gaussian_filter(input=field, sigma=(1, 2.5), mode=["wrap", "nearest"], axes=(0, 1)), gp.Field)
assert_type(gp.ndimage.gaussian_filter(array, np.float32(2), output=np.float64), Any)
assert_type(gp.ndimage.median_filter(field, size=3, mode="mirror", cval=0).numpy().shape, tuple[Any, ...])
assert_type(gp.ndimage.zoom([[1, 2], [3, 4]], 2, order=1, grid_mode=True), Any)
assert_type(gp.ndimage.binary_erosion(field > 0, structure=np.ones((3, 3)), iterations=2), gp.Field)
assert_type(gp.fft.fft2(field, norm="ortho"), gp.Field)
assert_type(gp.fft.next_fast_len(17), int)
assert_type(gp.linalg.solve(field, array), gp.Field)
assert_type(gp.linalg.norm(field, axis=0, keepdims=True), gp.Field)
assert_type(gp.random.uniform(gp.random.key(1), (3, 4), low=-1.0), gp.Field)
testing.assert_allclose(field, array)

gp.ndimage.gaussian_filter(field, "2")  # refused: arg-type
gp.ndimage.gaussian_filter(field, 2, mode="reflekt")  # refused: arg-type
gp.ndimage.gaussian_filter(field, 2, trunc=3)  # refused: call-overload
gp.ndimage.gaussian_filter("photo.png", 2)  # refused: call-overload
gp.ndimage.gaussian_filter(field)  # refused: call-overload
gp.ndimage.gausian_filter(field, 2)  # refused: attr-defined
gp.ndimage.rotate(field, "90")  # refused: call-overload
gp.ndimage.zoom(field, 2, order="cubic")  # refused: arg-type
gp.fft.fft2(field, shape=(8, 8))  # refused: call-overload
gp.linalg.solve(field)  # refused: call-overload
gp.random.uniform(1, (3, 4))  # refused: arg-type
gp.random.uniform(gp.random.key(1), shape="3x4")  # refused: arg-type
gp.linalg.det(field).shapes  # refused: attr-defined
