#include "gpu.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "run_folder.h"

#define NEVER UINT64_MAX
#define EACH(member) for (int member = 0; member < world->expected; member++)

static gpu_world *world;
static int self, events = 1;

/* --- cards: everything below is under the lock ------------------------------------------------------------------------ */

static gpu_work *front(gpu_queue *of) { return of->ended < of->begun ? &of->works[of->ended % GPU_QUEUE] : NULL; }

/* Events happen as soon as what is before them has ended. */
static void end_works(int card, int member) {
    gpu_queue *of = &world->queues[card][member];
    for (gpu_work *work; (work = front(of)) && !work->left; of->ended++)
        if (work->event) world->members[member].happened[work->event] = world->now;
}

/* The member whose kernel runs; -1: none. */
static int running(int card) {
    int turn = world->cards[card].turn;
    if (world->cards[card].slice_left && front(&world->queues[card][turn])) return turn;
    world->cards[card].slice_left = GPU_SLICE_NS;
    for (int more = 1; more <= world->expected; more++) {
        int next = (turn + more) % world->expected;
        if (front(&world->queues[card][next])) return world->cards[card].turn = next;
    }
    return -1;
}

static uint64_t smaller(uint64_t one, uint64_t other) { return one < other ? one : other; }

static uint64_t next_of_card(int card) {
    int member = running(card);
    if (member < 0) return NEVER;
    return world->now + smaller(front(&world->queues[card][member])->left, world->cards[card].slice_left);
}

static void run_card(int card, uint64_t nanoseconds) {
    int member = running(card);
    if (member < 0) return;
    front(&world->queues[card][member])->left -= nanoseconds;
    world->queues[card][member].busy_ns += nanoseconds;
    world->cards[card].slice_left -= nanoseconds;
}

/* --- time ------------------------------------------------------------------------------------------------------------- */

static int can_go_on(const gpu_member *of, int member) {
    return world->now >= of->until || (of->card >= 0 && world->queues[of->card][member].ended >= of->work);
}

static int wake(void) {
    int woken = 0;
    EACH(member) {
        gpu_member *of = &world->members[member];
        if (of->state != GPU_WAITS || !can_go_on(of, member)) continue;
        of->state = GPU_RUNS;
        woken = pthread_cond_signal(&of->goes_on) == 0;
    }
    return woken;
}

static int all_wait(void) {
    EACH(member) if (world->members[member].state < GPU_WAITS) return 0;
    return 1;
}

static int all_gone(void) {
    EACH(member) if (world->members[member].state != GPU_GONE) return 0;
    return 1;
}

static uint64_t next_moment(void) {
    uint64_t next = NEVER;
    EACH(member) if (world->members[member].state == GPU_WAITS) next = smaller(next, world->members[member].until);
    for (int card = 0; card < CARDS; card++) next = smaller(next, next_of_card(card));
    return next;
}

static void move_to(uint64_t moment) {
    for (int card = 0; card < CARDS; card++) run_card(card, moment - world->now);
    world->now = moment;
    for (int card = 0; card < CARDS; card++) EACH(member) end_works(card, member);
}

static void move_on(void) {
    while (all_wait() && !all_gone() && !wake()) move_to(next_moment());
}

static void wait_until(uint64_t moment, int card, uint64_t work) {
    gpu_member *me = &world->members[self];
    me->until = moment;
    me->card = card;
    me->work = work;
    me->state = GPU_WAITS;
    move_on();
    while (me->state != GPU_RUNS) pthread_cond_wait(&me->goes_on, &world->lock);
}

static void push(int card, gpu_work work) {
    gpu_queue *of = &world->queues[card][self];
    if (of->begun - of->ended == GPU_QUEUE) wait_until(NEVER, card, of->ended + 1);
    of->works[of->begun++ % GPU_QUEUE] = work;
    end_works(card, self);
}

/* --- what the driver calls -------------------------------------------------------------------------------------------- */

void gpu_make(gpu_world *made, int expected) {
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_condattr_t likewise;
    pthread_condattr_init(&likewise);
    pthread_condattr_setpshared(&likewise, PTHREAD_PROCESS_SHARED);
    memset(made, 0, sizeof *made);
    pthread_mutex_init(&made->lock, &shared);
    for (int member = 0; member < GPU_MEMBERS; member++) pthread_cond_init(&made->members[member].goes_on, &likewise);
    made->expected = expected;
    made->now = 1000000000;
}

static void leave(void) {
    pthread_mutex_lock(&world->lock);
    world->members[self].state = GPU_GONE;
    move_on();
    pthread_mutex_unlock(&world->lock);
}

void gpu_join(void) {
    int file = open(RUN_FOLDER "/gpu", O_RDWR | O_CLOEXEC);
    const char *member = getenv("STAND_IN_MEMBER");
    if (file < 0 || !member || world) return;
    world = mmap(NULL, sizeof *world, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    self = atoi(member);
    world->members[self].state = GPU_RUNS;
    atexit(leave);
}

const gpu_world *gpu_shared(void) { return world; }

uint64_t gpu_now(void) {
    if (!world) return 0;
    pthread_mutex_lock(&world->lock);
    uint64_t now = world->now;
    pthread_mutex_unlock(&world->lock);
    return now;
}

void gpu_wait(uint64_t nanoseconds) {
    if (!world) return;
    pthread_mutex_lock(&world->lock);
    wait_until(world->now + nanoseconds, -1, 0);
    pthread_mutex_unlock(&world->lock);
}

static void push_locked(int card, gpu_work work) {
    if (!world) return;
    pthread_mutex_lock(&world->lock);
    push(card, work);
    pthread_mutex_unlock(&world->lock);
}

void gpu_launch(int card, uint64_t nanoseconds) { push_locked(card, (gpu_work){nanoseconds, 0}); }

void gpu_wait_for_all(int card) {
    if (!world) return;
    pthread_mutex_lock(&world->lock);
    wait_until(NEVER, card, world->queues[card][self].begun);
    pthread_mutex_unlock(&world->lock);
}

int gpu_new_event(void) { return events++ % GPU_EVENTS; }

void gpu_record(int card, int event) {
    if (world) world->members[self].happened[event] = 0;
    push_locked(card, (gpu_work){0, event});
}

uint64_t gpu_happened(int event) {
    if (!world) return 1;
    pthread_mutex_lock(&world->lock);
    uint64_t when = world->members[self].happened[event];
    pthread_mutex_unlock(&world->lock);
    return when;
}
