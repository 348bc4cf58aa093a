// What generated CUDA C++ needs to be C++ of the host: blocks run one after another, the threads of a block are fibers,
// which go on where all of a block, or of a warp, have come. A kernel without barriers and exchanges is two loops.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __constant__
#define __shared__ static __attribute__((section("shared_memory")))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __launch_bounds__(...)
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 13

struct Place { unsigned x, y, z; };
static Place threadIdx, blockIdx, blockDim, gridDim;

// --- threads ---------------------------------------------------------------------------------------------------------

enum Outcome { RIGHT, FAULT, DIVERGED };
const unsigned WARP = 32, MOST = 1024;
const size_t STACK = 1 << 17;

struct Meeting { unsigned here, turn; };
struct Fiber { ucontext_t context; Place thread; unsigned number; bool ended; };
struct Warp { Meeting meeting; unsigned lanes; unsigned long long given[WARP], taken[WARP]; };

static Fiber fibers[MOST], *now;
static Warp warps[MOST / WARP];
static Meeting block;
static ucontext_t scheduler;
static char *stacks;
static unsigned alive;
static bool moved, in_fibers;
static sigjmp_buf before;

static void others() {
    Fiber *const mine = now;
    swapcontext(&mine->context, &scheduler);
}

// Goes on when so many threads have come; what the last one does is done before.
template <class Last>
static void meet(Meeting &meeting, unsigned count, Last last) {
    moved = true;
    if (++meeting.here == count) {
        last();
        meeting.here = 0;
        meeting.turn++;
        return;
    }
    for (const unsigned turn = meeting.turn; turn == meeting.turn;) others();
    moved = true;
}

static void __syncthreads() { meet(block, blockDim.x * blockDim.y * blockDim.z, [] {}); }

template <class T>
static T exchanged(T value, unsigned from) {
    Warp &warp = warps[now->number / WARP];
    const unsigned lane = now->number % WARP;
    warp.given[lane] = 0;
    memcpy(&warp.given[lane], &value, sizeof(T));
    meet(warp.meeting, warp.lanes, [&] { memcpy(warp.taken, warp.given, sizeof(warp.given)); });
    memcpy(&value, &warp.taken[from % WARP], sizeof(T));
    return value;
}

template <class T>
static T __shfl_sync(unsigned, T value, int lane, int width = 32) {
    const unsigned mine = now->number % WARP;
    return exchanged(value, (mine & ~(width - 1)) + (lane & (width - 1)));
}
template <class T>
static T __shfl_up_sync(unsigned, T value, unsigned by, int width = 32) {
    const unsigned mine = now->number % WARP;
    return exchanged(value, (mine & (width - 1)) < by ? mine : mine - by);
}
template <class T>
static T __shfl_down_sync(unsigned, T value, unsigned by, int width = 32) {
    const unsigned mine = now->number % WARP;
    return exchanged(value, (mine & (width - 1)) + by >= (unsigned)width ? mine : mine + by);
}
static unsigned __ballot_sync(unsigned, bool is) {
    Warp &warp = warps[now->number / WARP];
    exchanged((unsigned long long)is, 0);
    unsigned found = 0;
    for (unsigned k = 0; k < warp.lanes; k++) found |= (unsigned)warp.taken[k] << k;
    return found;
}

static void fault(int) { siglongjmp(before, FAULT); }

extern char __start_shared_memory[] __attribute__((weak)), __stop_shared_memory[] __attribute__((weak));

// Local memory holds no zeros, and nothing of the block before.
static void forget() {
    if (__start_shared_memory) memset(__start_shared_memory, 0xa5, __stop_shared_memory - __start_shared_memory);
}

static void (*body)(void **);
static void **arguments;

static void fiber() {
    body(arguments);
    now->ended = moved = true;
    alive--;
    for (;;) others();
}

static Outcome in_turns(unsigned count) {
    block = {0, 0};
    for (unsigned k = 0; k < MOST / WARP; k++) {
        warps[k].meeting = {0, 0};
        warps[k].lanes = count < (k + 1) * WARP ? count - (count < k * WARP ? count : k * WARP) : WARP;
    }
    for (unsigned k = 0; k < count; k++) {
        Fiber &made = fibers[k];
        getcontext(&made.context);
        made.context.uc_stack.ss_sp = stacks + k * STACK;
        made.context.uc_stack.ss_size = STACK;
        made.context.uc_link = nullptr;
        made.thread = {k % blockDim.x, k / blockDim.x % blockDim.y, k / (blockDim.x * blockDim.y)};
        made.number = k;
        made.ended = false;
        makecontext(&made.context, fiber, 0);
    }
    for (alive = count, moved = true; alive && moved;) {
        moved = false;
        for (unsigned k = 0; k < count; k++) {
            now = &fibers[k];
            threadIdx = now->thread;
            if (!now->ended) swapcontext(&scheduler, &now->context);
        }
    }
    return alive ? DIVERGED : RIGHT;
}

