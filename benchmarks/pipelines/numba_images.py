"""Cameras, simulations and reductions for Numba: a pass for each stage, rows in parallel. Compiled by `peers_cpu.py`."""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from .images import COLOURS, TANGENT
from .numba_stencils import F, clamped, gradient, inline, reflected

MATRIX = np.array(COLOURS, np.float32)


def sharper(a, blurred, out):
    for r in prange(a.shape[0]):
        for c in range(a.shape[1]):
            out[r, c] = a[r, c] + F(1.5) * (a[r, c] - blurred[r, c])


# --- Canny, after the Gaussian ----------------------------------------------------------------------------------------


def gradients(a, gx, gy, strength):
    rows, columns = a.shape
    for r in prange(rows):
        for c in range(columns):
            n, s, w, e = max(r - 1, 0), min(r + 1, rows - 1), max(c - 1, 0), min(c + 1, columns - 1)
            x, y = gradient(a, n, r, s, w, c, e)
            gx[r, c], gy[r, c], strength[r, c] = x, y, math.sqrt(x * x + y * y)


def thin(gx, gy, strength, out):
    rows, columns = strength.shape
    for r in prange(rows):
        for c in range(columns):
            x, y, own = abs(gx[r, c]), abs(gy[r, c]), strength[r, c]
            i, j = 1, 1 if gx[r, c] * gy[r, c] > 0 else -1
            if y < x * F(TANGENT):
                i, j = 0, 1
            elif x < y * F(TANGENT):
                i, j = 1, 0
            ahead = strength[r + i, c + j] if r + i < rows and 0 <= c + j < columns else F(0)
            behind = strength[r - i, c - j] if r >= i and 0 <= c - j < columns else F(0)
            kept = own > ahead and own >= behind
            out[r, c] = (kept and own > F(0.15)) + (kept and own > F(0.3))


# --- bytes ----------------------------------------------------------------------------------------------------------------


def luma_rows(picture, sums):
    rows, columns = picture.shape[1:]
    for r in prange(rows):
        line = np.empty(columns + 4, np.uint8)
        for c in range(columns):
            red, green, blue = picture[0, r, c], picture[1, r, c], picture[2, r, c]
            line[c + 2] = (np.uint16(77) * red + np.uint16(150) * green + np.uint16(29) * blue) >> 8
        line[0] = line[1] = line[2]
        line[columns + 2] = line[columns + 3] = line[columns + 1]
        for c in range(columns):
            outer = np.uint16(line[c]) + line[c + 4]
            sums[r, c] = outer + 4 * (np.uint16(line[c + 1]) + line[c + 3]) + 6 * np.uint16(line[c + 2])


def blur_threshold(sums, out):
    rows, columns = sums.shape
    for r in prange(rows):
        a, b, own = sums[clamped(r - 2, rows)], sums[clamped(r - 1, rows)], sums[r]
        d, e = sums[clamped(r + 1, rows)], sums[clamped(r + 2, rows)]
        for c in range(columns):
            total = np.uint16(a[c] + e[c] + 4 * (b[c] + d[c]) + 6 * own[c] + 128)
            out[r, c] = 255 if (total >> 8) > 128 else 0


def histogram(levels, counts):
    strips = 64
    own = np.zeros((strips, 4, 256), np.int32)
    flat = levels.ravel()
    step = (flat.size + strips - 1) // strips
    for s in prange(strips):
        h = own[s]
        end = min((s + 1) * step, flat.size)
        for k in range(s * step, end - 3, 4):
            h[0, flat[k]] += 1
            h[1, flat[k + 1]] += 1
            h[2, flat[k + 2]] += 1
            h[3, flat[k + 3]] += 1
        for k in range(end - (end - s * step) % 4, end):
            h[0, flat[k]] += 1
    counts[:] = own.reshape(-1, 256).sum(axis=0)


def levels_of(image, levels):
    rows, columns = image.shape
    for r in prange(rows):
        a, b, d = image[max(r - 1, 0)], image[r], image[min(r + 1, rows - 1)]
        for c in range(columns):
            w, e = max(c - 1, 0), min(c + 1, columns - 1)
            total = a[w] + a[c] + a[e] + b[w] + b[c] + b[e] + d[w] + d[c] + d[e]
            levels[r, c] = np.uint8(total * F(1 / 9) * F(255))


def brighten(image, counts, out):
    above, level = 0, 255
    while above < image.size // 10 and level > 0:
        above += counts[level]
        level -= 1
    gain = F(0.9 * 255) / F(level + 1)
    for r in prange(image.shape[0]):
        for c in range(image.shape[1]):
            out[r, c] = min(image[r, c] * gain, F(1))


# --- a camera's raw picture -------------------------------------------------------------------------------------------------


def without_hot_pixels(raw, out):
    rows, columns = raw.shape
    for r in prange(rows):
        n, own, s = raw[reflected(r - 2, rows)], raw[r], raw[reflected(r + 2, rows)]
        for c in range(columns):
            w, e = own[reflected(c - 2, columns)], own[reflected(c + 2, columns)]
            low, high = min(min(n[c], s[c]), min(w, e)), max(max(n[c], s[c]), max(w, e))
            out[r, c] = min(max(own[c], low), high)


@inline
def tone(x):
    x = max(x, F(0))
    return x * (F(6.2) * x + F(0.5)) / (x * (F(6.2) * x + F(1.7)) + F(0.06))


