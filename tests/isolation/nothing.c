/* A libcuda.so.1 that does nothing at once, so that what the isolation library adds to a call can be measured. */
#include <string.h>

#include "cuda.h"

CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *found) { return *found = 0, CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *found) { return *found = NULL, CUDA_SUCCESS; }
CUresult cuDeviceGetUuid(unsigned char uuid[16], CUdevice device) { return memset(uuid, 'A' + device, 16), CUDA_SUCCESS; }
CUresult cuMemAlloc_v2(CUdeviceptr *made, size_t size) { return *made = size, CUDA_SUCCESS; }
CUresult cuMemFree_v2(CUdeviceptr old) { return old ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
CUresult cuMemGetInfo_v2(size_t *left, size_t *total) { return *left = *total = 1, CUDA_SUCCESS; }
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) { return (void)graph, (void)stream, CUDA_SUCCESS; }
CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                        unsigned block_z, unsigned shared_bytes, CUstream stream, void **values, void **extra) {
    (void)x, (void)y, (void)z, (void)block_x, (void)block_y, (void)block_z, (void)shared_bytes;
    return (void)function, (void)stream, (void)values, (void)extra, CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream stream, int *status) { return (void)stream, *status = 0, CUDA_SUCCESS; }
CUresult cuEventCreate(CUevent *made, unsigned flags) { return (void)flags, *made = (CUevent)1, CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent event, CUstream stream) { return (void)event, (void)stream, CUDA_SUCCESS; }
CUresult cuEventQuery(CUevent event) { return (void)event, CUDA_SUCCESS; }
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    return (void)start, (void)end, *ms = 0.000001f, CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(int *mode) { return *mode = 0, CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *version) { return *version = 0, CUDA_SUCCESS; }
