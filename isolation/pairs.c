#include "pairs.h"

#include <string.h>

#include "at_fork.h"
#include "driver.h"

#define MOST_PAIRS 64
#define CAPTURE_MODE_RELAXED 2

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pair pairs[MOST_PAIRS];
static int alone; /* pairs that have `alone`; read without the mutex */

static void forget_all(void) {
    mutex = UNLOCKED;
    memset(pairs, 0, sizeof pairs);
    alone = 0;
}

IN_CHILD_OF_FORK(forget_all)

static CUcontext current_context(void) {
    CUcontext found = NULL;
    CALL(cuCtxGetCurrent, (&found));
    return found;
}

/* While another thread captures a stream, calls about events would break its capture in the other modes. */
static int capture_mode(int mode) {
    CALL(cuThreadExchangeStreamCaptureMode, (&mode));
    return mode;
}

/* --- under the mutex -------------------------------------------------------------------------------------------------- */

static void set_alone(pair *of, int value) {
    __atomic_fetch_add(&alone, value - of->alone, __ATOMIC_RELAXED);
    of->alone = value;
}

static void set_free(pair *of) {
    set_alone(of, 0);
    of->state = PAIR_FREE;
}

/* One with events of this context, else one without. */
static pair *free_pair(CUcontext context) {
    pair *without = NULL;
    for (pair *each = pairs; each < pairs + MOST_PAIRS; each++) {
        if (each->state == PAIR_FREE && each->context == context) return each;
        if (each->state == PAIR_FREE && !each->context) without = each;
    }
    return without;
}

static pair *open_pair(kernel *of, CUcontext context) {
    pair *made = free_pair(context);
    if (!made) return NULL;
    made->state = PAIR_OPEN;
    made->of = of;
    made->context = context;
    set_alone(made, !kernel_estimate(of));
    return made;
}

/* Returns the GPU time of a launch that had no estimate. */
static uint64_t add_sample(pair *of) {
    float ms = 0;
    if (CALL(cuEventElapsedTime, (&ms, of->start, of->end)) || ms < 0) return 0;
    int first = !kernel_estimate(of->of);
    kernel_add_sample(of->of, (uint64_t)((double)ms * 1e6));
    return first ? kernel_estimate(of->of) : 0;
}

static uint64_t collect(pair *of) {
    CUresult answer = CALL(cuEventQuery, (of->end));
    if (answer == CUDA_ERROR_NOT_READY) return 0;
    uint64_t gpu_ns = answer ? 0 : add_sample(of);
    set_free(of);
    return gpu_ns;
}

static uint64_t collect_of(CUcontext context) {
    uint64_t gpu_ns = 0;
    for (pair *each = pairs; each < pairs + MOST_PAIRS; each++)
        if (each->state == PAIR_PENDING && each->context == context) gpu_ns += collect(each);
    return gpu_ns;
}

static int runs_alone(CUcontext context) {
    for (pair *each = pairs; each < pairs + MOST_PAIRS; each++)
        if (each->alone && each->context == context) return 1;
    return 0;
}

/* --- what launches call ----------------------------------------------------------------------------------------------- */

uint64_t pairs_collect(void) {
    CUcontext context = current_context();
    int mode = capture_mode(CAPTURE_MODE_RELAXED);
    pthread_mutex_lock(&mutex);
    uint64_t gpu_ns = collect_of(context);
    pthread_mutex_unlock(&mutex);
    capture_mode(mode);
    return gpu_ns;
}

int pairs_run_alone(void) {
    if (!__atomic_load_n(&alone, __ATOMIC_RELAXED)) return 0;
    CUcontext context = current_context();
    pthread_mutex_lock(&mutex);
    int found = runs_alone(context);
    pthread_mutex_unlock(&mutex);
    return found;
}

void pairs_end_alone(void) {
    pthread_mutex_lock(&mutex);
    for (pair *each = pairs; each < pairs + MOST_PAIRS; each++) set_alone(each, 0);
    pthread_mutex_unlock(&mutex);
}

void pairs_forget(CUcontext ended) {
    pthread_mutex_lock(&mutex);
    for (pair *each = pairs; each < pairs + MOST_PAIRS; each++) {
        if (each->context != ended) continue;
        set_free(each);
        each->context = NULL;
        each->start = each->end = NULL;
    }
    pthread_mutex_unlock(&mutex);
}

static void close_pair(pair *of, int pending) {
    pthread_mutex_lock(&mutex);
    if (pending) of->state = PAIR_PENDING;
    else set_free(of);
    pthread_mutex_unlock(&mutex);
}

static int has_events(pair *of) {
    if (!of->start) CALL(cuEventCreate, (&of->start, 0));
    if (!of->end) CALL(cuEventCreate, (&of->end, 0));
    return of->start && of->end;
}

/* Without the mutex: it waits where the driver's queue is full. */
static int recorded(CUevent event, CUstream stream) { return !CALL(cuEventRecord, (event, stream)); }

pair *pair_begin(kernel *of, CUstream stream) {
    CUcontext context = current_context();
    pthread_mutex_lock(&mutex);
    pair *made = open_pair(of, context);
    pthread_mutex_unlock(&mutex);
    if (!made) return NULL;
    int mode = capture_mode(CAPTURE_MODE_RELAXED);
    int begun = has_events(made) && recorded(made->start, stream);
    capture_mode(mode);
    if (begun) return made;
    return close_pair(made, 0), NULL;
}

void pair_end(pair *of, CUstream stream, CUresult answer) {
    int mode = capture_mode(CAPTURE_MODE_RELAXED);
    close_pair(of, !answer && recorded(of->end, stream));
    capture_mode(mode);
}
