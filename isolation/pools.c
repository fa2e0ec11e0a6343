/* Memory that is allocated in the order of a stream comes from a pool of the driver, which keeps what was freed for
 * later. A pool counts what it has reserved, or what is used of it where that is more.
 *
 * What an allocation needs beyond that is taken before the driver is asked. How far the pool really grew is known only
 * afterwards: the rest is counted then, even if it exceeds the limit, by less than the driver's step (32 MiB). A pool
 * shrinks when its streams are synchronised, without a call of ours: it is measured again at the next call about a pool,
 * and before an allocation is refused.
 */
#include "at_fork.h"
#include "cards.h"
#include "driver.h"
#include "pools.h"

#define MOST_POOLS 256
#define RESERVED_NOW 5 /* CUmemPool_attribute */
#define USED_NOW 7

typedef struct {
    CUmemoryPool pool;
    int card;
    uint64_t counted;
} counted_pool;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static counted_pool pools[MOST_POOLS];
static int count;

static void forget_all(void) {
    mutex = UNLOCKED;
    count = 0;
}

IN_CHILD_OF_FORK(forget_all)

/* --- what a pool has ------------------------------------------------------------------------------------------------- */

static uint64_t number_of(const counted_pool *of, int attribute) {
    uint64_t found = 0;
    return CALL(cuMemPoolGetAttribute, (of->pool, attribute, &found)) ? 0 : found;
}

static uint64_t size_of(const counted_pool *of) {
    uint64_t reserved = number_of(of, RESERVED_NOW), used = number_of(of, USED_NOW);
    return reserved > used ? reserved : used;
}

static void measure(counted_pool *of) {
    uint64_t size = size_of(of);
    if (size < of->counted) cards_give(of->card, of->counted - size);
    if (size > of->counted) cards_add(of->card, size - of->counted);
    of->counted = size;
}

static void measure_all(void) {
    for (int at = 0; at < count; at++) measure(&pools[at]);
}

static void trim_all(void) {
    for (int at = 0; at < count; at++) CALL(cuMemPoolTrimTo, (pools[at].pool, 0));
    measure_all();
}

static counted_pool *pool_of(CUmemoryPool pool, int card) {
    for (int at = 0; at < count; at++)
        if (pools[at].pool == pool) return &pools[at];
    if (count == MOST_POOLS) return NULL;
    pools[count] = (counted_pool){pool, card, 0};
    return &pools[count++];
}

static void forget(counted_pool *old) {
    cards_give(old->card, old->counted - number_of(old, USED_NOW)); /* what is used lives until it is freed */
    *old = pools[--count];
}

/* --- for other allocations ------------------------------------------------------------------------------------------- */

static CUresult take(int card, uint64_t bytes) {
    CUresult error = cards_take(card, bytes);
    if (error != CUDA_ERROR_OUT_OF_MEMORY || !count) return error;
    trim_all();
    return cards_take(card, bytes);
}

CUresult take_or_trim(int card, uint64_t bytes) {
    pthread_mutex_lock(&mutex);
    CUresult error = take(card, bytes);
    pthread_mutex_unlock(&mutex);
    return error;
}

void pools_measure(void) {
    pthread_mutex_lock(&mutex);
    measure_all();
    pthread_mutex_unlock(&mutex);
}

/* --- allocations ----------------------------------------------------------------------------------------------------- */

static uint64_t shortage(const counted_pool *of, uint64_t bytes) {
    uint64_t needed = number_of(of, USED_NOW) + bytes;
    return needed > of->counted ? needed - of->counted : 0;
}

/* Trimming takes from this pool, too: then more of the allocation has to be taken. */
static CUresult take_shortage(counted_pool *of, uint64_t bytes) {
    uint64_t short_of = shortage(of, bytes);
    CUresult error = cards_take(of->card, short_of);
    if (error == CUDA_ERROR_OUT_OF_MEMORY) {
        trim_all();
        error = cards_take(of->card, short_of = shortage(of, bytes));
    }
    if (!error) of->counted += short_of;
    return error;
}