static void one_by_one(unsigned count) {
    for (unsigned k = 0; k < count; k++) {
        threadIdx = {k % blockDim.x, k / blockDim.x % blockDim.y, k / (blockDim.x * blockDim.y)};
        body(arguments);
    }
}

template <auto kernel, class... A, size_t... k>
static void called(void (*)(A...), void **given, std::index_sequence<k...>) {
    kernel(*(std::remove_cv_t<A> *)given[k]...);
}

// Size: blocks along columns, rows and layers, and threads of a block.
template <auto kernel, class... A>
static int launched(void (*typed)(A...), void **given, const unsigned *size, bool together) {
    gridDim = {size[0], size[1], size[2]};
    blockDim = {size[3], size[4], size[5]};
    body = [](void **given) { called<kernel>((void (*)(A...))nullptr, given, std::index_sequence_for<A...>{}); };
    arguments = given;
    if (together && !stacks) stacks = (char *)mmap(0, MOST * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    struct sigaction mine = {}, old[4];
    mine.sa_handler = fault;
    mine.sa_flags = SA_NODEFER;
    for (int k = 0; k < 4; k++) sigaction(signals[k], &mine, &old[k]);
    volatile int outcome = sigsetjmp(before, 1);
    if (!outcome) {
        const unsigned count = blockDim.x * blockDim.y * blockDim.z;
        for (blockIdx.z = 0; blockIdx.z < gridDim.z && !outcome; blockIdx.z++)
            for (blockIdx.y = 0; blockIdx.y < gridDim.y && !outcome; blockIdx.y++)
                for (blockIdx.x = 0; blockIdx.x < gridDim.x && !outcome; blockIdx.x++) {
                    forget();
                    if (together) outcome = in_turns(count);
                    else one_by_one(count);
                }
    }
    for (int k = 0; k < 4; k++) sigaction(signals[k], &old[k], nullptr);
    return outcome;
}

// --- functions of CUDA ------------------------------------------------------------------------------------------------

template <class A, class B> static std::common_type_t<A, B> min(A x, B y) {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>) return fmin((T)x, (T)y);
    else return (T)x < (T)y ? (T)x : (T)y;
}
template <class A, class B> static std::common_type_t<A, B> max(A x, B y) {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>) return fmax((T)x, (T)y);
    else return (T)x > (T)y ? (T)x : (T)y;
}
template <class To, class From> static To same_bits(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To y;
    memcpy(&y, &x, sizeof(To));
    return y;
}
static float __int_as_float(int x) { return same_bits<float>(x); }
static float __uint_as_float(unsigned x) { return same_bits<float>(x); }
static int __float_as_int(float x) { return same_bits<int>(x); }
static unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
static double __longlong_as_double(long long x) { return same_bits<double>(x); }
static long long __double_as_longlong(double x) { return same_bits<long long>(x); }
static int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
static unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
static unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
static unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned word = 0;
    for (int k = 0; k < 4; k++) {
        const unsigned chosen = selector >> 4 * k, byte = both >> 8 * (chosen & 7) & 0xff;
        word |= (chosen & 8 ? byte & 0x80 ? 0xff : 0 : byte) << 8 * k;
    }
    return word;
}
template <class T, class F> static int rounded_to_zero(F x) {
    return x != x ? 0 : x <= -2147483648.0 ? -2147483647 - 1 : x >= 2147483647.0 ? 2147483647 : (int)x;
}
static int __float2int_rz(float x) { return rounded_to_zero<int>(x); }
static int __double2int_rz(double x) { return x != x ? -2147483647 - 1 : rounded_to_zero<int>(x); }
#define __log2f log2f  // which the host's library has as names of its own
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
static float __fdividef(float x, float y) { return x / y; }
static float rsqrt(float x) { return (float)(1 / sqrt((double)x)); }
static double rsqrt(double x) { return (double)(1 / sqrtl((long double)x)); }
static float exp10(float x) { return exp10f(x); }
const long double PI = 3.14159265358979323846264338327950288L;
// Exact at multiples of a half, as CUDA's.
template <class T> static T turned(T x, int quarters) {
    const long double a = fmodl((long double)x, 2), k = roundl(2 * a), rest = (a - k / 2) * PI;
    const int quarter = (((int)k + quarters) % 4 + 4) % 4;
    const long double y = quarter % 2 ? cosl(rest) : sinl(rest);
    return (T)(quarter < 2 ? y : -y);
}
static float sinpi(float x) { return isfinite(x) ? copysign(turned(x, 0), turned(x, 0) == 0 ? x : turned(x, 0)) : nanf(""); }
static double sinpi(double x) { return isfinite(x) ? copysign(turned(x, 0), turned(x, 0) == 0 ? x : turned(x, 0)) : nan(""); }
template <class T> static T cospi(T x) { return isfinite(x) ? turned(x, 1) + (T)0 : (T)nan(""); }

