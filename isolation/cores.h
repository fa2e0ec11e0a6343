/* Holds a container to its share of the cores of a card: each launch takes its estimated GPU time from a bucket. */
#ifndef HALFCARD_CORES_H
#define HALFCARD_CORES_H

#include "cuda.h"
#include "pairs.h"

/* In functions whose default stream is that of the thread, which has this name elsewhere. */
#define OF_THREAD(stream) ((stream) ? (stream) : (CUstream)2)

/* A launch between its begin and its end; all zeros: one that is not held. */
typedef struct {
    pair *measures;
    CUstream stream;
} launch;

/* Returns 0 where no card of this container had a share of cores when this process started. */
int cores_are_held(void);

/* Waits until the bucket of the current context's card has credit, and takes what a launch with this key costs. */
launch cores_begin(uint64_t key, CUstream stream);

/* Returns the driver's answer. */
CUresult cores_end(launch of, CUresult answer);

#endif
