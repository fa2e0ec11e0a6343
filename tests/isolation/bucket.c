/* Lets Python call the bucket and the estimates. */
#include "bucket.h"
#include "kernels.h"

uint64_t wait_ns(uint64_t bucket, uint64_t now) { return bucket_wait_ns(&bucket, now); }

uint64_t take(uint64_t bucket, uint64_t now, uint64_t gpu_ns, uint64_t rate) {
    bucket_take(&bucket, now, gpu_ns, rate);
    return bucket;
}

uint64_t estimate(const uint64_t *samples, int count) {
    kernel of = {0};
    for (int at = 0; at < count; at++) kernel_add_sample(&of, samples[at]);
    return kernel_estimate(&of);
}
