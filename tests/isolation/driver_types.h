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
};

struct CUgraph_st {
    uint64_t bytes; /* that it allocates on the first card when it is launched */
    uint64_t gpu_ns;
};

#endif
