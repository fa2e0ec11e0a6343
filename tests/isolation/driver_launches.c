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

/* --- captures --------------------------------------------------------------------------------------------------------- */

enum { GLOBAL = 0, RELAXED = 2, NOT_WHILE_CAPTURED = 900, SPOILED = 901 };

static int captures, spoiled; /* in the global mode */
static __thread int mode_of_thread = GLOBAL;

void capture_begins(int mode) { captures += mode == GLOBAL; }

CUresult capture_ends(int mode) {
    int was_spoiled = spoiled;
    captures -= mode == GLOBAL;
    spoiled = 0;
    return was_spoiled ? SPOILED : CUDA_SUCCESS;
}

static CUresult not_while_captured(void) {
    int spoils = captures && mode_of_thread != RELAXED;
    if (spoils) spoiled = 1;
    return spoils ? NOT_WHILE_CAPTURED : CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    int old = mode_of_thread;
    mode_of_thread = *mode;
    return *mode = old, CUDA_SUCCESS;
}

/* --- events ----------------------------------------------------------------------------------------------------------- */

static int events_called;

CUresult cuEventCreate(CUevent *made, unsigned flags) {
    (void)flags;
    *made = (CUevent)(uintptr_t)gpu_new_event();
    return not_while_captured();
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    CUdevice device;
    (void)stream;
    __atomic_add_fetch(&events_called, 1, __ATOMIC_RELAXED);
    CUresult answer = not_while_captured();
    if (!answer) answer = cuCtxGetDevice(&device);
    if (!answer) gpu_record(device, (int)(uintptr_t)event);
    return answer;
}

CUresult cuEventQuery(CUevent event) {
    CUresult answer = not_while_captured();
    return answer || gpu_happened((int)(uintptr_t)event) ? answer : CUDA_ERROR_NOT_READY;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    *ms = (float)(gpu_happened((int)(uintptr_t)end) - gpu_happened((int)(uintptr_t)start)) / 1e6f;
    return not_while_captured();
}

/* --- for tests -------------------------------------------------------------------------------------------------------- */

uint64_t standInNow(void) { return gpu_now(); }
void standInWait(uint64_t nanoseconds) { gpu_wait(nanoseconds); }
CUresult standInEvents(uint64_t *count) { return *count = (uint64_t)events_called, CUDA_SUCCESS; }
