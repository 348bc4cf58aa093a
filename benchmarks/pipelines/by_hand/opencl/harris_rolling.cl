// 16 columns for a work-item, which goes down 32 rows: what the next rows need again stays in registers
#define ROWS 32

kernel void harris_rolling(global const float *restrict image, global float *restrict out) {
    const int c = clamp((int)get_global_id(0) * 16, 2, W - 18), r0 = get_global_id(1) * ROWS;
    const int first = max(r0, 2) - 1, end = min(r0 + ROWS, H - 2) + 1;
    float16 p[3][5], xx[3], yy[3], xy[3];
    EACH for (int j = 0; j < 5; j++) {
        p[0][j] = LOAD(image, first - 1, c + j - 2);
        p[1][j] = LOAD(image, first, c + j - 2);
    }
    for (int r = first; r < end; r++) {
        xx[2] = yy[2] = xy[2] = 0;
        EACH for (int j = 0; j < 5; j++) p[2][j] = LOAD(image, r + 1, c + j - 2);
        EACH for (int j = 0; j < 3; j++) {
            const float16 x = (p[0][j+2] + 2 * p[1][j+2] + p[2][j+2] - p[0][j] - 2 * p[1][j] - p[2][j]) * (1.0f / 12);
            const float16 y = (p[2][j] + 2 * p[2][j+1] + p[2][j+2] - p[0][j] - 2 * p[0][j+1] - p[0][j+2]) * (1.0f / 12);
            xx[2] += x * x;
            yy[2] += y * y;
            xy[2] += x * y;
        }
        if (r >= first + 2) {
            const float16 a = xx[0] + xx[1] + xx[2], b = yy[0] + yy[1] + yy[2], d = xy[0] + xy[1] + xy[2], trace = a + b;
            STORE(a * b - d * d - 0.04f * trace * trace, out, r - 1, c);
        }
        EACH for (int i = 0; i < 2; i++) {
            xx[i] = xx[i+1];
            yy[i] = yy[i+1];
            xy[i] = xy[i+1];
            EACH for (int j = 0; j < 5; j++) p[i][j] = p[i+1][j];
        }
    }
}
