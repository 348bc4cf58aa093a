// blocks of 16×16 in registers, transposed by four stages of shuffles
#define SHUFFLE(a, b, low) { const float16 t = a; a = shuffle2(t, b, low); b = shuffle2(t, b, low + STEP); }

kernel void transpose(global const float *restrict image, global float *restrict out) {
    const int c = get_global_id(0) * 16, r = get_global_id(1) * 16;
    float16 v[16];
    EACH for (int i = 0; i < 16; i++) v[i] = chain(LOAD(image, r + i, c));
    #define STEP 8u
    EACH for (int i = 0; i < 8; i++) SHUFFLE(v[i], v[i + 8], ((uint16)(0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23)))
    #undef STEP
    #define STEP 4u
    EACH for (int i = 0; i < 16; i++) if (!(i & 4)) SHUFFLE(v[i], v[i + 4], ((uint16)(0,1,2,3,16,17,18,19,8,9,10,11,24,25,26,27)))
    #undef STEP
    #define STEP 2u
    EACH for (int i = 0; i < 16; i++) if (!(i & 2)) SHUFFLE(v[i], v[i + 2], ((uint16)(0,1,16,17,4,5,20,21,8,9,24,25,12,13,28,29)))
    #undef STEP
    #define STEP 1u
    EACH for (int i = 0; i < 16; i++) if (!(i & 1)) SHUFFLE(v[i], v[i + 1], ((uint16)(0,16,2,18,4,20,6,22,8,24,10,26,12,28,14,30)))
    EACH for (int i = 0; i < 16; i++) vstore16(v[i], 0, out + (c + i) * H + r);
}
