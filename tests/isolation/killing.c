/* killing KILLS SEED: 8 processes of 2 threads allocate on one card, and are killed at random moments.
 *
 * Prints, as words and numbers: the most that was used on the card, the bytes that the account still shows when all are
 * dead, the locks that were taken from dead processes, the operations, and the threads that made no progress at the end.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "account.h"
#include "card.h"

#define WORKERS 8
#define THREADS 2
#define MIB (1UL << 20)
#define LIMIT (6000 * MIB)
#define PATIENCE_MS 60000

typedef struct {
    account_file account;
    control_file control;
    card card;
    _Atomic uint64_t operations[WORKERS][THREADS];
    _Atomic uint64_t refused;
} shared;

static shared *all;
static account mine;

typedef struct {
    int worker, thread;
} place;

static void operate(unsigned *random) {
    uint64_t bytes = (1 + (uint64_t)rand_r(random) % 1500) * MIB;
    if (!account_take(&mine, bytes)) {
        all->refused++;
        return;
    }
    if (card_allocate(&all->card, mine.self, bytes)) card_free(&all->card, mine.self, bytes);
    account_give(&mine, bytes);
}

static void *work(void *argument) {
    place *at = argument;
    unsigned random = (unsigned)(mine.self >> 10) + (unsigned)at->thread;
    for (;;) {
        operate(&random);
        all->operations[at->worker][at->thread]++;
    }
    return NULL;
}

static account fresh(void) { return (account){&all->account.cards[0], &all->control.cards[0], process_self(), NULL}; }

static void be_worker(int worker) {
    static place places[THREADS];
    pthread_t thread;
    mine = fresh();
    for (int i = 0; i < THREADS; i++) {
        places[i] = (place){worker, i};
        if (i < THREADS - 1) pthread_create(&thread, NULL, work, &places[i]);
    }
    work(&places[THREADS - 1]);
}

static pid_t begin(int worker) {
    pid_t child = fork();
    if (!child) be_worker(worker);
    return child;
}

static void end(pid_t worker) {
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
}

static void wait_us(unsigned microseconds) {
    struct timespec pause = {0, (long)microseconds * 1000};
    nanosleep(&pause, NULL);
}

static uint64_t operations(int worker, int thread) { return all->operations[worker][thread]; }

static int stuck_threads(void) {
    uint64_t before[WORKERS][THREADS];
    int stuck = WORKERS * THREADS;
    memcpy(before, all->operations, sizeof before);
    for (int waited = 0; stuck && waited < PATIENCE_MS; waited++) {
        wait_us(1000);
        stuck = 0;
        for (int i = 0; i < WORKERS * THREADS; i++)
            stuck += operations(i / THREADS, i % THREADS) == before[i / THREADS][i % THREADS];
    }
    return stuck;
}

static uint64_t all_operations(void) {
    uint64_t total = 0;
    for (int i = 0; i < WORKERS * THREADS; i++) total += operations(i / THREADS, i % THREADS);
    return total;
}

int main(int count, char **arguments) {
    if (count != 3) return 64;
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    card_make(&all->card, UINT64_MAX / 2);
    all->control.cards[0].memory = LIMIT;
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) workers[i] = begin(i);
    unsigned random = (unsigned)atoi(arguments[2]);
    for (int kills = atoi(arguments[1]); kills; kills--) {
        wait_us((unsigned)rand_r(&random) % 2000);
        int worker = rand_r(&random) % WORKERS;
        end(workers[worker]);
        workers[worker] = begin(worker);
    }
    int stuck = stuck_threads();
    for (int i = 0; i < WORKERS; i++) end(workers[i]);
    account last = fresh();
    printf("most %lu leaked %lu recovered %lu refused %lu operations %lu stuck %d\n", all->card.most / MIB,
           account_used(&last) / MIB, all->account.cards[0].recovered, (unsigned long)all->refused, all_operations(),
           stuck);
}
