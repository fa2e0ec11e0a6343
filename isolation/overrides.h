/* The one description of the driver functions that this library overrides. All others are the driver's own.
 *
 * Include it with these macros defined; each is named after what a function does with memory:
 *
 *   ALLOCATE(name, parameters, arguments, card, bytes, kind, key)   takes the bytes of the card, then calls the driver
 *   RELEASE(name, parameters, arguments, kind, key)                 calls the driver, then gives the bytes back
 *   LAUNCH(name, parameters, arguments, key, stream)                takes GPU time, then calls the driver and measures
 *   OTHER(name, parameters)                                         is written out, in the file that the heading names
 *   ASK(name, parameters)                                           is not overridden, but called by this library
 *
 * `card` is CURRENT (of the current context), DEVICE(number) or LOCATION(properties); `kind` and `key` are how the
 * holding is found again. An expression for `key` of a holding is used only after the driver has succeeded. The `key` of
 * a launch says which launches take the same time.
 */

/* --- memory -------------------------------------------------------------------------------------------------------- */

ALLOCATE(cuMemAlloc_v2, (CUdeviceptr * made, size_t size), (made, size), CURRENT, size, MEMORY, *made)
ALLOCATE(cuMemAllocPitch_v2, (CUdeviceptr * made, size_t *pitch, size_t width, size_t height, unsigned element),
         (made, pitch, width, height, element), CURRENT, bytes_of_rows(width, height), MEMORY, *made)
ALLOCATE(cuMemAllocManaged, (CUdeviceptr * made, size_t size, unsigned flags), (made, size, flags), CURRENT, size,
         MEMORY, *made)
RELEASE(cuMemFree_v2, (CUdeviceptr old), (old), MEMORY, old)

ALLOCATE(cuMemAlloc, (unsigned *made, unsigned size), (made, size), CURRENT, size, MEMORY, *made)
ALLOCATE(cuMemAllocPitch, (unsigned *made, unsigned *pitch, unsigned width, unsigned height, unsigned element),
         (made, pitch, width, height, element), CURRENT, bytes_of_rows(width, height), MEMORY, *made)
RELEASE(cuMemFree, (unsigned old), (old), MEMORY, old)

/* --- arrays -------------------------------------------------------------------------------------------------------- */

ALLOCATE(cuArrayCreate_v2, (CUarray * made, const CUDA_ARRAY_DESCRIPTOR *of), (made, of), CURRENT,
         of ? bytes_of_array(of->width, of->height, 1, of->format, of->channels) : 0, ARRAY, *made)
ALLOCATE(cuArray3DCreate_v2, (CUarray * made, const CUDA_ARRAY3D_DESCRIPTOR *of), (made, of), CURRENT,
         of && !is_filled_later(of->flags) ? bytes_of_array(of->width, of->height, of->depth, of->format, of->channels) : 0,
         ARRAY, *made)
ALLOCATE(cuArrayCreate, (CUarray * made, const CUDA_ARRAY_DESCRIPTOR_v1 *of), (made, of), CURRENT,
         of ? bytes_of_array(of->width, of->height, 1, of->format, of->channels) : 0, ARRAY, *made)
ALLOCATE(cuArray3DCreate, (CUarray * made, const CUDA_ARRAY3D_DESCRIPTOR_v1 *of), (made, of), CURRENT,
         of && !is_filled_later(of->flags) ? bytes_of_array(of->width, of->height, of->depth, of->format, of->channels) : 0,
         ARRAY, *made)
ALLOCATE(cuMipmappedArrayCreate, (CUmipmappedArray * made, const CUDA_ARRAY3D_DESCRIPTOR *of, unsigned levels),
         (made, of, levels), CURRENT, of ? bytes_of_levels(of, levels) : 0, MIPMAP, *made)
RELEASE(cuArrayDestroy, (CUarray old), (old), ARRAY, old)
RELEASE(cuMipmappedArrayDestroy, (CUmipmappedArray old), (old), MIPMAP, old)

/* --- contexts: what the driver needs for one; its end releases what was allocated in it ----------------------------- */

ALLOCATE(cuCtxCreate, (CUcontext * made, unsigned flags, CUdevice device), (made, flags, device), DEVICE(device),
         cards_context_bytes(device), CONTEXT, *made)
