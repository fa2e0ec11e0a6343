/* load SECONDS DEVICE WAY NS...: launches kernels of these lengths in turn for so many seconds of the stand-in's time.
 *
 * The way is `ahead`, `awaited` (each), `bursts` (of 20 ms, with pauses of 20 ms), or how it is launched ahead: `graph`,
 * `cooperative`, `configured`, `captured`. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

static void *library;

#define GET(name, parameters) CUresult(*name) parameters = (CUresult(*) parameters)dlsym(library, #name)

static void launch(const char *way, uint64_t gpu_ns) {
    GET(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                         void **, void **));
    GET(cuLaunchCooperativeKernel,
        (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **));
    GET(cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **));
    CUfunction function = (CUfunction)(uintptr_t)gpu_ns;
    CUlaunchConfig how = {{1, 1, 1}, {1, 1, 1}, 0, NULL};
    if (!strcmp(way, "cooperative")) cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
    else if (!strcmp(way, "configured")) cuLaunchKernelEx(&how, function, NULL, NULL);
    else cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static CUgraphExec captured(uint64_t gpu_ns) {
    GET(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                         void **, void **));
    GET(cuStreamCreate, (CUstream *, unsigned));
    GET(cuStreamBeginCapture_v2, (CUstream, int));
    GET(cuStreamEndCapture, (CUstream, CUgraph *));
    CUstream stream;
    CUgraph graph;
    cuStreamCreate(&stream, 0);
    cuStreamBeginCapture_v2(stream, 0);
    for (int at = 0; at < 10; at++) cuLaunchKernel((CUfunction)(uintptr_t)(gpu_ns / 10), 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    cuStreamEndCapture(stream, &graph);
    return (CUgraphExec)graph;
}

int main(int count, char **arguments) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library || count < 5) return 64;
    GET(cuInit, (unsigned));
    GET(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice));
    GET(cuCtxSynchronize, (void));
    GET(cuGraphLaunch, (CUgraphExec, CUstream));
    uint64_t (*now)(void) = (uint64_t(*)(void))dlsym(library, "standInNow");
    void (*pause)(uint64_t) = (void (*)(uint64_t))dlsym(library, "standInWait");
    CUcontext context;
    if (cuInit(0) || cuCtxCreate_v2(&context, 0, atoi(arguments[2]))) return 65;
    uint64_t start = now(), end = start + strtoull(arguments[1], NULL, 10) * 1000000000;
    const char *way = arguments[3];
    CUgraphExec graph = captured(strtoull(arguments[4], NULL, 10));
    for (int at = 0; now() < end; at++) {
        uint64_t gpu_ns = strtoull(arguments[4 + at % (count - 4)], NULL, 10);
        if (!strcmp(way, "graph")) cuGraphLaunch(graph, NULL);
        else launch(way, gpu_ns);
        if (!strcmp(way, "awaited")) cuCtxSynchronize();
        if (!strcmp(way, "bursts") && (now() - start) % 40000000 >= 20000000) pause(20000000);
    }
}