// The host's library tells NaNs that signal from others, which CUDA's does not.
template <class T> static T quiet(T x) { return x != x ? (T)nan("") : x; }
#define OF_ANY_NAN(name) \
    template <class A, class B> static auto any_##name(A x, B y) { return name(quiet(x), quiet(y)); }
OF_ANY_NAN(fmax)
OF_ANY_NAN(fmin)
OF_ANY_NAN(hypot)
OF_ANY_NAN(pow)
#define fmax any_fmax
#define fmin any_fmin
#define hypot any_hypot
#define pow any_pow

// The threads of a block take turns at barriers alone, so plain statements are one step.
#define ATOMIC(name, change)                                            \
    template <class T> static T name(T *p, std::common_type_t<T> x) { \
        const T old = *p;                                               \
        *p = (T)(change);                                               \
        return old;                                                     \
    }
ATOMIC(atomicAdd, old + x)
ATOMIC(atomicSub, old - x)
ATOMIC(atomicMin, x < old ? x : old)
ATOMIC(atomicMax, x > old ? x : old)
ATOMIC(atomicAnd, old & x)
ATOMIC(atomicOr, old | x)
ATOMIC(atomicXor, old ^ x)
ATOMIC(atomicExch, x)
template <class T> static T atomicCAS(T *p, std::common_type_t<T> seen, std::common_type_t<T> x) {
    const T old = *p;
    if (old == seen) *p = x;
    return old;
}

// --- instructions ------------------------------------------------------------------------------------------------------

template <class T> static void ptx_cvt_rn_f16_f32(T &y, float x) { y = same_bits<unsigned short>((_Float16)x); }
template <class T> static void ptx_cvt_rn_f16_f64(T &y, double x) { y = same_bits<unsigned short>((_Float16)x); }
static void ptx_cvt_f32_f16(float &y, unsigned short x) { y = (float)same_bits<_Float16>(x); }
static void ptx_cvt_s32_s8(int &y, unsigned x) { y = (signed char)(unsigned char)x; }
static void ptx_cvt_s32_s16(int &y, unsigned x) { y = (short)(unsigned short)x; }
// the nearest number that a narrow type holds
template <class To, class T> static int clipped(T x) {
    const To least = std::is_signed_v<To> ? (To)(1u << (8 * sizeof(To) - 1)) : (To)0, most = (To)~least;
    return std::is_signed_v<T> && x < (T)0 ? ((long long)x < least ? least : (int)x) : (unsigned long long)x > (unsigned long long)most ? most : (int)x;
}
#define CLIPS(code, To) \
    static void ptx_cvt_sat_##code##_s32(int &y, int x) { y = clipped<To>(x); } \
    static void ptx_cvt_sat_##code##_u32(int &y, unsigned x) { y = clipped<To>(x); } \
    static void ptx_cvt_sat_##code##_s64(int &y, long long x) { y = clipped<To>(x); } \
    static void ptx_cvt_sat_##code##_u64(int &y, unsigned long long x) { y = clipped<To>(x); }
#define TRUNCATES(code, To) \
    static void ptx_cvt_rzi_##code##_f32(int &y, float x) { \
        y = x != x ? 0 : x <= -40000.0f ? clipped<To>(-40000) : x >= 70000.0f ? clipped<To>(70000) : clipped<To>((int)x); \
    }
TRUNCATES(s8, signed char)
TRUNCATES(u8, unsigned char)
TRUNCATES(s16, short)
TRUNCATES(u16, unsigned short)
CLIPS(s8, signed char)
CLIPS(u8, unsigned char)
CLIPS(s16, short)
CLIPS(u16, unsigned short)
static void ptx_ex2_approx_ftz_f32(float &y, float x) { y = exp2f(x); }
static void ptx_sqrt_approx_ftz_f32(float &y, float x) { y = sqrtf(x); }
static void ptx_min_NaN_f32(float &z, float x, float y) {
    z = x != x || y != y ? nanf("") : x < y || (x == y && signbit(x)) ? x : y;
}
static void ptx_max_NaN_f32(float &z, float x, float y) {
    z = x != x || y != y ? nanf("") : x > y || (x == y && !signbit(x)) ? x : y;
}
template <bool most> static unsigned of_halves(unsigned x, unsigned y) {
    unsigned word = 0;
    for (int k = 0; k < 32; k += 16) {
        const unsigned a = x >> k & 0xffff, b = y >> k & 0xffff;
        word |= ((a > b) == most ? a : b) << k;
    }
    return word;
}
static void ptx_min_u16x2(unsigned &z, unsigned x, unsigned y) { z = of_halves<false>(x, y); }
static void ptx_max_u16x2(unsigned &z, unsigned x, unsigned y) { z = of_halves<true>(x, y); }
