// 64 columns of bytes for a work-item, four in each of 16 words, down 8 rows: sums of at most 9 never carry
#define CELLS(r, c) vload16(0, (global const uint *)(cells + (r) * W + (c)))

kernel void life(global const uchar *restrict cells, global uchar *restrict out) {
    const int c = clamp((int)get_global_id(0) * 64, 1, W - 65), r0 = get_global_id(1) * 8, above = (r0 + H - 1) % H;
    uint16 own = CELLS(r0, c), sides = CELLS(r0, c - 1) + CELLS(r0, c + 1);
    uint16 before = CELLS(above, c - 1) + CELLS(above, c) + CELLS(above, c + 1);
    for (int r = r0; r < r0 + 8; r++) {
        const int below = (r + 1) % H;
        const uint16 next = CELLS(below, c), next_sides = CELLS(below, c - 1) + CELLS(below, c + 1);
        const uint16 differs = ((before + sides + next_sides + next) | own) ^ 0x03030303u;
        vstore16((~(differs + 0x7f7f7f7fu) >> 7) & 0x01010101u, 0, (global uint *)(out + r * W + c));
        before = sides + own;
        sides = next_sides;
        own = next;
    }
}
