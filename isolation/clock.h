/* The time of launches: nanoseconds that only grow, the same for all processes of a container. Tests link another. */
#ifndef HALFCARD_CLOCK_H
#define HALFCARD_CLOCK_H

#include <stdint.h>

uint64_t clock_ns(void);
void clock_wait_ns(uint64_t nanoseconds); /* less than a second */

#endif
