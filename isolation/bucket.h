/* A bucket of GPU time that fills by a rate, in one number: the moment until which everything taken is paid.
 *
 * At a rate of 300/1000, one that takes 3 ms of GPU time moves the moment by 10 ms. In the past it is credit, in the
 * future debt. So nothing fills the bucket, a process that is killed leaves no half-made change, and another rate
 * applies from the next time that something is taken. */
#ifndef HALFCARD_BUCKET_H
#define HALFCARD_BUCKET_H

#include <stdint.h>

#define BUCKET_MOST_CREDIT_NS 100000000ULL    /* of the card's time: a tenth of a second of the rate */
#define BUCKET_MOST_DEBT_NS 3600000000000ULL /* more than any kernel costs: then the number is broken, or the clock */

static inline uint64_t bucket_paid_until(uint64_t stored, uint64_t now) {
    uint64_t earliest = now > BUCKET_MOST_CREDIT_NS ? now - BUCKET_MOST_CREDIT_NS : 0;
    if (stored < earliest) return earliest;
    return stored > now && stored - now > BUCKET_MOST_DEBT_NS ? now : stored;
}

/* Returns for how long nothing may be taken; 0: something may be taken now, of any size. */
static inline uint64_t bucket_wait_ns(const uint64_t *bucket, uint64_t now) {
    uint64_t paid = bucket_paid_until(__atomic_load_n(bucket, __ATOMIC_RELAXED), now);
    return paid > now ? paid - now : 0;
}

/* The rate is in 1/1000 of the card; 0 counts as 1. */
static inline void bucket_take(uint64_t *bucket, uint64_t now, uint64_t gpu_ns, uint64_t rate) {
    uint64_t old = __atomic_load_n(bucket, __ATOMIC_RELAXED), most = BUCKET_MOST_DEBT_NS / 1000 / 2;
    uint64_t costs = (gpu_ns < most ? gpu_ns : most) * 1000 / (rate ? rate : 1);
    while (!__atomic_compare_exchange_n(bucket, &old, bucket_paid_until(old, now) + costs, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {}
}

#endif
