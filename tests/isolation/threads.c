/* threads ROUNDS LIBRARY: several threads allocate and free in all ways at once. Exits with the number of errors, and
 * writes the bytes that are still free for it to standard output. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda.h"

#define THREADS 4
#define MIB (1UL << 20)

static void *library;
static CUcontext context;
static int rounds, errors;

#define FUNCTION(name) ((CUresult(*)())dlsym(library, #name))
#define EXPECT(call) \
    if ((call) != 0) __atomic_add_fetch(&errors, 1, __ATOMIC_SEQ_CST)

static void use_memory(void) {
    CUdeviceptr at = 0;
    EXPECT(FUNCTION(cuMemAlloc_v2)(&at, 2 * MIB));
    EXPECT(FUNCTION(cuMemFree_v2)(at));
}

static void use_virtual_memory(void) {
    CUmemAllocationProp how = {1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, NULL, {0}};
    CUdeviceptr at = 0;
    CUhandle handle = 0;
    EXPECT(FUNCTION(cuMemCreate)(&handle, 4 * MIB, &how, 0UL));
    EXPECT(FUNCTION(cuMemAddressReserve)(&at, 4 * MIB, 0UL, 0UL, 0UL));
    EXPECT(FUNCTION(cuMemMap)(at, 4 * MIB, 0UL, handle, 0UL));
    EXPECT(FUNCTION(cuMemRelease)(handle));
    EXPECT(FUNCTION(cuMemUnmap)(at, 4 * MIB));
}

static void use_pool(void) {
    CUdeviceptr at = 0;
    EXPECT(FUNCTION(cuMemAllocAsync)(&at, 3 * MIB, NULL));
    EXPECT(FUNCTION(cuMemFreeAsync)(at, NULL));
}

static void use_contexts(void) {
    CUcontext again;
    size_t left, total;
    EXPECT(FUNCTION(cuDevicePrimaryCtxRetain)(&again, 0));
    EXPECT(FUNCTION(cuMemGetInfo_v2)(&left, &total));
    EXPECT(FUNCTION(cuDevicePrimaryCtxRelease_v2)(0));
}

static void launch_kernels(void) {
    for (uintptr_t function = 1; function < 9; function++)
        EXPECT(FUNCTION(cuLaunchKernel)((CUfunction)function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

static void *work(void *argument) {
    static void (*const uses[])(void) = {use_memory, use_virtual_memory, use_pool, use_contexts, launch_kernels};
    unsigned random = (unsigned)(uintptr_t)argument;
    EXPECT(FUNCTION(cuCtxSetCurrent)(context));
    for (int i = 0; i < rounds; i++) uses[(unsigned)rand_r(&random) % 5]();
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    size_t left = 0, total;
    rounds = count == 3 ? atoi(arguments[1]) : 0;
    library = dlopen(count == 3 ? arguments[2] : "", RTLD_NOW);
    if (!library) return 64;
    EXPECT(FUNCTION(cuInit)(0));
    EXPECT(FUNCTION(cuDevicePrimaryCtxRetain)(&context, 0));
    EXPECT(FUNCTION(cuCtxSetCurrent)(context));
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    EXPECT(FUNCTION(cuStreamSynchronize)(NULL));
    EXPECT(FUNCTION(cuMemGetInfo_v2)(&left, &total));
    printf("%zu\n", left);
    return errors < 64 ? errors : 63;
}
