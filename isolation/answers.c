/* What a program asks: how much memory there is, and where a function is. */
#include <stddef.h>

#include "cards.h"
#include "driver.h"
#include "files.h"
#include "pools.h"

static uint64_t smaller(uint64_t one, uint64_t other) { return one < other ? one : other; }

CUresult cuInit(unsigned flags) { return files_ready() ? CALL(cuInit, (flags)) : CUDA_ERROR_UNKNOWN; }

/* --- memory --------------------------------------------------------------------------------------------------------- */

static void show_share(int card, size_t *free, size_t *total) {
    pools_measure();
    uint64_t limit = cards_limit(card), used = cards_used(card);
    if (total) *total = smaller(*total, limit);
    if (free) *free = smaller(*free, used < limit ? limit - used : 0);
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    int card = card_of_current_context();
    CUresult answer = card == NOT_ALLOWED ? CUDA_ERROR_UNKNOWN : CALL(cuMemGetInfo_v2, (free, total));
    if (!answer && card >= 0) show_share(card, free, total);
    return answer;
}

CUresult cuDeviceTotalMem_v2(size_t *total, CUdevice device) {
    int card = card_of_device(device);
    CUresult answer = card == NOT_ALLOWED ? CUDA_ERROR_UNKNOWN : CALL(cuDeviceTotalMem_v2, (total, device));
    if (!answer && card >= 0) *total = smaller(*total, cards_limit(card));
    return answer;
}

/* --- functions ------------------------------------------------------------------------------------------------------ */

/* What the driver answers is one of its exported functions, in the right version; ours of the same name takes its place. */
static CUresult swapped(CUresult answer, void **found) {
    if (!answer && found) *found = driver_override(*found);
    return answer;
}

CUresult cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    return swapped(CALL(cuGetProcAddress, (name, found, version, flags)), found);
}

enum { SYMBOL_FOUND = 0, SYMBOL_NOT_FOUND = 1 };

/* Drivers before CUDA 12 have no such function, but programs find ours. */
static CUresult by_first_version(const char *name, void **found, int version, uint64_t flags, int *status) {
    CUresult answer = cuGetProcAddress(name, found, version, flags);
    if (status) *status = answer ? SYMBOL_NOT_FOUND : SYMBOL_FOUND;
    return answer;
}

CUresult cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {
    if (!real_cuGetProcAddress_v2) return by_first_version(name, found, version, flags, status);
    return swapped(real_cuGetProcAddress_v2(name, found, version, flags, status), found);
}
