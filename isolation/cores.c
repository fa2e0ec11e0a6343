/* A thread takes credit for several short launches at once, so that most launches neither read a clock nor write to
 * memory that others read. */
#include "cores.h"

#include "bucket.h"
#include "cards.h"
#include "clock.h"
#include "driver.h"
#include "files.h"
#include "streams.h"

#define LEASE_NS 100000ULL
#define UNMEASURED_NS 1000000ULL
#define SHORTEST_WAIT_NS 50000ULL
#define LONGEST_WAIT_NS 5000000ULL
#define LONGEST_ALONE_NS 1000000000ULL
#define LEAST_CORRECTION 100
#define MOST_CORRECTION 4000

/* In the first block of thread-local memory, which needs no function of libc to be found. */
static __thread __attribute__((tls_model("initial-exec"))) struct {
    uint64_t credit, launches;
} leases[MOST_CARDS];

static uint64_t load(const uint64_t *number) { return __atomic_load_n(number, __ATOMIC_RELAXED); }

static void add(uint64_t *number, uint64_t more) { __atomic_fetch_add(number, more, __ATOMIC_RELAXED); }

static uint64_t between(uint64_t least, uint64_t number, uint64_t most) {
    return number < least ? least : number < most ? number : most;
}

/* --- the buckets ------------------------------------------------------------------------------------------------------ */

typedef struct {
    uint64_t *bucket, rate;
} source;

static int has_spare(const account *of, uint64_t now) {
    return load(&of->control->spare) && files_measured_ns_ago(now) <= SPARE_LASTS_NS;
}

/* A small correction was right for the neighbours of its time: without them it gives more than the share. */
static uint64_t correction_of(const account *of, uint64_t now) {
    uint64_t correction = between(LEAST_CORRECTION, load(&of->control->correction), MOST_CORRECTION);
    return correction < 1000 && files_measured_ns_ago(now) > CORRECTION_LASTS_NS ? 1000 : correction;
}

/* While no neighbour needs the rest, the ceiling alone counts: nothing of it is owed when a neighbour comes back. */
static source source_of(const account *of, uint64_t now) {
    uint64_t share = load(&of->control->share), ceiling = load(&of->control->ceiling);
    if (ceiling != NO_LIMIT && ceiling > share && has_spare(of, now))
        return (source){&of->card->ceiling_paid_until, ceiling};
    return (source){&of->card->share_paid_until, share};
}

static void take(account *of, uint64_t gpu_ns) {
    uint64_t now = clock_ns();
    source from = source_of(of, now);
    if (from.rate == NO_LIMIT) from.rate = 1000;
    bucket_take(from.bucket, now, gpu_ns * correction_of(of, now) / 1000, from.rate);
    if (of->row) add(&of->row->gpu_ns, gpu_ns);
}

static uint64_t wait_ns(const account *of) {
    uint64_t now = clock_ns();
    source from = source_of(of, now);
    return from.rate == NO_LIMIT ? 0 : bucket_wait_ns(from.bucket, now);
}

static void collect(account *of) {
    uint64_t gpu_ns = pairs_collect();
    if (gpu_ns) take(of, gpu_ns);
}

/* --- the gate --------------------------------------------------------------------------------------------------------- */

/* These return whether they waited. */
static int wait_for_measured(account *of, uint64_t began) {
    int waits = 0;
    for (collect(of); pairs_run_alone(); collect(of), waits = 1) {
        if (clock_ns() - began > LONGEST_ALONE_NS) pairs_end_alone();
        else clock_wait_ns(SHORTEST_WAIT_NS);
    }
    return waits;
}

static int wait_for_credit(const account *of) {
    int waits = 0;
    for (uint64_t left; (left = wait_ns(of)); waits = 1)
        clock_wait_ns(between(SHORTEST_WAIT_NS, left, LONGEST_WAIT_NS));
    return waits;
}

static void wait_for_both(account *of) {
    uint64_t began = clock_ns();
    int waits = wait_for_measured(of, began);
    waits |= wait_for_credit(of);
    if (waits && of->row) add(&of->row->throttled_ns, clock_ns() - began);
}

/* Of a kernel without an estimate nothing is taken before it is measured. */
static void renew_lease(account *of, int card, uint64_t cost) {
    wait_for_both(of);
    if (of->row) add(&of->row->launches, leases[card].launches);
    uint64_t wanted = cost && cost < LEASE_NS ? LEASE_NS : cost;
    if (wanted) take(of, wanted);
    leases[card].credit += wanted;
    leases[card].launches = 0;
}

static void pass_gate(int card, uint64_t cost) {
    int leased = cost && leases[card].credit >= cost && !pairs_run_alone();
    if (!leased) renew_lease(&cards[card], card, cost);
    leases[card].credit -= cost;
    leases[card].launches++;
}

/* What cannot be measured, because too many measurements are pending, is not free. */
static pair *measured(account *of, kernel *launched, CUstream stream) {
    if (!kernel_is_due(launched)) return NULL;
    pair *made = pair_begin(launched, stream);
    if (!made && !kernel_estimate(launched)) take(of, UNMEASURED_NS);
    return made;
}

/* --- launches --------------------------------------------------------------------------------------------------------- */

int cores_are_held(void) { return files_hold_cores(); }

launch cores_begin(uint64_t key, CUstream stream) {
    int card = card_of_current_context();
    if (card < 0 || load(&cards[card].control->share) == NO_LIMIT || stream_is_captured(stream))
        return (launch){0};
    kernel *of = kernel_of(key);
    pass_gate(card, kernel_estimate(of));
    return (launch){measured(&cards[card], of, stream), stream};
}

CUresult cores_end(launch of, CUresult answer) {
    if (of.measures) pair_end(of.measures, of.stream, answer);
    return answer;
}
