/* The few types and numbers of the CUDA driver API that this library needs; NVIDIA's headers are not used. */
#ifndef HALFCARD_CUDA_H
#define HALFCARD_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr, CUhandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUstream_st *CUstream;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUfunc_st *CUfunction;
typedef struct CUevent_st *CUevent;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_UNKNOWN = 999,
};

typedef struct {
    int type;
    int id;
} CUmemLocation;

#define CU_MEM_LOCATION_TYPE_DEVICE 1

typedef struct {
    int type;
    int requested_handle_types;
    CUmemLocation location;
    void *win32;
    unsigned char flags[8];
} CUmemAllocationProp;

/* It begins like CUmemAllocationProp, and nothing behind that is read. */
typedef CUmemAllocationProp CUmemPoolProps;

/* Of a node that allocates memory; other nodes have something else behind the type. */
typedef struct {
    int type;
    int reserved[3];
    CUmemAllocationProp where;
} CUgraphNodeParams;

/* Of the functions whose names have no _v2: sizes of 32 bits, before CUDA 3.2. */
typedef struct {
    unsigned width, height, format, channels;
} CUDA_ARRAY_DESCRIPTOR_v1;

typedef struct {
    unsigned width, height, depth, format, channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

typedef struct {
    size_t width, height;
    unsigned format, channels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    size_t width, height, depth;
    unsigned format, channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;

/* CUlaunchConfig begins so, and CUDA_LAUNCH_PARAMS has the function before it. */
typedef struct {
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
} CUlaunchConfig;

typedef struct {
    CUfunction function;
    CUlaunchConfig how;
    void **arguments;
} CUDA_LAUNCH_PARAMS;

#endif
