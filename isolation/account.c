/* How: one lock for each card, whose word names its holder. Under it a process adds up the rows, and adds to its own
 * row if the sum stays within the limit. Everything under the lock is written by stores of which each leaves a valid
 * account, so a lock whose holder was killed is taken from it without any repair.
 *
 * Every access to shared memory goes through LOAD, STORE, SWAP, ADD: the model (tests/isolation/model.c) defines STEP,
 * and there any other process may run, or this one may die. */
#include "account.h"

#include <stddef.h>

#ifndef STEP
#define STEP() ((void)0)
#endif
#define LOAD(place) (STEP(), __atomic_load_n(&(place), __ATOMIC_SEQ_CST))
#define STORE(place, value) (STEP(), __atomic_store_n(&(place), (value), __ATOMIC_SEQ_CST))
#define ADD(place, value) (STEP(), __atomic_add_fetch(&(place), (value), __ATOMIC_SEQ_CST))
#define SWAP(place, old, new) \
    (STEP(), __atomic_compare_exchange_n(&(place), &(old), (new), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))

#define SPINS 100
#define SHORTEST_SLEEP_US 50
#define LONGEST_SLEEP_US 2000

/* --- the lock ----------------------------------------------------------------------------------------------------- */

static int lock_is_free(account *mine) {
    uint64_t holder = 0;
    return SWAP(mine->card->lock, holder, mine->self);
}

/* A name is never used again, so a holder that is gone still holds the lock when the swap succeeds. */
static int lock_of_dead(account *mine) {
    uint64_t holder = LOAD(mine->card->lock);
    if (!holder || !process_is_gone(holder) || !SWAP(mine->card->lock, holder, mine->self)) return 0;
    ADD(mine->card->recovered, 1);
    return 1;
}

static int lock_soon(account *mine) {
    for (int spin = 0; spin < SPINS; spin++)
        if (lock_is_free(mine)) return 1;
    return lock_of_dead(mine);
}

static void lock(account *mine) {
    for (unsigned pause = SHORTEST_SLEEP_US; !lock_soon(mine); pause *= pause < LONGEST_SLEEP_US ? 2 : 1)
        process_sleep_us(pause);
}

static void unlock(account *mine) { STORE(mine->card->lock, 0); }

/* --- rows: only under the lock ------------------------------------------------------------------------------------ */

static uint64_t rows_used(account *mine) {
    uint64_t used = LOAD(mine->card->rows_used);
    return used < MOST_PROCESSES ? used : MOST_PROCESSES; /* the file may hold anything */
}

static account_row *row_of(account *mine, process_name owner) {
    for (uint64_t at = 0, end = rows_used(mine); at < end; at++)
        if (LOAD(mine->card->rows[at].owner) == owner) return &mine->card->rows[at];
    return NULL;
}

static account_row *unused_row(account *mine) {
    uint64_t used = rows_used(mine);
    if (used == MOST_PROCESSES) return NULL;
    STORE(mine->card->rows_used, used + 1);
    return &mine->card->rows[used];
}

static void free_row(account_row *row) {
    uint64_t *numbers = &row->bytes, *end = (uint64_t *)(row + 1);
    while (numbers < end) STORE(*numbers++, 0);
    STORE(row->owner, 0); /* last: a process that finds the row free relies on zeros */
}

static void free_dead(account *mine) {
    for (uint64_t at = 0, end = rows_used(mine); at < end; at++) {
        uint64_t owner = LOAD(mine->card->rows[at].owner);
        if (owner && process_is_gone(owner)) free_row(&mine->card->rows[at]);
    }
}

static account_row *free_or_unused_row(account *mine) {
    account_row *row = row_of(mine, 0);
    return row ? row : unused_row(mine);
}

/* Another copy of this library in the same process (dlmopen) may have the row already. */
static int have_row(account *mine) {
    if (mine->row || (mine->row = row_of(mine, mine->self))) return 1;
    if (!(mine->row = free_or_unused_row(mine))) {
        free_dead(mine);
        mine->row = row_of(mine, 0);
    }
    if (mine->row) STORE(mine->row->owner, mine->self);
    return mine->row != NULL;
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

static uint64_t sum(uint64_t one, uint64_t other) { return one + other < one ? UINT64_MAX : one + other; }

static uint64_t use_of(account *mine, uint64_t at) {
    uint64_t owner = LOAD(mine->card->rows[at].owner);
    if (!owner) return 0;
    const control_excess *excess = &mine->control->excess[at];
    uint64_t beside = LOAD(excess->owner) == owner ? LOAD(excess->bytes) : 0;
    return sum(LOAD(mine->card->rows[at].bytes), beside);
}

static uint64_t use_of_all(account *mine) {
    uint64_t total = 0;
    for (uint64_t at = 0, end = rows_used(mine); at < end; at++) total = sum(total, use_of(mine, at));
    return total;
}

static int fits(account *mine, uint64_t bytes) {
    return sum(use_of_all(mine), bytes) <= LOAD(mine->control->memory);
}

static int fits_without_dead(account *mine, uint64_t bytes) {
    if (fits(mine, bytes)) return 1;
    free_dead(mine);
    return fits(mine, bytes);
}

/* --- what the library calls --------------------------------------------------------------------------------------- */

int account_take(account *mine, uint64_t bytes) {
    lock(mine);
    int taken = have_row(mine) && fits_without_dead(mine, bytes);
    if (mine->row) ADD(*(taken ? &mine->row->bytes : &mine->row->refused), taken ? bytes : 1);
    unlock(mine);
    return taken;
}

void account_forget_refusal(account *mine) {
    if (mine->row) ADD(mine->row->refused, -1);
}

void account_add(account *mine, uint64_t bytes) { ADD(mine->row->bytes, bytes); }

void account_count_contexts(account *mine, uint64_t contexts, uint64_t bytes) {
    ADD(mine->row->contexts, contexts);
    ADD(mine->row->context_bytes, bytes);
}

void account_give(account *mine, uint64_t bytes) { ADD(mine->row->bytes, -bytes); }

/* One look for all processes: 300 of them that start at once would look at each other. */
static void free_dead_once_in_a_moment(account *mine) {
    uint64_t now = process_moment();
    if (now != LOAD(mine->card->swept_at)) free_dead(mine);
    STORE(mine->card->swept_at, now);
}

uint64_t account_used(account *mine) {
    lock(mine);
    free_dead_once_in_a_moment(mine);
    uint64_t used = use_of_all(mine);
    unlock(mine);
    return used;
}

unsigned account_users(account *mine, account_user found[MOST_PROCESSES]) {
    unsigned count = 0;
    lock(mine);
    free_dead(mine);
    for (uint64_t at = 0, end = rows_used(mine); at < end; at++) {
        found[count] = (account_user){LOAD(mine->card->rows[at].owner), use_of(mine, at)};
        count += found[count].bytes > 0;
    }
    unlock(mine);
    return count;
}
