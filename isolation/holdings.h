/* What this process holds: which bytes of which card belong to a pointer, array, context or handle of the driver. */
#ifndef HALFCARD_HOLDINGS_H
#define HALFCARD_HOLDINGS_H

#include "cuda.h"

typedef enum { MEMORY, ARRAY, MIPMAP, CONTEXT, PRIMARY, GREEN, HANDLE, MAPPING } holding_kind;

typedef struct block block; /* virtual.c */

typedef struct holding {
    holding_kind kind;
    uint64_t key;
    CUcontext context; /* whose end releases it; NULL: none */
    int card;
    uint64_t bytes;
    block *block;
    struct holding *next;
} holding;

/* Takes the bytes and returns what will hold them; on an error takes nothing. */
CUresult holding_begin(holding **made, holding_kind kind, int card, uint64_t bytes);

/* After the driver's answer: keeps the holding by its key, or gives the bytes back. Returns the driver's answer. */
CUresult holding_keep(holding *made, CUresult answer, uint64_t key);

/* Takes a holding out, so that a pointer that the driver hands out again is never mistaken for it; NULL: none. */
holding *holding_remove(holding_kind kind, uint64_t key);

/* After the driver's answer: gives the bytes of a holding back that was taken out, or keeps it. Returns the answer. */
CUresult holding_end(holding *old, CUresult answer);

/* Takes the first holding out for which `is_meant` is true. */
holding *holding_remove_if(int (*is_meant)(const holding *each, const void *what), const void *what);

void holding_insert(holding *made);

#endif
