/* How much GPU time a launch takes, by what is launched: a function with its grid, or a graph.
 *
 * Kernels of neighbours stretch what events measure, so the estimate is the low fifth of the last samples, not the mean. */
#ifndef HALFCARD_KERNELS_H
#define HALFCARD_KERNELS_H

#include <stdint.h>

#define KERNEL_SAMPLES 16

typedef struct {
    uint64_t key;      /* 0: unused */
    uint64_t estimate; /* ns; 0: never measured */
    uint64_t launches;
    uint64_t samples; /* that were ever added */
    uint64_t last[KERNEL_SAMPLES];
} kernel;

/* Returns the kernel of this key, which is not 0. Where too many are known, several share one. */
kernel *kernel_of(uint64_t key);

/* Counts a launch, and returns whether it is to be measured: the first four, until one was measured, and
 * then each 64th of up to 10 us, each 16th of up to 0.2 ms, and all that take longer. */
int kernel_is_due(kernel *of);

/* By one thread at a time. */
void kernel_add_sample(kernel *of, uint64_t gpu_ns);

static inline uint64_t kernel_estimate(const kernel *of) { return __atomic_load_n(&of->estimate, __ATOMIC_RELAXED); }

static inline uint64_t kernel_key(const void *function, uint64_t x, uint64_t y, uint64_t z) {
    uint64_t key = ((x * 0x9E3779B97F4A7C15ULL ^ y) * 0x9E3779B97F4A7C15ULL ^ z) * 0x9E3779B97F4A7C15ULL;
    return (key ^ (uint64_t)(uintptr_t)function) | 1ULL << 63;
}

#endif
