"""The CUDA source of the GPU engine: gather rows, add them up, apply the threshold, scale to length, store.

A block of threads works on one row at a time, and each thread on VEC neighbouring columns, CHUNKS times. Only the rows
of the product are read from and written to memory; threshold and length are computed in registers. Rows with very many
non-zeros are cut into segments that are summed first (`gather_segments`), so that no block works alone on the most
frequent word. Segments are added in order, so the result does not depend on which one is finished first.

STORE is float, double or bf16 (as unsigned short). ACC is the type of sums. emulation.py has a slow version of the same
arithmetic, and tests compare the two.
"""

SOURCE = r"""
#if BF16
typedef unsigned short STORE; typedef float ACC;
__device__ __forceinline__ float load(STORE v) { return __uint_as_float(((unsigned int)v) << 16); }
__device__ __forceinline__ STORE store(float v) {
    unsigned int bits = __float_as_uint(v);
    return (STORE)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);   // to the nearest, ties to even
}
#elif WIDE
typedef double STORE; typedef double ACC;
__device__ __forceinline__ double load(STORE v) { return v; }
__device__ __forceinline__ STORE store(double v) { return v; }
#else
typedef float STORE; typedef float ACC;
__device__ __forceinline__ float load(STORE v) { return v; }
__device__ __forceinline__ STORE store(float v) { return v; }
#endif
struct __align__(VEC * sizeof(STORE)) Pack { STORE v[VEC]; };
struct __align__(VEC * sizeof(ACC) <= 16 ? VEC * sizeof(ACC) : 16) Sums { ACC v[VEC]; };
typedef long long Long;

#define UNROLL (CHUNKS <= 2 ? 4 : CHUNKS <= 4 ? 2 : 1)

// Adds rows of `dense` to the sums, several at a time so that their loads overlap; the last ones too, which are most.
__device__ __forceinline__ void add_rows(const Long first, const Long last, const int* indices, const ACC* data,
                                         const STORE* dense, const int width, ACC acc[CHUNKS][VEC]) {
    for (Long p = first; p < last; p += UNROLL) {
        ACC w[UNROLL]; Pack row[UNROLL][CHUNKS];
        #pragma unroll
        for (int i = 0; i < UNROLL; i++)
            if (p + i < last) {
                w[i] = __ldg(data + p + i);
                const STORE* start = dense + (Long)__ldg(indices + p + i) * width;
                #pragma unroll
                for (int k = 0; k < CHUNKS; k++) {
                    const int c = (k * THREADS + threadIdx.x) * VEC;
                    if (c < width) row[i][k] = *(const Pack*)(start + c);
                }
            }
        #pragma unroll
        for (int i = 0; i < UNROLL; i++)
            if (p + i < last)
                #pragma unroll
                for (int k = 0; k < CHUNKS; k++)
                    if ((k * THREADS + threadIdx.x) * VEC < width)
                        #pragma unroll
                        for (int j = 0; j < VEC; j++) acc[k][j] += w[i] * load(row[i][k].v[j]);
    }
}

__device__ __forceinline__ void clear(ACC acc[CHUNKS][VEC]) {
    #pragma unroll
    for (int k = 0; k < CHUNKS; k++)
        #pragma unroll
        for (int j = 0; j < VEC; j++) acc[k][j] = 0;
}

__device__ __forceinline__ void row_sum(const Long row, const Long* indptr, const int* indices, const ACC* data,
                                        const STORE* dense, const int* part_of, const ACC* parts, const int width,
                                        ACC acc[CHUNKS][VEC]) {
    const int part = part_of[row], end = part_of[row + 1];
    clear(acc);
    if (part == end) add_rows(indptr[row], indptr[row + 1], indices, data, dense, width, acc);
    for (int s = part; s < end; s++)
        #pragma unroll
        for (int k = 0; k < CHUNKS; k++) {
            const int c = (k * THREADS + threadIdx.x) * VEC;
            if (c < width)
                #pragma unroll
                for (int j = 0; j < VEC; j++) acc[k][j] += parts[(Long)s * width + c + j];
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gather_segments(
        const Long* begin, const Long* end, const Long n, const int* indices, const ACC* data, const STORE* dense,
        ACC* parts, const int width) {
    ACC acc[CHUNKS][VEC];
    for (Long s = blockIdx.x; s < n; s += gridDim.x) {
        clear(acc);
        add_rows(begin[s], end[s], indices, data, dense, width, acc);
        #pragma unroll
        for (int k = 0; k < CHUNKS; k++) {
            const int c = (k * THREADS + threadIdx.x) * VEC;
            if (c < width)
                #pragma unroll
                for (int j = 0; j < VEC; j++) parts[s * width + c + j] = acc[k][j];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gather(
        const Long n, const Long* indptr, const int* indices, const ACC* data, const STORE* dense, const int* part_of,
        const ACC* parts, STORE* out, const int width) {
    ACC acc[CHUNKS][VEC];
    for (Long row = blockIdx.x; row < n; row += gridDim.x) {
        row_sum(row, indptr, indices, data, dense, part_of, parts, width, acc);
        #pragma unroll
        for (int k = 0; k < CHUNKS; k++) {
            const int c = (k * THREADS + threadIdx.x) * VEC;
            if (c >= width) continue;
            Pack made;
            #pragma unroll
            for (int j = 0; j < VEC; j++) made.v[j] = store(acc[k][j]);
            *(Pack*)(out + row * width + c) = made;
        }
    }
}

#if !WIDE
template <typename N> __device__ __forceinline__ N block_sum(N value, N* room) {
    for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (THREADS == 32) return value;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    __syncthreads();
    if (lane == 0) room[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < (THREADS >> 5) ? room[lane] : (N)0;
        for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
        if (lane == 0) room[0] = value;
    }
    __syncthreads();
    return room[0];
}

// `row` is what is shrunk, `raw` what the alignment is counted with; columns past the width are 0.
__device__ __forceinline__ void shrink_row(const ACC row[CHUNKS][VEC], const ACC raw[CHUNKS][VEC], STORE* out,
                                           const int width, const int mode, const double value, const double theta,
                                           const double norm_power, ACC aligned[CHUNKS][VEC]) {
    __shared__ double room[32];
    float sum = 0;  // of one thread's few numbers; over the block in double
    for (int k = 0; k < CHUNKS; k++) for (int j = 0; j < VEC; j++) sum += row[k][j] * row[k][j];
    const double squares = block_sum((double)sum, room);
    float threshold = (float)value;
    if (mode == 1) threshold = (float)(value * sqrt(squares / width));
    if (mode == 2) {  // the least number that at most `value` entries are above, bit by bit
        unsigned int low = 0, high = 0x7f800000u;
        while (low < high) {
            const unsigned int middle = low + (high - low) / 2;
            double above = 0;
            for (int k = 0; k < CHUNKS; k++)
                for (int j = 0; j < VEC; j++) above += __float_as_uint(fabsf(row[k][j])) > middle;
            if (block_sum(above, room) <= value) high = middle; else low = middle + 1;
        }
        threshold = __uint_as_float(low);
    }
    sum = 0;
    for (int k = 0; k < CHUNKS; k++)
        for (int j = 0; j < VEC; j++) {
            const float size = fmaxf(fabsf(row[k][j]) - threshold, 0.0f);
            sum += size * size;
        }
    const double left = block_sum((double)sum, room);
    float scale = 0.0f;
    if (left > 0)
        scale = (float)(theta * (norm_power == 0 ? 1.0 : pow(squares, 0.5 * norm_power)) / sqrt(left));
    #pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        const int c = (k * THREADS + threadIdx.x) * VEC;
        if (c >= width) continue;
        Pack made;
        #pragma unroll
        for (int j = 0; j < VEC; j++) {
            const float size = fmaxf(fabsf(row[k][j]) - threshold, 0.0f);
            const float number = (row[k][j] > 0 ? size : -size) * scale;
            made.v[j] = store(number);
            aligned[k][j] += raw[k][j] * number;
        }
        *(Pack*)(out + c) = made;
    }
}

__device__ __forceinline__ void write_aligned(ACC aligned[CHUNKS][VEC], double* alignment, const int width) {
    for (int k = 0; k < CHUNKS; k++) {
        const int c = (k * THREADS + threadIdx.x) * VEC;
        if (c < width) for (int j = 0; j < VEC; j++) alignment[(Long)blockIdx.x * width + c + j] = aligned[k][j];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, FEWER) gather_shrink(
        const Long n, const Long* indptr, const int* indices, const ACC* data, const STORE* dense, const int* part_of,
        const ACC* parts, STORE* out, const int width, const int mode, const double value, const double theta,
        const double norm_power, double* alignment) {
    ACC acc[CHUNKS][VEC], aligned[CHUNKS][VEC];
    clear(aligned);
    for (Long row = blockIdx.x; row < n; row += gridDim.x) {
        row_sum(row, indptr, indices, data, dense, part_of, parts, width, acc);
        shrink_row(acc, acc, out + row * width, width, mode, value, theta, norm_power, aligned);
    }
    write_aligned(aligned, alignment, width);
}

extern "C" __global__ void __launch_bounds__(THREADS, FEWER) shrink(
        const Long n, const float* source, const float* before, STORE* out, const int width, const int mode,
        const double value, const double theta, const double norm_power, double* alignment) {
    ACC acc[CHUNKS][VEC], raw[CHUNKS][VEC], aligned[CHUNKS][VEC];
    clear(aligned);
    for (Long row = blockIdx.x; row < n; row += gridDim.x) {
        for (int k = 0; k < CHUNKS; k++) {
            const int c = (k * THREADS + threadIdx.x) * VEC;
            for (int j = 0; j < VEC; j++) {
                acc[k][j] = c < width ? source[row * width + c + j] : 0.0f;
                raw[k][j] = c < width ? before[row * width + c + j] : 0.0f;
            }
        }
        shrink_row(acc, raw, out + row * width, width, mode, value, theta, norm_power, aligned);
    }
    write_aligned(aligned, alignment, width);
}
#endif
"""

