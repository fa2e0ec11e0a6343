/* corrections SECONDS PRESENT FOLDER...: the node agent's part in the cores, and what each process used.
 *
 * Each second of the stand-in's time it prints, for each process and card, the GPU time in 1/1000 of the second; the
 * folder with this number is that of the process's container. For the first PRESENT seconds it corrects the containers
 * as the agent will: by what NVML shows (whole per cents) and what the rows claim, with half weight. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu.h"
#include "shared_files.h"

#define LEAST_CLAIM_NS 10000000

static const gpu_world *world;
static char **folders;
static int members;
static uint64_t busy[CARDS][GPU_MEMBERS], claimed[CARDS][GPU_MEMBERS], used[CARDS][GPU_MEMBERS];
static uint64_t shown_sum[CARDS][GPU_MEMBERS], claimed_sum[CARDS][GPU_MEMBERS];

static void *mapped(const char *folder, const char *name, size_t size) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDWR);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at == MAP_FAILED ? NULL : at;
}

static uint64_t claims(const account_card *of) {
    uint64_t total = 0;
    for (int row = 0; row < MOST_PROCESSES; row++) total += of->rows[row].gpu_ns;
    return total;
}

static void halve_and_add(uint64_t *sum, uint64_t more) { *sum = *sum / 2 + more; }

static uint64_t since(uint64_t *last, uint64_t now) {
    uint64_t more = now - *last;
    *last = now;
    return more;
}

static void correct(int card, int member) {
    account_file *accounts = mapped(folders[member], "account", sizeof *accounts);
    control_file *control = mapped(folders[member], "control", sizeof *control);
    uint64_t claim = since(&claimed[card][member], claims(&accounts->cards[card])), shown = 0;
    for (int other = 0; other < members; other++)
        if (!strcmp(folders[other], folders[member])) shown += used[card][other] / 10000000 * 10000000;
    uint64_t *place = &control->cards[card].correction;
    halve_and_add(&shown_sum[card][member], shown);
    halve_and_add(&claimed_sum[card][member], claim);
    uint64_t next = claimed_sum[card][member] > LEAST_CLAIM_NS ? shown_sum[card][member] * 1000 / claimed_sum[card][member] : 1000;
    __atomic_store_n(place, next < 100 ? 100 : next > 4000 ? 4000 : next, __ATOMIC_RELAXED);
    __atomic_store_n(&control->head.measured_at, world->now, __ATOMIC_RELAXED);
    munmap(accounts, sizeof *accounts);
    munmap(control, sizeof *control);
}

static int is_first(int member) {
    for (int other = 0; other < member; other++)
        if (!strcmp(folders[other], folders[member])) return 0;
    return 1;
}

static void measure(int card) {
    for (int member = 0; member < members; member++) {
        used[card][member] = since(&busy[card][member], world->queues[card][member].busy_ns);
        printf("%llu ", (unsigned long long)used[card][member] / 1000000);
    }
}

static void second(int corrects) {
    for (int card = 0; card < CARDS; card++) {
        measure(card);
        for (int member = 0; corrects && member < members; member++)
            if (is_first(member)) correct(card, member);
    }
    printf("\n");
}

int main(int count, char **arguments) {
    void *library = dlopen("./driver/libcuda.so.1", RTLD_NOW);
    if (!library || count < 4) return 64;
    int (*start)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    void (*pause)(uint64_t) = (void (*)(uint64_t))dlsym(library, "standInWait");
    const gpu_world *(*shared)(void) = (const gpu_world *(*)(void))dlsym(library, "gpu_shared");
    if (start(0)) return 65;
    world = shared();
    folders = arguments + 3;
    members = count - 3;
    for (int at = 0; at < atoi(arguments[1]); at++) {
        pause(1000000000);
        second(at < atoi(arguments[2]));
    }
}
