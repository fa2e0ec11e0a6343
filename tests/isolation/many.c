/* many PROCESSES LIBRARY: so many programs load the library, take memory, and end when all of them have it.
 *
 * Prints the microseconds from the first start to the last end, and how many got memory and how many OUT_OF_MEMORY. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda.h"

#define ROUNDS 20
#define MIB (1UL << 20)
#define READY 3
#define END 4

static CUresult (*allocate)(CUdeviceptr *, size_t);
static CUresult (*release)(CUdeviceptr);
static CUresult (*info)(size_t *, size_t *);

static CUresult use(CUdeviceptr *kept) {
    size_t left, total;
    CUresult error = allocate(kept, MIB);
    for (int round = 0; !error && round < ROUNDS; round++) {
        CUdeviceptr other;
        if ((error = allocate(&other, MIB)) == 0) error = release(other) || info(&left, &total);
    }
    return error;
}

/* Says that it is ready, and waits until nobody can write to the other pipe. */
static void wait_for_all(void) {
    char byte = 1;
    if (write(READY, &byte, 1) == 1) (void)!read(END, &byte, 1);
}

static int be_program(const char *path) {
    CUdeviceptr kept = 0;
    void *library = dlopen(path, RTLD_NOW);
    if (!library) return 64;
    CUresult (*start)(unsigned) = (CUresult(*)(unsigned))dlsym(library, "cuInit");
    *(void **)&allocate = dlsym(library, "cuMemAlloc_v2");
    *(void **)&release = dlsym(library, "cuMemFree_v2");
    *(void **)&info = dlsym(library, "cuMemGetInfo_v2");
    CUresult error = start(0) ? 65 : use(&kept);
    wait_for_all();
    return error ? (int)error : (int)release(kept);
}

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void start_program(const char *self, const char *library, int ready[2], int end[2]) {
    if (fork()) return;
    dup2(ready[1], 13), dup2(end[0], 14);
    dup2(13, READY), dup2(14, END);
    for (int file = END + 1; file < 15; file++) close(file);
    execl(self, self, library, NULL);
    _exit(66);
}

int main(int count, char **arguments) {
    int ready[2], end[2], status, got = 0, refused = 0, processes = count == 3 ? atoi(arguments[1]) : 0;
    if (count == 2) return be_program(arguments[1]);
    if (!processes || pipe(ready) || pipe(end)) return 64;
    uint64_t began = now_us();
    for (int at = 0; at < processes; at++) start_program("/proc/self/exe", arguments[2], ready, end);
    char byte;
    for (int at = 0; at < processes; at++) (void)!read(ready[0], &byte, 1);
    close(end[1]);
    while (wait(&status) > 0) {
        got += status == 0;
        refused += WIFEXITED(status) && WEXITSTATUS(status) == CUDA_ERROR_OUT_OF_MEMORY;
    }
    printf("us %llu got %d refused %d\n", (unsigned long long)(now_us() - began), got, refused);
}
