/* What the driver knows about a stream. */
#ifndef HALFCARD_STREAMS_H
#define HALFCARD_STREAMS_H

#include "driver.h"

/* Then nothing runs, but a graph is made. The legacy stream (0, 1) is never captured, and must not be asked while
 * others are. */
static inline int stream_is_captured(CUstream stream) {
    int status = 0;
    return (uintptr_t)stream > 1 && !CALL(cuStreamIsCapturing, (stream, &status)) && status != 0;
}

#endif
