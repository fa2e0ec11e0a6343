/* seconds COUNT PROCESSES: each second of the stand-in's time it prints the time in ns and, for each card and process, the
 * GPU time in 1/1000 of the second. The time stands still until a line is read. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu.h"

static const gpu_world *world;
static uint64_t busy[CARDS][GPU_MEMBERS];

static uint64_t since(uint64_t *last, uint64_t now) {
    uint64_t more = now - *last;
    *last = now;
    return more;
}

static void print_second(int processes) {
    printf("%llu", (unsigned long long)world->now);
    for (int card = 0; card < CARDS; card++)
        for (int member = 0; member < processes; member++)
            printf(" %llu", (unsigned long long)since(&busy[card][member], world->queues[card][member].busy_ns) / 1000000);
    printf("\n");
    fflush(stdout);
}

int main(int count, char **arguments) {
    void *library = dlopen("./driver/libcuda.so.1", RTLD_NOW);
    if (!library || count != 3) return 64;
    int (*start)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    void (*pause)(uint64_t) = (void (*)(uint64_t))dlsym(library, "standInWait");
    const gpu_world *(*shared)(void) = (const gpu_world *(*)(void))dlsym(library, "gpu_shared");
    if (start(0)) return 65;
    world = shared();
    for (int second = 0; second < atoi(arguments[1]); second++) {
        pause(1000000000);
        print_second(atoi(arguments[2]));
        if (getchar() != '\n') return 66;
    }
}
