/* The two files of the container, opened when the library is loaded. */
#ifndef HALFCARD_FILES_H
#define HALFCARD_FILES_H

#include "account.h"

/* By a card's place in the account; valid only where files_ready. */
extern account cards[MOST_CARDS];

/* Returns 0 where a file is missing, too short or of an unknown version. */
int files_ready(void);

/* Returns how long ago the agent measured, at this time of CLOCK_MONOTONIC; UINT64_MAX: it never did. */
uint64_t files_measured_ns_ago(uint64_t now);

/* Returns whether a card had a share of cores when this process started. */
int files_hold_cores(void);

/* Returns the place of the card with this UUID, or -1. */
int files_card(const unsigned char uuid[16]);

#endif
