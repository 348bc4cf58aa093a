// 4 columns for a thread, which goes through its layers; H and W are those of a layer, ROWS the layers of a thread
#define AT(l, r, c) (((long)(l) * H + (r)) * W + (c))

__device__ float warmed(float own, float up, float down, float north, float south, float west, float east) {
    return own + 0.1f * (up + down + north + south + west + east - 6.f * own);
}

extern "C" __global__ void heat1(const float *__restrict__ u, float *__restrict__ out) {
    const int c = (blockIdx.x * blockDim.x + threadIdx.x) * 4, r = blockIdx.y * blockDim.y + threadIdx.y, l0 = blockIdx.z * ROWS;
    const int n = max(r - 1, 0), s = min(r + 1, H - 1);
    float4 up = *reinterpret_cast<const float4 *>(u + AT(max(l0 - 1, 0), r, c)), own = *reinterpret_cast<const float4 *>(u + AT(l0, r, c));
    for (int l = l0; l < min(l0 + ROWS, LAYERS); l++) {
        const float4 down = *reinterpret_cast<const float4 *>(u + AT(min(l + 1, LAYERS - 1), r, c));
        const float4 north = *reinterpret_cast<const float4 *>(u + AT(l, n, c)), south = *reinterpret_cast<const float4 *>(u + AT(l, s, c));
        const float west = u[AT(l, r, max(c - 1, 0))], east = u[AT(l, r, min(c + 4, W - 1))];
        *reinterpret_cast<float4 *>(out + AT(l, r, c)) =
            make_float4(warmed(own.x, up.x, down.x, north.x, south.x, west, own.y), warmed(own.y, up.y, down.y, north.y, south.y, own.x, own.z),
                        warmed(own.z, up.z, down.z, north.z, south.z, own.y, own.w), warmed(own.w, up.w, down.w, north.w, south.w, own.z, east));
        up = own;
        own = down;
    }
}
