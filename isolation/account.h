/* Counts the memory of one card that the processes of a container use, so that they never use more than their limit.
 *
 * Laws, for any interleaving of any number of processes and threads, of which each may be killed at any instruction:
 *   - what was taken and not given back by processes that live is never more than the limit;
 *   - memory is refused only if it does not fit beside what living processes have taken;
 *   - a dead process neither holds memory nor blocks the others: the next process that needs it takes both.
 */
#ifndef HALFCARD_ACCOUNT_H
#define HALFCARD_ACCOUNT_H

#include "shared_files.h"
#include "process.h"

/* The account of one card as one process sees it. */
typedef struct {
    account_card *card;
    const control_card *control;
    process_name self;
    account_row *row; /* NULL until the process takes memory */
} account;

/* Takes this many bytes before the driver is asked for them. Returns 0, and takes nothing, where they do not fit. */
int account_take(account *mine, uint64_t bytes);

/* The last refusal of this thread was not the end: it tries again. */
void account_forget_refusal(account *mine);

/* Counts bytes that the driver has allocated already, even if they do not fit. */
void account_add(account *mine, uint64_t bytes);

/* Says that the process has so many contexts more, and that so many of its bytes more are for contexts; either may be
 * negative. */
void account_count_contexts(account *mine, uint64_t contexts, uint64_t bytes);

/* Gives bytes back that were taken, after the driver has freed them or has refused to allocate them. */
void account_give(account *mine, uint64_t bytes);

/* Returns how much all processes of the container use; frees the rows of dead ones, ten times a second for all of them. */
uint64_t account_used(account *mine);

typedef struct {
    process_name owner;
    uint64_t bytes;
} account_user;

/* Writes the living processes that use the card, and returns how many they are. */
unsigned account_users(account *mine, account_user found[MOST_PROCESSES]);

#endif
