/* Memory that is allocated in the order of a stream comes from a pool of the driver, which keeps what was freed for
 * later. A pool counts what it has reserved, or what is used of it where that is more.
 *
 * What an allocation needs beyond that is taken before the driver is asked. How far the pool really grew is known only
 * afterwards: the rest is counted then, even if it exceeds the limit, by less than the driver's step (32 MiB). A pool
 * shrinks when its streams are synchronised, without a call of ours: it is measured again at the next call about a pool,
 * and before an allocation is refused.
 */
#include "cards.h"
#include "driver.h"
#include "pools.h"
#include "streams.h"

/* --- allocations ----------------------------------------------------------------------------------------------------- */

static uint64_t shortage(const counted_pool *of, uint64_t bytes) {
    uint64_t needed = pool_used(of) + bytes;
    return needed > of->counted ? needed - of->counted : 0;
}

/* Trimming takes from this pool, too: then more of the allocation has to be taken. */
static CUresult take_shortage(counted_pool *of, uint64_t bytes) {
    uint64_t short_of = shortage(of, bytes);
    CUresult error = cards_take(of->card, short_of);
    if (error == CUDA_ERROR_OUT_OF_MEMORY) {
        pools_trim_locked();
        error = cards_take_again(of->card, short_of = shortage(of, bytes));
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
    pools_lock();
    CUresult error = pool && card >= 0 ? take_for(pool, card, bytes) : CUDA_SUCCESS; /* else the driver refuses */
    if (error) pools_unlock();
    return error;
}

static CUresult end(CUresult answer) {
    pools_measure_locked();
    pools_unlock();
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

/* --- functions, each also with the default stream of a thread -------------------------------------------------------- */

#define ALLOCATE_ASYNC(name)                                                               \
    CUresult name(CUdeviceptr *made, size_t size, CUstream stream) {                       \
        CUdevice device = device_of_stream(stream);                                        \
        CUresult error = begin(pool_of_device(device), card_of_device(device), size);      \
        if (error) return error;                                                           \
        if (stream_is_captured(stream)) pools_add_graphs_locked(device);                          \
        return end(CALL(name, (made, size, stream)));                                      \
    }

#define ALLOCATE_FROM(name)                                                                \
    CUresult name(CUdeviceptr *made, size_t size, CUmemoryPool pool, CUstream stream) {    \
        CUdevice device = device_of_stream(stream);                                        \
        CUresult error = begin(pool, card_of_device(device), size);                        \
        if (error) return error;                                                           \
        if (stream_is_captured(stream)) pools_add_graphs_locked(device);                          \
        return end(CALL(name, (made, size, pool, stream)));                                \
    }

#define FREE_ASYNC(name)                                                                   \
    CUresult name(CUdeviceptr old, CUstream stream) {                                      \
        CUresult answer = CALL(name, (old, stream));                                       \
        return pools_lock(), end(answer);                                    \
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
    pools_lock();
    if (!answer && card >= 0) pool_of(*made, card);
    return end(answer);
}

CUresult cuMemPoolDestroy(CUmemoryPool old) {
    pools_lock();
    pools_measure_locked();
    counted_pool *found = pool_found(old, NO_DEVICE);
    if (found) pool_forget(found);
    return end(CALL(cuMemPoolDestroy, (old)));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
    pools_lock();
    return end(CALL(cuMemPoolTrimTo, (pool, bytes)));
}
