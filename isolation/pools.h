/* The driver's memory pools of this process, and its memory for graphs. */
#ifndef HALFCARD_POOLS_H
#define HALFCARD_POOLS_H

#include "cuda.h"

#define NO_DEVICE (-1)

typedef struct {
    CUmemoryPool pool; /* NULL: the memory for graphs of the device */
    CUdevice device;
    int card;
    uint64_t counted;
} counted_pool;

/* As cards_take; before it refuses, the driver is made to free what its pools only keep. */
CUresult take_or_trim(int card, uint64_t bytes);

/* Counts what the driver's pools have now. */
void pools_measure(void);

/* Returns whether graphs of this process may allocate memory. */
int pools_have_graphs(void);

/* --- the rest is called between these two ----------------------------------------------------------------------------- */

void pools_lock(void);
void pools_unlock(void);

void pools_measure_locked(void);
void pools_trim_locked(void);

/* Returns NULL where it was never counted. */
counted_pool *pool_found(CUmemoryPool pool, CUdevice device);

/* Adds a pool of this card unless it is known, perhaps as one of another card; returns NULL where there are too many. */
counted_pool *pool_of(CUmemoryPool pool, int card);

/* From now on the memory for graphs of this device is counted. */
void pools_add_graphs_locked(CUdevice device);
uint64_t pool_used(const counted_pool *of);
void pool_forget(counted_pool *old);

#endif
