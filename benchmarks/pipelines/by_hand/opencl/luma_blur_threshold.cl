// 64 rows for a work-item: a row of grey bytes and five rows of 16-bit sums go round in private memory; image has three planes
#define ROWS 64
#define WIDE(p) convert_ushort16(vload16(0, p))

kernel void luma_blur_threshold(global const uchar *restrict image, global uchar *restrict out) {
    const int r0 = get_global_id(0) * ROWS;
    uchar grey[W + 48];
    ushort sums[5][W];
    for (int r = r0 - 2; r < r0 + ROWS + 2; r++) {
        global const uchar *row = image + clamp(r, 0, H - 1) * W;
        for (int c = 0; c < W; c += 16) {
            const ushort16 red = WIDE(row + c), green = WIDE(row + H * W + c), blue = WIDE(row + 2 * H * W + c);
            const ushort16 luma = (red * (ushort)77 + green * (ushort)150 + blue * (ushort)29) >> (ushort)8;
            vstore16(convert_uchar16(luma), 0, grey + 16 + c);
        }
        grey[14] = grey[15] = grey[16];
        grey[16 + W] = grey[17 + W] = grey[15 + W];
        private ushort *sum = sums[(r + 5) % 5];
        for (int c = 0; c < W; c += 16) {
            private const uchar *g = grey + 14 + c;
            vstore16(WIDE(g) + WIDE(g + 4) + (ushort)4 * (WIDE(g + 1) + WIDE(g + 3)) + (ushort)6 * WIDE(g + 2), 0, sum + c);
        }
        for (int c = 0; r >= r0 + 2 && c < W; c += 16) {
            ushort16 s[5];
            EACH for (int k = 0; k < 5; k++) s[k] = vload16(0, sums[(r + 1 + k) % 5] + c);
            const ushort16 blurred = (s[0] + s[4] + (ushort)4 * (s[1] + s[3]) + (ushort)6 * s[2] + (ushort)128) >> (ushort)8;
            vstore16(convert_uchar16(blurred > (ushort)128 ? (ushort16)255 : (ushort16)0), 0, out + (r - 2) * W + c);
        }
    }
}
