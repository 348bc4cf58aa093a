"""The functions of `gpuop.ndimage`."""

from __future__ import annotations

from .row import Row

R = "borderType=cv2.BORDER_REFLECT"
CROSS = "cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))"
NINE = "np.ones((9, 9), 'u1')"
ZEROS = "borderType=cv2.BORDER_CONSTANT, borderValue=0"


def of(name: str, arguments: str, cv2: str = "", skimage: str = "", torch: str = "", **more: int | str) -> Row:
    return Row("ndimage", name, f"ndimage.{name}({arguments})", cv2=cv2, skimage=skimage, torch=torch, **more)  # type: ignore[arg-type]


def morphology(operation: str, structure: str = NINE, of: str = "image", border: str = R) -> str:
    return f"cv2.morphologyEx({of}, cv2.MORPH_{operation}, {structure}, {border})"


def binary(operation: str, structure: str = CROSS) -> str:
    return morphology(operation, structure, "mask.view('u1')", ZEROS)


FILTERS = [
    of("correlate1d", "image, taps", f"cv2.filter2D(image, -1, taps[None], {R})"),
    of("convolve1d", "image, taps, axis=0", f"cv2.filter2D(image, -1, taps[::-1, None], {R})"),
    of("correlate", "image, window", f"cv2.filter2D(image, -1, window, {R})"),
    of("convolve", "image, window", f"cv2.filter2D(image, -1, window[::-1, ::-1], {R})"),
    of(
        "convolve",
        "image, many, method='fft'",
        f"cv2.filter2D(image, -1, many[::-1, ::-1], {R})",
        reference="ndimage.convolve(image, many)",
        method="fft",
        part=4,
    ),
    of("gaussian_filter1d", "image, 2", f"cv2.GaussianBlur(image, (17, 1), 2, {R})"),
    of(
        "gaussian_filter",
        "image, 2",
        f"cv2.GaussianBlur(image, (17, 17), 2, {R})",
        "skimage.filters.gaussian(image, 2)",
    ),
    of("uniform_filter1d", "image, 9", f"cv2.blur(image, (9, 1), {R})"),
    of("uniform_filter", "image, 9", f"cv2.blur(image, (9, 9), {R})"),
    of("minimum_filter1d", "image, 9", f"cv2.erode(image, np.ones((1, 9), 'u1'), {R})"),
    of("maximum_filter1d", "image, 9", f"cv2.dilate(image, np.ones((1, 9), 'u1'), {R})"),
    of("minimum_filter", "image, 9", f"cv2.erode(image, {NINE}, {R})"),
    of(
        "maximum_filter",
        "image, 9",
        f"cv2.dilate(image, {NINE}, {R})",
        torch="torch.nn.functional.max_pool2d(image[None, None], 9, 1, 4)",
    ),
    of("sobel", "image", f"cv2.Sobel(image, cv2.CV_32F, 1, 0, {R})", "skimage.filters.sobel_v(image)"),
    of("prewitt", "image", "", "skimage.filters.prewitt_v(image)"),
    of("laplace", "image", f"cv2.Laplacian(image, cv2.CV_32F, {R})", "skimage.filters.laplace(image)"),
    of("gaussian_laplace", "image, 2"),
    of("gaussian_gradient_magnitude", "image, 2"),
    of("generic_laplace", "image, ndimage.sobel"),
    of("generic_gradient_magnitude", "image, ndimage.sobel"),
    of("rank_filter", "image, 6, size=5", part=2),
    of(
        "median_filter",
        "image, 5",
        "cv2.medianBlur(image, 5)",
        "skimage.filters.median(image, np.ones((5, 5)))",
        part=2,
    ),
    of("percentile_filter", "image, 30, size=5", part=2),
    of("geometric_transform", "image, lambda p: (p[0] * 0.99 + 2.0, p[1] * 0.98 + 3.0), order=1", part=8),
    of("generic_filter", "image, np.ptp, 3", part=8),
    of("vectorized_filter", "image, np.ptp, size=3", part=2),
    of("generic_filter1d", "image, lambda line, out: np.copyto(out, line[1:-1]), 3", part=2),
    of("fourier_gaussian", "waves, 2"),
    of("fourier_uniform", "waves, 5"),
    of("fourier_shift", "waves, 2.5"),
    of("fourier_ellipsoid", "waves, 5"),
]
MORPHOLOGY = [
    of(
        "grey_erosion",
        "image, 9",
        f"cv2.erode(image, {NINE}, {R})",
        "skimage.morphology.erosion(image, np.ones((9, 9)))",
    ),
    of(
        "grey_dilation",
        "image, 9",
        f"cv2.dilate(image, {NINE}, {R})",
        "skimage.morphology.dilation(image, np.ones((9, 9)))",
    ),
    of("grey_opening", "image, 9", morphology("OPEN")),
    of("grey_closing", "image, 9", morphology("CLOSE")),
    of("morphological_gradient", "image, 9", morphology("GRADIENT")),
    of("morphological_laplace", "image, 9"),
    of("white_tophat", "image, 9", morphology("TOPHAT")),
    of("black_tophat", "image, 9", morphology("BLACKHAT")),
    of("binary_erosion", "mask", binary("ERODE")),
    of("binary_dilation", "mask", binary("DILATE")),
    of("binary_opening", "mask", binary("OPEN")),
    of("binary_closing", "mask", binary("CLOSE")),
    of("binary_hit_or_miss", "mask", binary("HITMISS", f"2 * {CROSS}.astype('i1') - 1")),
    of("binary_propagation", "other_mask, mask=mask"),
    of("binary_fill_holes", "blobs"),
    of("generate_binary_structure", "2, 1", eager=True),
    of("iterate_structure", "cross, 3", eager=True),
]
OF_LABELS = ("sum_labels", "sum", "mean", "variance", "standard_deviation", "minimum", "maximum")
PLACED, PLACES = (
    ("center_of_mass", "minimum_position", "maximum_position"),
    "np.array([[x.item() for x in at] for at in r])",
)
MEASUREMENTS = [
    of(
        "label",
        "blobs",
        "cv2.connectedComponents(blobs.view('u1'), connectivity=4)",
        "skimage.measure.label(blobs, connectivity=1)",
    ),
    *(of(name, "image, labels, index") for name in OF_LABELS),
    of("median", "image, labels, index", part=2),
    *(of(name, "image, labels, index", part=2, compared=PLACES) for name in PLACED),
    of("extrema", "image, labels, index", part=2, compared=f"[*r[:2], *({PLACES} for r in r[2:])]"),
    of("histogram", "image, 0, 1, 16, labels, index", part=4, compared="list(r)"),
    of("find_objects", "labels", eager=True),
    of("value_indices", "labels", part=2, eager=True),
    of("labeled_comprehension", "image, labels, index, len, int, 0", part=4, eager=True),
    of(
        "distance_transform_edt", "blobs", "cv2.distanceTransform(blobs.view('u1'), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)"
    ),
    of("distance_transform_cdt", "blobs", "cv2.distanceTransform(blobs.view('u1'), cv2.DIST_C, 3)"),
    of("distance_transform_bf", "blobs", part=16),
    of("watershed_ift", "bytes, labels", part=8),
]
INTERPOLATION = [
    of("map_coordinates", "image, places, order=1", "cv2.remap(image, places[1], places[0], cv2.INTER_LINEAR)"),
    of(
        "affine_transform",
        "image, near, offset, order=1",
        "cv2.warpAffine(image, np.float32([[.99, -.1, 5], [.1, .99, 3]]), shape, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)",
    ),
    of("rotate", "image, 10, order=1, reshape=False", "", "skimage.transform.rotate(image, 10)"),
    of("shift", "image, 2.5, order=3"),
    of("zoom", "image, 1.5, order=1, grid_mode=True, mode='nearest'", "cv2.resize(image, None, fx=1.5, fy=1.5)"),
    of("spline_filter", "image, output='f4'"),
    of("spline_filter1d", "image, output='f4'"),
]
ROWS = [*FILTERS, *MORPHOLOGY, *MEASUREMENTS, *INTERPOLATION]