TOP = r"""
typedef long long Long;
__device__ __forceinline__ bool better(REAL a, Long i, REAL b, Long j) { return a > b || (a == b && i < j); }

// The best K of each row: every thread keeps its own, then K times the best of all is taken.
extern "C" __global__ void top(const REAL* scores, const Long* numbers, const bool* hidden, const Long first,
                               const Long columns, const Long n, REAL* best, Long* items, const Long stride,
                               const Long offset) {
    const REAL none = -(REAL)__int_as_float(0x7f800000);  // minus infinity
    __shared__ REAL room[32]; __shared__ Long who[32]; __shared__ int owner[32];
    for (Long row = blockIdx.x; row < n; row += gridDim.x) {
        REAL value[K]; Long number[K];
        for (int i = 0; i < K; i++) { value[i] = none; number[i] = -1; }
        for (Long c = threadIdx.x; c < columns; c += blockDim.x) {
            const REAL score = scores[row * columns + c];
            const Long item = numbers ? numbers[row * columns + c] : first + c;
            if (!(score > none) || item < 0 || (hidden && hidden[item])) continue;
            if (number[K - 1] >= 0 && !better(score, item, value[K - 1], number[K - 1])) continue;
            REAL s = score; Long m = item;
            #pragma unroll
            for (int i = 0; i < K; i++)
                if (number[i] < 0 || better(s, m, value[i], number[i])) {
                    const REAL t = value[i]; const Long u = number[i];
                    value[i] = s; number[i] = m; s = t; m = u;
                    if (m < 0) break;
                }
        }
        for (int k = 0; k < K; k++) {
            REAL s = value[0]; Long m = number[0]; int mine = threadIdx.x;
            for (int step = 16; step; step >>= 1) {
                const REAL t = __shfl_down_sync(0xffffffffu, s, step);
                const Long u = __shfl_down_sync(0xffffffffu, m, step);
                const int other = __shfl_down_sync(0xffffffffu, mine, step);
                if (u >= 0 && (m < 0 || better(t, u, s, m))) { s = t; m = u; mine = other; }
            }
            __syncthreads();
            if ((threadIdx.x & 31) == 0) {
                room[threadIdx.x >> 5] = s; who[threadIdx.x >> 5] = m; owner[threadIdx.x >> 5] = mine;
            }
            __syncthreads();
            if (threadIdx.x == 0) {
                for (int w = 1; w < (blockDim.x >> 5); w++)
                    if (who[w] >= 0 && (who[0] < 0 || better(room[w], who[w], room[0], who[0]))) {
                        room[0] = room[w]; who[0] = who[w]; owner[0] = owner[w];
                    }
                best[row * stride + offset + k] = who[0] < 0 ? none : room[0];
                items[row * stride + offset + k] = who[0];
            }
            __syncthreads();
            if (threadIdx.x == owner[0] && who[0] >= 0) {
                #pragma unroll
                for (int i = 0; i + 1 < K; i++) { value[i] = value[i + 1]; number[i] = number[i + 1]; }
                value[K - 1] = none; number[K - 1] = -1;
            }
        }
    }
}
"""
