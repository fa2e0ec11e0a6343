/* What the stand-in driver knows about the things that a program names by pointers. */
#ifndef HALFCARD_DRIVER_TYPES_H
#define HALFCARD_DRIVER_TYPES_H

#include "cuda.h"

struct CUctx_st {
    int device, users, is_primary;
};

struct CUstream_st {
    CUcontext context;
    CUgraph captured;
    int capture_mode;
};

struct CUgraph_st {
    uint64_t bytes; /* that it allocates on the first card when it is launched */
    uint64_t gpu_ns;
};

/* While a stream is captured in the global mode, calls about events spoil the capture, unless their thread allows them. */
void capture_begins(int mode);
CUresult capture_ends(int mode);

#endif
