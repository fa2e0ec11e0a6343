/* The driver's pools, and its memory for graphs, of which each device has one: what they have now is measured, because
 * they grow and shrink without a call that says so. */
#include "at_fork.h"
#include "cards.h"
#include "driver.h"
#include "pools.h"

#define MOST_POOLS 256
#define RESERVED_NOW 5 /* CUmemPool_attribute */
#define USED_NOW 7
#define RESERVED_BY_GRAPHS 2 /* CUgraphMem_attribute */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static counted_pool pools[MOST_POOLS];
static int count;
static int graphs; /* devices whose memory for graphs is counted */

static void forget_all(void) {
    mutex = UNLOCKED;
    count = graphs = 0;
}

IN_CHILD_OF_FORK(forget_all)

/* --- what a pool has ------------------------------------------------------------------------------------------------- */

static uint64_t number_of(const counted_pool *of, int attribute) {
    uint64_t found = 0;
    return CALL(cuMemPoolGetAttribute, (of->pool, attribute, &found)) ? 0 : found;
}

uint64_t pool_used(const counted_pool *of) { return number_of(of, USED_NOW); }

static uint64_t size_of_pool(const counted_pool *of) {
    uint64_t reserved = number_of(of, RESERVED_NOW), used = pool_used(of);
    return reserved > used ? reserved : used;
}

static uint64_t size_of_graphs(CUdevice device) {
    uint64_t found = 0;
    return CALL(cuDeviceGetGraphMemAttribute, (device, RESERVED_BY_GRAPHS, &found)) ? 0 : found;
}

static void measure(counted_pool *of) {
    uint64_t size = of->pool ? size_of_pool(of) : size_of_graphs(of->device);
    if (size < of->counted) cards_give(of->card, of->counted - size);
    if (size > of->counted) cards_add(of->card, size - of->counted);
    of->counted = size;
}

void pools_measure_locked(void) {
    for (int at = 0; at < count; at++) measure(&pools[at]);
}

static void trim(const counted_pool *of) {
    if (of->pool) CALL(cuMemPoolTrimTo, (of->pool, 0));
    else CALL(cuDeviceGraphMemTrim, (of->device));
}

void pools_trim_locked(void) {
    for (int at = 0; at < count; at++) trim(&pools[at]);
    pools_measure_locked();
}

counted_pool *pool_found(CUmemoryPool pool, CUdevice device) {
    for (int at = 0; at < count; at++)
        if (pools[at].pool == pool && (pool || pools[at].device == device)) return &pools[at];
    return NULL;
}

static counted_pool *add(counted_pool added) {
    if (count == MOST_POOLS) return NULL;
    pools[count] = added;
    return &pools[count++];
}

counted_pool *pool_of(CUmemoryPool pool, int card) {
    counted_pool *found = pool_found(pool, NO_DEVICE);
    return found ? found : add((counted_pool){pool, NO_DEVICE, card, 0});
}

void pools_add_graphs_locked(CUdevice device) {
    int card = card_of_device(device);
    if (card < 0 || pool_found(NULL, device) || !add((counted_pool){NULL, device, card, 0})) return;
    __atomic_add_fetch(&graphs, 1, __ATOMIC_RELEASE);
}

int pools_have_graphs(void) { return __atomic_load_n(&graphs, __ATOMIC_ACQUIRE) > 0; }

void pool_forget(counted_pool *old) {
    cards_give(old->card, old->counted - pool_used(old)); /* what is used lives until it is freed */
    *old = pools[--count];
}

/* --- for other allocations ------------------------------------------------------------------------------------------- */

static CUresult take(int card, uint64_t bytes) {
    CUresult error = cards_take(card, bytes);
    if (error != CUDA_ERROR_OUT_OF_MEMORY || !count) return error;
    pools_trim_locked();
    return cards_take_again(card, bytes);
}

void pools_lock(void) { pthread_mutex_lock(&mutex); }
void pools_unlock(void) { pthread_mutex_unlock(&mutex); }

CUresult take_or_trim(int card, uint64_t bytes) {
    pools_lock();
    CUresult error = take(card, bytes);
    pools_unlock();
    return error;
}

void pools_measure(void) {
    pools_lock();
    pools_measure_locked();
    pools_unlock();
}
