#include "holdings.h"

#include <stdlib.h>
#include <string.h>

#include "at_fork.h"
#include "cards.h"
#include "driver.h"
#include "pairs.h"
#include "pools.h"

#define CHAINS 16384

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static holding *chains[CHAINS];

static holding **chain_of(holding_kind kind, uint64_t key) {
    uint64_t mixed = (key + kind) * 0x9E3779B97F4A7C15ULL;
    return &chains[mixed >> 50];
}

/* --- the table ------------------------------------------------------------------------------------------------------ */

void holding_insert(holding *made) {
    pthread_mutex_lock(&mutex);
    holding **chain = chain_of(made->kind, made->key);
    made->next = *chain;
    *chain = made;
    pthread_mutex_unlock(&mutex);
}

static holding *unlink_from(holding **chain, int (*is_meant)(const holding *, const void *), const void *what) {
    while (*chain && !is_meant(*chain, what)) chain = &(*chain)->next;
    holding *found = *chain;
    if (found) *chain = found->next;
    return found;
}

static int has_key(const holding *each, const void *what) {
    const holding *wanted = what;
    return each->kind == wanted->kind && each->key == wanted->key;
}

holding *holding_remove(holding_kind kind, uint64_t key) {
    holding wanted = {.kind = kind, .key = key};
    pthread_mutex_lock(&mutex);
    holding *found = unlink_from(chain_of(kind, key), has_key, &wanted);
    pthread_mutex_unlock(&mutex);
    return found;
}

holding *holding_remove_if(int (*is_meant)(const holding *, const void *), const void *what) {
    holding *found = NULL;
    pthread_mutex_lock(&mutex);
    for (int at = 0; at < CHAINS && !found; at++) found = unlink_from(&chains[at], is_meant, what);
    pthread_mutex_unlock(&mutex);
    return found;
}

static void forget_all(void) {
    mutex = UNLOCKED;
    memset(chains, 0, sizeof chains);
}

IN_CHILD_OF_FORK(forget_all)

/* --- what a wrapper calls before and after the driver --------------------------------------------------------------- */

static CUcontext current_context(void) {
    CUcontext current = NULL;
    CALL(cuCtxGetCurrent, (&current));
    return current;
}

CUresult holding_begin(holding **made, holding_kind kind, int card, uint64_t bytes) {
    CUresult error = take_or_trim(card, bytes);
    *made = error ? NULL : calloc(1, sizeof **made);
    if (*made) **made = (holding){.kind = kind, .card = card, .bytes = bytes};
    if (!error && !*made) cards_give(card, bytes);
    return error || *made ? error : CUDA_ERROR_OUT_OF_MEMORY;
}

static int lives_in_context(holding_kind kind) { return kind == MEMORY || kind == ARRAY || kind == MIPMAP; }

/* A green context is a part of another. */
static void count_context(const holding *of, uint64_t more) {
    if (of->kind != CONTEXT && of->kind != PRIMARY && of->kind != GREEN) return;
    cards_count_contexts(of->card, of->kind == GREEN ? 0 : more, more * of->bytes);
}

static void drop(holding *old) {
    cards_give(old->card, old->bytes);
    free(old);
}

CUresult holding_keep(holding *made, CUresult answer, uint64_t key) {
    if (answer) return drop(made), answer;
    made->key = key;
    count_context(made, 1);
    if (lives_in_context(made->kind)) made->context = current_context();
    holding_insert(made);
    return answer;
}

static int is_of_context(const holding *each, const void *context) { return each->context == context; }

static void end_context(CUcontext context) {
    for (holding *each; context && (each = holding_remove_if(is_of_context, context));) drop(each);
}

/* A primary context is kept under its device, and remembers itself as its context. */
static CUcontext ended_by(const holding *old) {
    return old->kind == CONTEXT ? (CUcontext)(uintptr_t)old->key : old->kind == PRIMARY ? old->context : NULL;
}

CUresult holding_end(holding *old, CUresult answer) {
    if (!old) return answer;
    if (answer) return holding_insert(old), answer;
    CUcontext ended = ended_by(old);
    count_context(old, -1);
    drop(old);
    end_context(ended);
    if (ended) pairs_forget(ended);
    return answer;
}
