#include "clock.h"

#include <time.h>

#include "process.h"

uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void clock_wait_ns(uint64_t nanoseconds) { process_sleep_us((unsigned)(nanoseconds / 1000)); }
