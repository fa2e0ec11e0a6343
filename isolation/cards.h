/* The cards of the container: which device of CUDA is which card of the account, and what is taken of it. */
#ifndef HALFCARD_CARDS_H
#define HALFCARD_CARDS_H

#include "cuda.h"

/* A card's place in the account, or one of these. */
enum {
    NOT_COUNTED = -1, /* the driver will refuse, or the memory is not on a card */
    NOT_ALLOWED = -2  /* the files are missing or of an unknown version, or the control file has no such card */
};

int card_of_device(CUdevice device);
int card_of_current_context(void);
int card_of_location(const CUmemAllocationProp *how);

/* Returns the error that the program gets; nothing is taken then. */
CUresult cards_take(int card, uint64_t bytes);
CUresult cards_take_again(int card, uint64_t bytes); /* what was refused: it is not counted as refused twice */
void cards_add(int card, uint64_t bytes);
void cards_give(int card, uint64_t bytes);

uint64_t cards_context_bytes(CUdevice device);
void cards_count_contexts(int card, uint64_t contexts, uint64_t bytes); /* as account_count_contexts */
uint64_t cards_limit(int card);
uint64_t cards_used(int card);

#endif
