/* Measures launches with pairs of the driver's events, which are read at a later launch: no thread waits for a kernel. */
#ifndef HALFCARD_PAIRS_H
#define HALFCARD_PAIRS_H

#include "cuda.h"
#include "kernels.h"

typedef struct {
    enum { PAIR_FREE, PAIR_OPEN, PAIR_PENDING } state;
    int alone; /* never measured before: nothing else is launched in its context meanwhile */
    kernel *of;
    CUcontext context; /* of the events */
    CUevent start, end;
} pair;

/* Begins to measure what this thread launches next; returns NULL where the driver or a full table prevents it. */
pair *pair_begin(kernel *of, CUstream stream);

/* What was launched with this answer. */
void pair_end(pair *of, CUstream stream, CUresult answer);

/* Adds the samples of launches in the current context that have ended; returns how much GPU time those took that had
 * no estimate when they were launched. */
uint64_t pairs_collect(void);

/* Returns whether anything runs alone in the current context. */
int pairs_run_alone(void);

/* Lets others be launched although the measurement has not ended: the kernel may wait for them. */
void pairs_end_alone(void);

/* The context ended, and with it its events. */
void pairs_forget(CUcontext ended);

#endif