static CUresult take_for(CUmemoryPool pool, int card, uint64_t bytes) {
    counted_pool *of = pool_of(pool, card);
    return of ? take_shortage(of, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Holds the mutex until `end`, unless it returns an error. */
static CUresult begin(CUmemoryPool pool, int card, uint64_t bytes) {
    if (card == NOT_ALLOWED) return CUDA_ERROR_UNKNOWN;
    pthread_mutex_lock(&mutex);
    CUresult error = pool && card >= 0 ? take_for(pool, card, bytes) : CUDA_SUCCESS; /* else the driver refuses */
    if (error) pthread_mutex_unlock(&mutex);
    return error;
}

static CUresult end(CUresult answer) {
    measure_all();
    pthread_mutex_unlock(&mutex);
    return answer;
}

static CUdevice device_of_stream(CUstream stream) {
    CUcontext of, current;
    CUdevice device = -1;
    int elsewhere = !CALL(cuStreamGetCtx, (stream, &of)) && !CALL(cuCtxGetCurrent, (&current)) && of != current;
    if (elsewhere) CALL(cuCtxPushCurrent_v2, (of));
    CALL(cuCtxGetDevice, (&device));
    if (elsewhere) CALL(cuCtxPopCurrent_v2, (&of));
    return device;
}

static CUmemoryPool pool_of_device(CUdevice device) {
    CUmemoryPool found = NULL;
    CALL(cuDeviceGetMemPool, (&found, device));
    return found;
}

static int card_of_pool(CUmemoryPool pool, CUstream stream) {
    int card = card_of_device(device_of_stream(stream));
    pthread_mutex_lock(&mutex);
    for (int at = 0; at < count; at++)
        if (pools[at].pool == pool) card = pools[at].card;
    pthread_mutex_unlock(&mutex);
    return card;
}

/* --- functions, each also with the default stream of a thread -------------------------------------------------------- */

#define ALLOCATE_ASYNC(name)                                                               \
    CUresult name(CUdeviceptr *made, size_t size, CUstream stream) {                       \
        CUdevice device = device_of_stream(stream);                                        \
        CUresult error = begin(pool_of_device(device), card_of_device(device), size);      \
        return error ? error : end(CALL(name, (made, size, stream)));                      \
    }

#define ALLOCATE_FROM(name)                                                                \
    CUresult name(CUdeviceptr *made, size_t size, CUmemoryPool pool, CUstream stream) {    \
        CUresult error = begin(pool, card_of_pool(pool, stream), size);                    \
        return error ? error : end(CALL(name, (made, size, pool, stream)));                \
    }

#define FREE_ASYNC(name)                                                                   \
    CUresult name(CUdeviceptr old, CUstream stream) {                                      \
        CUresult answer = CALL(name, (old, stream));                                       \
        return pthread_mutex_lock(&mutex), end(answer);                                    \
    }

ALLOCATE_ASYNC(cuMemAllocAsync)
ALLOCATE_ASYNC(cuMemAllocAsync_ptsz)
ALLOCATE_FROM(cuMemAllocFromPoolAsync)
ALLOCATE_FROM(cuMemAllocFromPoolAsync_ptsz)
FREE_ASYNC(cuMemFreeAsync)
FREE_ASYNC(cuMemFreeAsync_ptsz)

/* --- pools ----------------------------------------------------------------------------------------------------------- */

CUresult cuMemPoolCreate(CUmemoryPool *made, const CUmemPoolProps *how) {
    int card = card_of_location(how);
    CUresult answer = card == NOT_ALLOWED ? CUDA_ERROR_UNKNOWN : CALL(cuMemPoolCreate, (made, how));
    pthread_mutex_lock(&mutex);
    if (!answer && card >= 0) pool_of(*made, card);
    return end(answer);
}

CUresult cuMemPoolDestroy(CUmemoryPool old) {
    pthread_mutex_lock(&mutex);
    measure_all();
    for (int at = 0; at < count; at++)
        if (pools[at].pool == old) forget(&pools[at]);
    return end(CALL(cuMemPoolDestroy, (old)));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
    pthread_mutex_lock(&mutex);
    return end(CALL(cuMemPoolTrimTo, (pool, bytes)));
}
