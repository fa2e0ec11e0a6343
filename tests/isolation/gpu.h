/* The time of the stand-in driver's cards, in the file RUN_FOLDER/gpu, which all processes share: computed, not slept.
 *
 * Processes run until they wait: for a moment, or for their kernels. When all wait, the last one moves the time to the
 * next moment at which one of them can go on. So results do not depend on how busy the machine is. Each card runs the
 * queues of the processes in turns of 2 ms. Without the file, kernels take no time. */
#ifndef HALFCARD_GPU_H
#define HALFCARD_GPU_H

#include <pthread.h>
#include <stdint.h>

#include "cards_file.h"

#define GPU_MEMBERS 6
#define GPU_QUEUE 1024
#define GPU_EVENTS 1024
#define GPU_SLICE_NS 2000000

typedef struct {
    uint64_t left;
    int event; /* 0: a kernel; else completes this event */
} gpu_work;

typedef struct {
    uint64_t begun, ended, busy_ns; /* how many works; those between are queued */
    gpu_work works[GPU_QUEUE];
} gpu_queue;

typedef struct {
    enum { GPU_ABSENT, GPU_RUNS, GPU_WAITS, GPU_GONE } state;
    int card;
    uint64_t until, work; /* waits for this moment, or until so many works on the card have ended */
    pthread_cond_t goes_on;
    uint64_t happened[GPU_EVENTS]; /* when; 0: not yet */
} gpu_member;

typedef struct {
    pthread_mutex_t lock;
    uint64_t now;
    int expected; /* no time passes before so many processes have joined */
    struct {
        int turn;
        uint64_t slice_left;
    } cards[CARDS];
    gpu_member members[GPU_MEMBERS];
    gpu_queue queues[CARDS][GPU_MEMBERS];
} gpu_world;

void gpu_make(gpu_world *made, int expected);

/* Becomes the member that the variable STAND_IN_MEMBER names. */
void gpu_join(void);
const gpu_world *gpu_shared(void);

uint64_t gpu_now(void);
void gpu_wait(uint64_t nanoseconds);
void gpu_launch(int card, uint64_t nanoseconds);
void gpu_wait_for_all(int card);

int gpu_new_event(void);
void gpu_record(int card, int event);
uint64_t gpu_happened(int event);

#endif
