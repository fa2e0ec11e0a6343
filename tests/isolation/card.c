#include "card.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

void card_make(card *made, uint64_t total) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    memset(made, 0, sizeof *made);
    pthread_mutex_init(&made->lock, &attributes);
    made->total = total;
}

static void lock(card *of) {
    if (pthread_mutex_lock(&of->lock) == EOWNERDEAD) pthread_mutex_consistent(&of->lock);
}

static uint64_t used(card *of) {
    uint64_t total = 0;
    for (card_user *user = of->users; user < of->users + MOST_USERS; user++) {
        if (user->process && process_is_gone(user->process)) user->bytes = user->process = 0;
        total += user->bytes;
    }
    return total;
}

static card_user *user_of(card *of, process_name process) {
    for (card_user *user = of->users; user < of->users + MOST_USERS; user++)
        if (user->process == process) return user;
    return NULL;
}

static card_user *made_user(card *of, process_name process) {
    card_user *user = user_of(of, process);
    if (!user && (user = user_of(of, 0))) user->process = process;
    return user;
}

int card_allocate(card *of, process_name self, uint64_t bytes) {
    lock(of);
    uint64_t after = used(of) + bytes;
    card_user *user = after <= of->total ? made_user(of, self) : NULL;
    if (user) {
        user->bytes += bytes;
        if (after > of->most) of->most = after;
    }
    pthread_mutex_unlock(&of->lock);
    return user != NULL;
}

void card_free(card *of, process_name self, uint64_t bytes) {
    lock(of);
    card_user *user = user_of(of, self);
    if (user) user->bytes -= bytes;
    pthread_mutex_unlock(&of->lock);
}

uint64_t card_used(card *of) {
    lock(of);
    uint64_t total = used(of);
    pthread_mutex_unlock(&of->lock);
    return total;
}
