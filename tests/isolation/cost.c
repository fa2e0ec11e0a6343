/* cost LIBRARY: prints the nanoseconds of some calls, each the best of many rounds, as words and numbers. */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#include "cuda.h"

#define ROUNDS 2000
#define CALLS 100

static CUresult (*start)(unsigned);
static CUresult (*allocate)(CUdeviceptr *, size_t);
static CUresult (*release)(CUdeviceptr);
static CUresult (*info)(size_t *, size_t *);
static CUresult (*launch)(CUgraphExec, CUstream);
static CUresult (*run)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
                       void **);
static CUresult (*version)(int *);

static void allocate_and_free(void) {
    CUdeviceptr at;
    if (!allocate(&at, 512)) release(at);
}

static void get_info(void) {
    size_t left, total;
    info(&left, &total);
}

static void launch_graph(void) { launch(NULL, NULL); }

static void launch_kernel(void) { run((CUfunction)1, 1, 1, 1, 1, 1, 1, 0, (CUstream)64, NULL, NULL); }

static void get_version(void) {
    int found;
    version(&found);
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double best_ns(void (*call)(void)) {
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double before = now_ns();
        for (int at = 0; at < CALLS; at++) call();
        double took = (now_ns() - before) / CALLS;
        if (took < best) best = took;
    }
    return best;
}

int main(int count, char **arguments) {
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (!library) return 64;
    *(void **)&start = dlsym(library, "cuInit");
    *(void **)&allocate = dlsym(library, "cuMemAlloc_v2");
    *(void **)&release = dlsym(library, "cuMemFree_v2");
    *(void **)&info = dlsym(library, "cuMemGetInfo_v2");
    *(void **)&launch = dlsym(library, "cuGraphLaunch");
    *(void **)&run = dlsym(library, "cuLaunchKernel");
    *(void **)&version = dlsym(library, "cuDriverGetVersion");
    if (start(0)) return 65;
    printf("allocate-and-free %.1f get-info %.1f launch-graph %.1f launch-kernel %.1f any-other %.1f\n", best_ns(allocate_and_free),
           best_ns(get_info), best_ns(launch_graph), best_ns(launch_kernel), best_ns(get_version));
}
