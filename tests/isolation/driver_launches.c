/* The stand-in driver's launches: a function is the number of nanoseconds that each block of its grid's x takes. */
#include <stdlib.h>

#include "driver_types.h"
#include "gpu.h"

CUresult cuCtxGetDevice(CUdevice *found);

static CUresult run(CUstream stream, uint64_t gpu_ns) {
    CUdevice device;
    if ((uintptr_t)stream > 2 && stream->captured) return stream->captured->gpu_ns += gpu_ns, CUDA_SUCCESS;
    CUresult answer = cuCtxGetDevice(&device);
    if (!answer) gpu_launch(device, gpu_ns);
    return answer;
}

#define KERNEL                                                                                                       \
    (CUfunction function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z, \
     unsigned shared_bytes, CUstream stream, void **values, void **extra)

CUresult cuLaunchKernel KERNEL {
    (void)y, (void)z, (void)block_x, (void)block_y, (void)block_z, (void)shared_bytes, (void)values, (void)extra;
    return run(stream, (uintptr_t)function * x);
}

CUresult cuLaunchKernel_ptsz KERNEL {
    return cuLaunchKernel(function, x, y, z, block_x, block_y, block_z, shared_bytes, stream, values, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned block_x,
                                   unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                                   void **values) {
    return cuLaunchKernel(function, x, y, z, block_x, block_y, block_z, shared_bytes, stream, values, NULL);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned block_x,
                                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                                        void **values) {
    return cuLaunchKernel(function, x, y, z, block_x, block_y, block_z, shared_bytes, stream, values, NULL);
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *each, unsigned count, unsigned flags) {
    (void)flags;
    return count ? run(each->how.stream, (uintptr_t)each->function * each->how.grid[0]) : CUDA_SUCCESS;
}

CUresult cuLaunch(CUfunction function) { return run(NULL, (uintptr_t)function); }

CUresult cuLaunchGrid(CUfunction function, int x, int y) { return run(NULL, (uintptr_t)function * (unsigned)(x * y)); }

CUresult cuLaunchGridAsync(CUfunction function, int x, int y, CUstream stream) {
    return run(stream, (uintptr_t)function * (unsigned)(x * y));
}

#ifndef OLD
CUresult cuLaunchKernelEx(const CUlaunchConfig *how, CUfunction function, void **values, void **extra) {
    (void)values, (void)extra;
    return run(how->stream, (uintptr_t)function * how->grid[0]);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *how, CUfunction function, void **values, void **extra) {
    return cuLaunchKernelEx(how, function, values, extra);
}
#endif

CUresult cuCtxSynchronize(void) {
    CUdevice device;
    CUresult answer = cuCtxGetDevice(&device);
    if (!answer) gpu_wait_for_all(device);
    return answer;
}

/* --- events: calls about them are errors while a thread captures, unless it allows them ------------------------------- */

static int events_called;

CUresult cuEventCreate(CUevent *made, unsigned flags) {
    (void)flags;
    *made = (CUevent)(uintptr_t)gpu_new_event();
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    CUdevice device;
    (void)stream;
    __atomic_add_fetch(&events_called, 1, __ATOMIC_RELAXED);
    CUresult answer = cuCtxGetDevice(&device);
    if (!answer) gpu_record(device, (int)(uintptr_t)event);
    return answer;
}

CUresult cuEventQuery(CUevent event) { return gpu_happened((int)(uintptr_t)event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    *ms = (float)(gpu_happened((int)(uintptr_t)end) - gpu_happened((int)(uintptr_t)start)) / 1e6f;
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode) { return *mode = 0, CUDA_SUCCESS; }

/* --- for tests -------------------------------------------------------------------------------------------------------- */

uint64_t standInNow(void) { return gpu_now(); }
void standInWait(uint64_t nanoseconds) { gpu_wait(nanoseconds); }
CUresult standInEvents(uint64_t *count) { return *count = (uint64_t)events_called, CUDA_SUCCESS; }