ALLOCATE(cuCtxCreate_v2, (CUcontext * made, unsigned flags, CUdevice device), (made, flags, device), DEVICE(device),
         cards_context_bytes(device), CONTEXT, *made)
ALLOCATE(cuCtxCreate_v3, (CUcontext * made, void *affinity, int count, unsigned flags, CUdevice device),
         (made, affinity, count, flags, device), DEVICE(device), cards_context_bytes(device), CONTEXT, *made)
ALLOCATE(cuCtxCreate_v4, (CUcontext * made, void *how, unsigned flags, CUdevice device), (made, how, flags, device),
         DEVICE(device), cards_context_bytes(device), CONTEXT, *made)
ALLOCATE(cuGreenCtxCreate, (CUgreenCtx * made, void *resources, CUdevice device, unsigned flags),
         (made, resources, device, flags), DEVICE(device), cards_context_bytes(device), GREEN, *made)
RELEASE(cuGreenCtxDestroy, (CUgreenCtx old), (old), GREEN, old)
RELEASE(cuCtxDestroy, (CUcontext old), (old), CONTEXT, old)
RELEASE(cuCtxDestroy_v2, (CUcontext old), (old), CONTEXT, old)

/* primary.c */
OTHER(cuDevicePrimaryCtxRetain, (CUcontext * made, CUdevice device))
OTHER(cuDevicePrimaryCtxRelease, (CUdevice device))
OTHER(cuDevicePrimaryCtxRelease_v2, (CUdevice device))
OTHER(cuDevicePrimaryCtxReset, (CUdevice device))
OTHER(cuDevicePrimaryCtxReset_v2, (CUdevice device))

/* --- virtual memory: virtual.c -------------------------------------------------------------------------------------- */

OTHER(cuMemCreate, (CUhandle * made, size_t size, const CUmemAllocationProp *how, unsigned long long flags))
OTHER(cuMemRelease, (CUhandle old))
OTHER(cuMemMap, (CUdeviceptr at, size_t size, size_t offset, CUhandle handle, unsigned long long flags))
OTHER(cuMemUnmap, (CUdeviceptr at, size_t size))
OTHER(cuMemRetainAllocationHandle, (CUhandle * found, void *at))

/* --- memory in the order of a stream: stream_memory.c ---------------------------------------------------------------- */

OTHER(cuMemAllocAsync, (CUdeviceptr * made, size_t size, CUstream stream))
OTHER(cuMemAllocAsync_ptsz, (CUdeviceptr * made, size_t size, CUstream stream))
OTHER(cuMemAllocFromPoolAsync, (CUdeviceptr * made, size_t size, CUmemoryPool pool, CUstream stream))
OTHER(cuMemAllocFromPoolAsync_ptsz, (CUdeviceptr * made, size_t size, CUmemoryPool pool, CUstream stream))
OTHER(cuMemFreeAsync, (CUdeviceptr old, CUstream stream))
OTHER(cuMemFreeAsync_ptsz, (CUdeviceptr old, CUstream stream))
OTHER(cuMemPoolCreate, (CUmemoryPool * made, const CUmemPoolProps *how))
OTHER(cuMemPoolDestroy, (CUmemoryPool old))
OTHER(cuMemPoolTrimTo, (CUmemoryPool pool, size_t bytes))

/* --- memory of graphs: graphs.c ------------------------------------------------------------------------------------- */

OTHER(cuGraphAddMemAllocNode, (CUgraphNode * made, CUgraph graph, const CUgraphNode *after, size_t count, void *how))
OTHER(cuGraphAddNode,
      (CUgraphNode * made, CUgraph graph, const CUgraphNode *after, size_t count, CUgraphNodeParams *how))
OTHER(cuGraphAddNode_v2, (CUgraphNode * made, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count,
                          CUgraphNodeParams *how))
OTHER(cuGraphLaunch, (CUgraphExec graph, CUstream stream))
OTHER(cuGraphLaunch_ptsz, (CUgraphExec graph, CUstream stream))
OTHER(cuGraphUpload, (CUgraphExec graph, CUstream stream))
OTHER(cuGraphUpload_ptsz, (CUgraphExec graph, CUstream stream))

/* --- launches of kernels: launches.c; those of graphs are above ----------------------------------------------------- */

