// a strip of rows for a work-item, which has four histograms, so that equal neighbours do not wait for one another
kernel void histogram(global const uchar *restrict levels, global int *restrict counts) {
    int own[4][256] = {{0}};
    global const uint *words = (global const uint *)(levels + get_global_id(0) * (H / 64) * W);
    for (int i = 0; i < H / 64 * W / 4; i++) {
        const uint four = words[i];
        own[0][four & 255]++;
        own[1][four >> 8 & 255]++;
        own[2][four >> 16 & 255]++;
        own[3][four >> 24]++;
    }
    for (int k = 0; k < 256; k++) atomic_add(counts + k, own[0][k] + own[1][k] + own[2][k] + own[3][k]);
}
