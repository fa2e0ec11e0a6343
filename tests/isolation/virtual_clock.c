/* The library's clock on the stand-in driver. */
#include "clock.h"

uint64_t standInNow(void);
void standInWait(uint64_t nanoseconds);

uint64_t clock_ns(void) { return standInNow(); }
void clock_wait_ns(uint64_t nanoseconds) { standInWait(nanoseconds); }
