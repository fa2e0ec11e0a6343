/* A card in shared memory: it frees what dead processes had, as a driver does, and knows the most that was ever used. */
#ifndef HALFCARD_CARD_H
#define HALFCARD_CARD_H

#include <pthread.h>
#include <stdint.h>

#include "process.h"

#define MOST_USERS 512

typedef struct {
    process_name process;
    uint64_t bytes;
} card_user;

typedef struct {
    pthread_mutex_t lock; /* robust: whoever is killed under it leaves a valid card */
    uint64_t total, most;
    card_user users[MOST_USERS];
} card;

void card_make(card *made, uint64_t total);

/* Returns 0 where the card has not so much left. */
int card_allocate(card *of, process_name self, uint64_t bytes);

void card_free(card *of, process_name self, uint64_t bytes);

/* Returns what living processes use. */
uint64_t card_used(card *of);

#endif
