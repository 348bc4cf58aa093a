"""Stencils for Numba: rows in parallel, edges apart, stages through lines of a row. Compiled by `peers_cpu.py`."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from .stencils import KERNEL, NEARNESS, RANGE, SPATIAL

WEIGHTS = np.array(KERNEL, np.float32)
NEAR = np.array(SPATIAL, np.float32)
TWELFTH, F = np.float32(1 / 12), np.float32
inline = njit(inline="always")


@inline
def reflected(k, n):
    k = abs(k)
    return k if k < n else 2 * n - 2 - k


@inline
def clamped(k, n):
    return min(max(k, 0), n - 1)


def chain8(x, out):
    for r in prange(x.shape[0]):
        for c in range(x.shape[1]):
            y = math.sqrt(abs(x[r, c] * F(1.25) - F(0.5)))
            out[r, c] = min(y * F(2) + x[r, c], F(1.5)) * F(0.5)


@inline
def convolved(a, n, r, s, w, c, e):
    k = WEIGHTS
    top = k[0, 0] * a[n, w] + k[0, 1] * a[n, c] + k[0, 2] * a[n, e]
    middle = top + k[1, 0] * a[r, w] + k[1, 1] * a[r, c] + k[1, 2] * a[r, e]
    return middle + k[2, 0] * a[s, w] + k[2, 1] * a[s, c] + k[2, 2] * a[s, e]


def conv3x3(a, out):
    rows, columns = a.shape
    for r in prange(rows):
        n, s, last = max(r - 1, 0), min(r + 1, rows - 1), columns - 1
        out[r, 0] = convolved(a, n, r, s, 0, 0, 1)
        for c in range(1, last):
            out[r, c] = convolved(a, n, r, s, c - 1, c, c + 1)
        out[r, last] = convolved(a, n, r, s, last - 1, last, last)


@inline
def gradient(a, n, r, s, w, c, e):
    x = a[n, e] + F(2) * a[r, e] + a[s, e] - a[n, w] - F(2) * a[r, w] - a[s, w]
    return x, a[s, w] + F(2) * a[s, c] + a[s, e] - a[n, w] - F(2) * a[n, c] - a[n, e]


@inline
def steepness(a, n, r, s, w, c, e):
    x, y = gradient(a, n, r, s, w, c, e)
    return math.sqrt(x * x + y * y)


def sobel(a, out):
    rows, columns = a.shape
    for r in prange(rows):
        n, s, last = max(r - 1, 0), min(r + 1, rows - 1), columns - 1
        out[r, 0] = steepness(a, n, r, s, 0, 0, 1)
        for c in range(1, last):
            out[r, c] = steepness(a, n, r, s, c - 1, c, c + 1)
        out[r, last] = steepness(a, n, r, s, last - 1, last, last)


@inline
def middle(a, n, r, s, w, c, e):
    l0, h0 = min(a[n, w], a[r, w]), max(a[n, w], a[r, w])
    l1, h1 = min(a[n, c], a[r, c]), max(a[n, c], a[r, c])
    l2, h2 = min(a[n, e], a[r, e]), max(a[n, e], a[r, e])
    m0, m1, m2 = max(l0, min(h0, a[s, w])), max(l1, min(h1, a[s, c])), max(l2, min(h2, a[s, e]))
    low = max(max(min(l0, a[s, w]), min(l1, a[s, c])), min(l2, a[s, e]))
    high = min(min(max(h0, a[s, w]), max(h1, a[s, c])), max(h2, a[s, e]))
    m = max(min(m0, m1), min(max(m0, m1), m2))
    return max(min(low, m), min(max(low, m), high))


def median3x3(a, out):
    rows, columns = a.shape
    for r in prange(rows):
        n, s, last = max(r - 1, 0), min(r + 1, rows - 1), columns - 1
        out[r, 0] = middle(a, n, r, s, 0, 0, 1)
        for c in range(1, last):
            out[r, c] = middle(a, n, r, s, c - 1, c, c + 1)
        out[r, last] = middle(a, n, r, s, last - 1, last, last)


def gauss(a, weights, out):
    """Down the columns into a line, then along the row."""
    rows, columns = a.shape
    radius = weights.size // 2
    for r in prange(rows):
        line = np.zeros(columns + 2 * radius, np.float32)
        own = line[radius : radius + columns]
        for k in range(weights.size):
            row = a[reflected(r + k - radius, rows)]
            for c in range(columns):
                own[c] += weights[k] * row[c]
        for k in range(1, radius + 1):
            line[radius - k] = line[radius + k]
            line[radius + columns - 1 + k] = line[radius + columns - 1 - k]
        total = out[r]
        total[:] = 0
        for k in range(weights.size):
            for c in range(columns):
                total[c] += weights[k] * line[c + k]


def harris(a, out):
    """Strips of 32 rows, whose products of three rows go round."""
    rows, columns = a.shape
    last = columns - 1
    for strip in prange((rows + 31) // 32):
        xx, yy = np.empty((3, columns + 2), np.float32), np.empty((3, columns + 2), np.float32)
        xy = np.empty((3, columns + 2), np.float32)
        for q in range(strip * 32 - 1, min(strip * 32 + 33, rows + 1)):
            own, k = clamped(q, rows), (q + 3) % 3
            n, s = max(own - 1, 0), min(own + 1, rows - 1)
            for c in range(columns):
                x, y = gradient(a, n, own, s, max(c - 1, 0), c, min(c + 1, last))
                x, y = x * TWELFTH, y * TWELFTH
                xx[k, c + 1], yy[k, c + 1], xy[k, c + 1] = x * x, y * y, x * y
            xx[k, 0], xx[k, columns + 1] = xx[k, 1], xx[k, columns]
            yy[k, 0], yy[k, columns + 1] = yy[k, 1], yy[k, columns]
            xy[k, 0], xy[k, columns + 1] = xy[k, 1], xy[k, columns]
            if q > strip * 32:
                i, j = (q + 1) % 3, (q + 2) % 3
                for c in range(columns):
                    sxx, syy, sxy = boxed(xx, i, j, k, c), boxed(yy, i, j, k, c), boxed(xy, i, j, k, c)
                    trace = sxx + syy
                    out[q - 1, c] = sxx * syy - sxy * sxy - F(0.04) * trace * trace


@inline
def boxed(p, i, j, k, c):
    top = p[i, c] + p[i, c + 1] + p[i, c + 2]
    return top + p[j, c] + p[j, c + 1] + p[j, c + 2] + p[k, c] + p[k, c + 1] + p[k, c + 2]


def bilateral5x5(a, out):
    rows, columns = a.shape
    for r in prange(rows):
        for c in range(columns):
            total, weights = F(0), F(0)
            for i in range(5):
                for j in range(5):
                    value = a[clamped(r + i - 2, rows), clamped(c + j - 2, columns)]
                    difference = value - a[r, c]
                    weight = math.exp(-(difference * difference) * F(RANGE)) * NEAR[i, j]
                    total += weight * value
                    weights += weight
            out[r, c] = total / weights


def nlm(a, out):
    rows, columns = a.shape
    wide = columns + 2
    for r in prange(rows):
        total, weights = np.zeros(columns, np.float32), np.zeros(columns, np.float32)
        squares = np.empty((3, wide), np.float32)
        for i in range(-3, 4):
            for j in range(-3, 4):
                for k in range(3):
                    q = clamped(r + k - 1, rows)
                    p = clamped(q + i, rows)
                    for c in range(columns):
                        difference = a[p, clamped(c + j, columns)] - a[q, c]
                        squares[k, c + 1] = difference * difference
                    squares[k, 0], squares[k, wide - 1] = squares[k, 1], squares[k, columns]
                p = clamped(r + i, rows)
                for c in range(columns):
                    weight = math.exp(-F(NEARNESS) * boxed(squares, 0, 1, 2, c))
                    total[c] += weight * a[p, clamped(c + j, columns)]
                    weights[c] += weight
        out[r] = total / weights


def mean_variance(a, mean, variance):
    rows, columns = a.shape
    for r in prange(rows):
        sums, squares = np.zeros(columns + 14, np.float32), np.zeros(columns + 14, np.float32)
        for k in range(-7, 8):
            row = a[clamped(r + k, rows)]
            for c in range(columns):
                sums[c + 7] += row[c]
                squares[c + 7] += row[c] * row[c]
        for k in range(7):
            sums[k], sums[columns + 7 + k] = sums[7], sums[columns + 6]
            squares[k], squares[columns + 7 + k] = squares[7], squares[columns + 6]
        m, v = mean[r], variance[r]
        m[:], v[:] = 0, 0
        for k in range(15):
            for c in range(columns):
                m[c] += sums[c + k]
                v[c] += squares[c + k]
        for c in range(columns):
            m[c] *= F(1 / 225)
            v[c] = v[c] * F(1 / 225) - m[c] * m[c]
