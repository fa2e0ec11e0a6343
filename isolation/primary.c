/* The context of a device that all libraries of a process share: the first to retain it makes it. */
#include "at_fork.h"
#include "cards.h"
#include "driver.h"
#include "holdings.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* a second caller must not take its bytes twice */

static void unlock_in_child(void) { mutex = UNLOCKED; }

IN_CHILD_OF_FORK(unlock_in_child)

static CUresult retain(CUcontext *made, CUdevice device) {
    holding *holds = holding_remove(PRIMARY, (uint64_t)device);
    int first = !holds;
    CUresult error = first ? holding_begin(&holds, PRIMARY, card_of_device(device), cards_context_bytes(device)) : 0;
    if (error) return error;
    CUresult answer = CALL(cuDevicePrimaryCtxRetain, (made, device));
    if (!answer) holds->context = *made;
    if (first) return holding_keep(holds, answer, (uint64_t)device);
    holding_insert(holds);
    return answer;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *made, CUdevice device) {
    pthread_mutex_lock(&mutex);
    CUresult answer = retain(made, device);
    pthread_mutex_unlock(&mutex);
    return answer;
}

/* Others may have retained it: the driver knows whether it has ended. */
static CUresult released(CUdevice device, CUresult answer) {
    unsigned flags;
    int active = 1;
    CALL(cuDevicePrimaryCtxGetState, (device, &flags, &active));
    return active ? answer : holding_end(holding_remove(PRIMARY, (uint64_t)device), answer);
}

#define LEAVE(name)                                           \
    CUresult name(CUdevice device) {                          \
        pthread_mutex_lock(&mutex);                           \
        CUresult answer = released(device, CALL(name, (device))); \
        pthread_mutex_unlock(&mutex);                         \
        return answer;                                        \
    }

LEAVE(cuDevicePrimaryCtxRelease)
LEAVE(cuDevicePrimaryCtxRelease_v2)
LEAVE(cuDevicePrimaryCtxReset)
LEAVE(cuDevicePrimaryCtxReset_v2)