def colours(raw, out):
    rows, columns = raw.shape
    m = MATRIX
    for r in prange(rows):
        n, o, s = raw[reflected(r - 1, rows)], raw[r], raw[reflected(r + 1, rows)]
        for c in range(columns):
            w, e = reflected(c - 1, columns), reflected(c + 1, columns)
            own, sides, ends = F(o[c]), (F(o[w]) + F(o[e])) * F(0.5), (F(n[c]) + F(s[c])) * F(0.5)
            cross, corners = (sides + ends) * F(0.5), (F(n[w]) + F(n[e]) + F(s[w]) + F(s[e])) * F(0.25)
            if r % 2 == 0:
                red, blue = (sides, ends) if c % 2 == 0 else (own, corners)
            else:
                red, blue = (corners, own) if c % 2 == 0 else (ends, sides)
            green = own if (r + c) % 2 == 0 else cross
            red, green, blue = red * F(1 / 1023), green * F(1 / 1023), blue * F(1 / 1023)
            for k in range(3):
                out[k, r, c] = tone(m[k, 0] * red + m[k, 1] * green + m[k, 2] * blue)


def sharpen(picture, out):
    rows, columns = picture.shape[1:]
    for r in prange(rows):
        for k in range(3):
            n, o, s = picture[k, reflected(r - 1, rows)], picture[k, r], picture[k, reflected(r + 1, rows)]
            for c in range(columns):
                w, e = reflected(c - 1, columns), reflected(c + 1, columns)
                x = o[c] + F(0.5) * (o[c] - F(0.25) * (n[c] + s[c] + o[w] + o[e]))
                out[k, r, c] = np.uint8(min(max(x * F(255) + F(0.5), F(0)), F(255)))


# --- simulations and reductions ---------------------------------------------------------------------------------------------


@inline
def lives(a, n, r, s, w, c, e):
    neighbours = a[n, w] + a[n, c] + a[n, e] + a[r, w] + a[r, e] + a[s, w] + a[s, c] + a[s, e]
    return np.uint8((np.uint8(neighbours) | a[r, c]) == np.uint8(3))


def life(cells, out):
    rows, columns = cells.shape
    last = columns - 1
    for r in prange(rows):
        n, s = (r - 1) % rows, (r + 1) % rows
        for c in range(1, last):
            out[r, c] = lives(cells, n, r, s, c - 1, c, c + 1)
        out[r, 0] = lives(cells, n, r, s, last, 0, 1)
        out[r, last] = lives(cells, n, r, s, last - 1, last, 0)


def life_trace(cells, trace, out, fading):
    rows, columns = cells.shape
    last = columns - 1
    for r in prange(rows):
        n, s = (r - 1) % rows, (r + 1) % rows
        for c in range(1, last):
            out[r, c] = lives(cells, n, r, s, c - 1, c, c + 1)
        out[r, 0] = lives(cells, n, r, s, last, 0, 1)
        out[r, last] = lives(cells, n, r, s, last - 1, last, 0)
        for c in range(columns):
            fading[r, c] = max(F(0.97) * trace[r, c], F(cells[r, c]))


@inline
def react(u, v, p, q, r, n, s, w, c, e):
    a, b = u[r, c], v[r, c]
    abb = a * b * b
    du = u[n, c] + u[s, c] + u[r, w] + u[r, e] - F(4) * a
    dv = v[n, c] + v[s, c] + v[r, w] + v[r, e] - F(4) * b
    p[r, c] = a + (F(0.16) * du - abb + F(0.035) * (F(1) - a))
    q[r, c] = b + (F(0.08) * dv + abb - F(0.095) * b)


def gray_scott(u, v, p, q):
    rows, columns = u.shape
    for r in prange(rows):
        n, s, last = (r - 1) % rows, (r + 1) % rows, columns - 1
        for c in range(1, last):
            react(u, v, p, q, r, n, s, c - 1, c, c + 1)
        react(u, v, p, q, r, n, s, last, 0, 1)
        react(u, v, p, q, r, n, s, last - 1, last, 0)


def heat(u, out):
    layers, rows, columns = u.shape
    for z in prange(layers):
        for y in range(rows):
            own, up, down = u[z, y], u[max(z - 1, 0), y], u[min(z + 1, layers - 1), y]
            north, south, line = u[z, max(y - 1, 0)], u[z, min(y + 1, rows - 1)], out[z, y]
            for x in range(columns):
                w, e = own[max(x - 1, 0)], own[min(x + 1, columns - 1)]
                line[x] = own[x] + F(0.1) * (up[x] + down[x] + north[x] + south[x] + w + e - F(6) * own[x])


@inline
def chained(x):
    return min(math.sqrt(abs(x * F(1.25) - F(0.5))) * F(2) + x, F(1.5)) * F(0.5)


def row_sums(x, out):
    for r in prange(x.shape[0]):
        total = F(0)
        for c in range(x.shape[1]):
            total += chained(x[r, c])
        out[r] = total


def column_sums(x, out):
    rows, columns = x.shape
    strips = np.zeros((32, columns), np.float32)
    for s in prange(32):
        line = strips[s]
        for r in range(s * rows // 32, (s + 1) * rows // 32):
            for c in range(columns):
                line[c] += chained(x[r, c])
    out[:] = strips.sum(axis=0)


def transpose(x, out):
    rows, columns = x.shape
    for i in prange((rows + 31) // 32):
        end = min(32 * i + 32, rows)
        for j in range(0, columns, 32):
            for c in range(j, min(j + 32, columns)):
                for r in range(32 * i, end):
                    out[c, r] = chained(x[r, c])
