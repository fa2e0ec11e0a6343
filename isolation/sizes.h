/* How many bytes of a card an array or pitched memory takes, at least. A product that overflows is the largest number. */
#ifndef HALFCARD_SIZES_H
#define HALFCARD_SIZES_H

#include <stdint.h>

#include "cuda.h"

#define PITCH 512 /* the driver lays rows at multiples of this */

static inline uint64_t times(uint64_t one, uint64_t other) {
    uint64_t product;
    return __builtin_mul_overflow(one, other, &product) ? UINT64_MAX : product;
}

static inline uint64_t at_least_1(uint64_t number) { return number ? number : 1; }

static inline uint64_t bytes_of_rows(uint64_t width, uint64_t height) {
    uint64_t pitch = width > UINT64_MAX - PITCH ? UINT64_MAX : (width + PITCH - 1) / PITCH * PITCH;
    return times(pitch, height);
}

/* CUarray_format numbers them by type and size: 1, 8: one byte; 2, 9, 0x10 (half): two; others have at most four. */
static inline uint64_t bytes_of_element(unsigned format) {
    return format == 0x01 || format == 0x08 ? 1 : format == 0x02 || format == 0x09 || format == 0x10 ? 2 : 4;
}

/* CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_DEFERRED_MAPPING: blocks of virtual memory are mapped into the array. */
static inline int is_filled_later(unsigned flags) { return (flags & (0x40 | 0x80)) != 0; }

/* A height or depth of 0 means that the array has no such dimension. */
static inline uint64_t bytes_of_array(uint64_t width, uint64_t height, uint64_t depth, unsigned format,
                                      unsigned channels) {
    uint64_t elements = times(times(width, at_least_1(height)), at_least_1(depth));
    return times(elements, channels * bytes_of_element(format));
}

static inline uint64_t bytes_of_levels(const CUDA_ARRAY3D_DESCRIPTOR *of, unsigned levels) {
    uint64_t total = 0;
    for (unsigned level = 0; !is_filled_later(of->flags) && level < levels && level < 64; level++) {
        uint64_t bytes = bytes_of_array(at_least_1(of->width >> level), of->height >> level, of->depth >> level,
                                        of->format, of->channels);
        total = total + bytes < total ? UINT64_MAX : total + bytes;
    }
    return total;
}

#endif
