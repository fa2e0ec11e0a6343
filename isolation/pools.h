/* The driver's memory pools of this process. */
#ifndef HALFCARD_POOLS_H
#define HALFCARD_POOLS_H

#include "cuda.h"

/* As cards_take; before it refuses, the driver is made to free what its pools only keep. */
CUresult take_or_trim(int card, uint64_t bytes);

/* Counts what the driver's pools have now. */
void pools_measure(void);

#endif