#define KERNEL                                                                                                  \
    (CUfunction function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z, \
     unsigned shared_bytes, CUstream stream, void **values, void **extra)
#define KERNEL_VALUES (function, x, y, z, block_x, block_y, block_z, shared_bytes, stream, values, extra)
#define COOPERATIVE                                                                                             \
    (CUfunction function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z, \
     unsigned shared_bytes, CUstream stream, void **values)
#define COOPERATIVE_VALUES (function, x, y, z, block_x, block_y, block_z, shared_bytes, stream, values)
#define CONFIGURED (const CUlaunchConfig *how, CUfunction function, void **values, void **extra)

LAUNCH(cuLaunchKernel, KERNEL, KERNEL_VALUES, kernel_key(function, x, y, z), stream)
LAUNCH(cuLaunchKernel_ptsz, KERNEL, KERNEL_VALUES, kernel_key(function, x, y, z), OF_THREAD(stream))
LAUNCH(cuLaunchCooperativeKernel, COOPERATIVE, COOPERATIVE_VALUES, kernel_key(function, x, y, z), stream)
LAUNCH(cuLaunchCooperativeKernel_ptsz, COOPERATIVE, COOPERATIVE_VALUES, kernel_key(function, x, y, z), OF_THREAD(stream))
LAUNCH(cuLaunchKernelEx, CONFIGURED, (how, function, values, extra), key_of_configured(how, function),
       how ? how->stream : NULL)
LAUNCH(cuLaunchKernelEx_ptsz, CONFIGURED, (how, function, values, extra), key_of_configured(how, function),
       OF_THREAD(how ? how->stream : NULL))
LAUNCH(cuLaunchCooperativeKernelMultiDevice, (CUDA_LAUNCH_PARAMS * each, unsigned count, unsigned flags),
       (each, count, flags), kernel_key(each && count ? each->function : NULL, count, 0, 0),
       each && count ? each->how.stream : NULL)
LAUNCH(cuLaunch, (CUfunction function), (function), kernel_key(function, 1, 1, 1), NULL)
LAUNCH(cuLaunchGrid, (CUfunction function, int x, int y), (function, x, y), kernel_key(function, x, y, 1), NULL)
LAUNCH(cuLaunchGridAsync, (CUfunction function, int x, int y, CUstream stream), (function, x, y, stream),
       kernel_key(function, x, y, 1), stream)

#undef KERNEL
#undef KERNEL_VALUES
#undef COOPERATIVE
#undef COOPERATIVE_VALUES
#undef CONFIGURED

/* --- what a program asks: answers.c --------------------------------------------------------------------------------- */

OTHER(cuInit, (unsigned flags))
OTHER(cuMemGetInfo_v2, (size_t *free, size_t *total))
OTHER(cuDeviceTotalMem_v2, (size_t *total, CUdevice device))
OTHER(cuGetProcAddress, (const char *name, void **found, int version, uint64_t flags))
OTHER(cuGetProcAddress_v2, (const char *name, void **found, int version, uint64_t flags, int *status))

/* --- what this library asks ------------------------------------------------------------------------------------------ */

ASK(cuCtxGetCurrent, (CUcontext * found))
ASK(cuCtxGetDevice, (CUdevice * found))
ASK(cuCtxPushCurrent_v2, (CUcontext context))
ASK(cuCtxPopCurrent_v2, (CUcontext * old))
ASK(cuDeviceGetGraphMemAttribute, (CUdevice device, int attribute, void *found))
ASK(cuDeviceGetMemPool, (CUmemoryPool * found, CUdevice device))
ASK(cuDeviceGetUuid, (unsigned char uuid[16], CUdevice device))
ASK(cuDeviceGraphMemTrim, (CUdevice device))
ASK(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active))
ASK(cuEventCreate, (CUevent * made, unsigned flags))
ASK(cuEventElapsedTime, (float *ms, CUevent start, CUevent end))
ASK(cuEventQuery, (CUevent event))
ASK(cuEventRecord, (CUevent event, CUstream stream))
ASK(cuThreadExchangeStreamCaptureMode, (int *mode))
ASK(cuMemPoolGetAttribute, (CUmemoryPool pool, int attribute, void *found))
ASK(cuStreamGetCtx, (CUstream stream, CUcontext *found))
ASK(cuStreamIsCapturing, (CUstream stream, int *status))
