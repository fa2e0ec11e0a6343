/* A child of fork has one thread and holds nothing: whatever another thread of its parent locked or knew is forgotten. */
#ifndef HALFCARD_AT_FORK_H
#define HALFCARD_AT_FORK_H

#include <pthread.h>

#define IN_CHILD_OF_FORK(forget) \
    __attribute__((constructor)) static void forget##_in_child(void) { pthread_atfork(NULL, NULL, forget); }

#define UNLOCKED (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER

#endif
