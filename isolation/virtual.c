/* Virtual memory: a block of a card's memory has handles and mappings, and ends with the last of both.
 *
 * One mutex is held also while the driver works, so that a handle or an address that it hands out again is never
 * mistaken for an earlier one. Handles that were imported from another process are not counted: the exporter holds them.
 */
#include <stdlib.h>

#include "at_fork.h"
#include "cards.h"
#include "driver.h"
#include "holdings.h"
#include "pools.h"

struct block {
    int card;
    uint64_t bytes;
    uint64_t uses; /* handles and mappings */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void unlock_in_child(void) { mutex = UNLOCKED; }

IN_CHILD_OF_FORK(unlock_in_child)

static CUresult done(CUresult answer) {
    pthread_mutex_unlock(&mutex);
    return answer;
}

static void end_use(block *of) {
    if (--of->uses) return;
    cards_give(of->card, of->bytes);
    free(of);
}

/* A holding that counts nothing itself; its block does. */
static holding *use(holding_kind kind, uint64_t key, uint64_t size, block *of) {
    holding *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    *made = (holding){.kind = kind, .key = key, .card = NOT_COUNTED, .bytes = size, .block = of};
    of->uses++;
    holding_insert(made);
    return made;
}

static block *new_block(int card, uint64_t bytes) {
    block *made = calloc(1, sizeof *made);
    if (made) *made = (block){card, bytes, 0};
    return made;
}

/* --- handles -------------------------------------------------------------------------------------------------------- */

static CUresult create(CUhandle *made, size_t size, const CUmemAllocationProp *how, unsigned long long flags) {
    int card = card_of_location(how);
    CUresult answer = take_or_trim(card, size);
    if (answer) return answer;
    answer = CALL(cuMemCreate, (made, size, how, flags));
    if (answer) cards_give(card, size);
    block *of = answer || card == NOT_COUNTED ? NULL : new_block(card, size);
    if (of) use(HANDLE, *made, 0, of);
    return answer;
}

CUresult cuMemCreate(CUhandle *made, size_t size, const CUmemAllocationProp *how, unsigned long long flags) {
    pthread_mutex_lock(&mutex);
    return done(create(made, size, how, flags));
}

static void end_holding(holding *old) {
    if (!old) return;
    end_use(old->block);
    free(old);
}

CUresult cuMemRelease(CUhandle old) {
    pthread_mutex_lock(&mutex);
    CUresult answer = CALL(cuMemRelease, (old));
    if (!answer) end_holding(holding_remove(HANDLE, old)); /* one of several, where the handle was retained */
    return done(answer);
}

static int covers(const holding *each, const void *what) {
    uint64_t at = *(const uint64_t *)what;
    return each->kind == MAPPING && each->key <= at && at - each->key < each->bytes;
}

CUresult cuMemRetainAllocationHandle(CUhandle *found, void *at) {
    uint64_t address = (uintptr_t)at;
    pthread_mutex_lock(&mutex);
    CUresult answer = CALL(cuMemRetainAllocationHandle, (found, at));
    holding *mapping = answer ? NULL : holding_remove_if(covers, &address);
    if (mapping) {
        use(HANDLE, *found, 0, mapping->block);
        holding_insert(mapping);
    }
    return done(answer);
}

/* --- mappings ------------------------------------------------------------------------------------------------------- */

CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUhandle handle, unsigned long long flags) {
    pthread_mutex_lock(&mutex);
    CUresult answer = CALL(cuMemMap, (at, size, offset, handle, flags));
    holding *of = answer ? NULL : holding_remove(HANDLE, handle);
    if (of) {
        use(MAPPING, at, size, of->block);
        holding_insert(of);
    }
    return done(answer);
}

typedef struct {
    uint64_t at, size;
} range;

static int begins_in(const holding *each, const void *what) {
    const range *of = what;
    return each->kind == MAPPING && each->key >= of->at && each->key - of->at < of->size;
}

/* Mappings mostly follow each other without a gap, and are found by their address; the rest is searched for. */
static void end_mappings(uint64_t at, uint64_t size) {
    uint64_t end = at + size;
    for (holding *next; at < end && (next = holding_remove(MAPPING, at));) {
        at += next->bytes;
        end_holding(next);
    }
    range rest = {at, end - at};
    for (holding *next; at < end && (next = holding_remove_if(begins_in, &rest));) end_holding(next);
}

CUresult cuMemUnmap(CUdeviceptr at, size_t size) {
    pthread_mutex_lock(&mutex);
    CUresult answer = CALL(cuMemUnmap, (at, size));
    if (!answer) end_mappings(at, size);
    return done(answer);
}
