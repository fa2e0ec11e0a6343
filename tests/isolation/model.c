/* Runs isolation/account.c by a script: several processes of two threads each, which advance by one access to shared
 * memory at a time, and may be killed before any of them.
 *
 * The account is not changed for this: it is compiled with a STEP that returns to the script. Sleeping and finding out
 * who has died are the model's. The card is the truth that the account must bound: bytes are on it from the moment that
 * the driver could allocate them until it has freed them, or the process is dead.
 *
 * A script is a text of bytes: each advances one thread, starts an operation on it, or kills its process. At its end all
 * threads run on in turn until they have finished. model_run returns which law was broken first; 0: none.
 */
#include <string.h>
#include <ucontext.h>

static void step(void);
#define STEP() step()
#include "account.c"

#define PROCESSES 3
#define THREADS (2 * PROCESSES)
#define STACK (64 * 1024)
#define LIMIT 10
#define MOST_STEPS 20000

enum { KEPT, OVER_THE_LIMIT, REFUSED_WITHOUT_NEED, HANGS, LEAKS };

typedef struct {
    ucontext_t context;
    char stack[STACK];
    int running, taking, refused;
    uint64_t amount, held; /* held: on the card */
    uint64_t most_claimed; /* by all living, at any moment of this operation */
} thread;

static struct {
    ucontext_t scheduler;
    thread threads[THREADS];
    account of[PROCESSES];
    process_name last_name;
    account_card card;
    control_card control;
    thread *now;
    int broken;
} model;

/* --- what the account asks its surroundings ------------------------------------------------------------------------ */

static void step(void) { swapcontext(&model.now->context, &model.scheduler); }

void process_sleep_us(unsigned microseconds) {
    (void)microseconds;
    step();
}

uint64_t process_moment(void) {
    static uint64_t moment;
    return ++moment;
}

int process_is_gone(process_name name) {
    for (int i = 0; i < PROCESSES; i++)
        if (model.of[i].self == name) return 0;
    return 1;
}

/* --- threads and processes ------------------------------------------------------------------------------------------ */

static account *account_of(thread *one) { return &model.of[(one - model.threads) / 2]; }

static void operate(void) {
    thread *now = model.now;
    if (now->taking && account_take(account_of(now), now->amount)) {
        step();
        now->held += now->amount;
    } else if (now->taking) {
        now->refused = 1;
    } else {
        now->held -= now->amount;
        account_give(account_of(now), now->amount);
    }
    now->running = 0;
    step();
}

static void start(thread *one, int taking, uint64_t amount) {
    if (one->running || !amount) return;
    one->running = 1;
    one->taking = taking;
    one->amount = amount;
    one->most_claimed = 0;
    getcontext(&one->context);
    one->context.uc_stack.ss_sp = one->stack;
    one->context.uc_stack.ss_size = STACK;
    one->context.uc_link = NULL;
    makecontext(&one->context, operate, 0);
}

/* Another process takes its place, with a name of its own. */
static void replace(int process) {
    for (thread *one = &model.threads[2 * process]; one < &model.threads[2 * process + 2]; one++)
        one->running = one->held = 0;
    model.of[process] = (account){&model.card, &model.control, ++model.last_name, NULL};
}

/* --- laws ----------------------------------------------------------------------------------------------------------- */

static void broke(int law) {
    if (!model.broken) model.broken = law;
}

static uint64_t on_card(void) {
    uint64_t total = 0;
    for (int i = 0; i < THREADS; i++) total += model.threads[i].held;
    return total;
}

static uint64_t in_operations(void) {
    uint64_t total = 0;
    for (int i = 0; i < THREADS; i++) total += model.threads[i].running ? model.threads[i].amount : 0;
    return total;
}

static void watch(void) {
    uint64_t claimed = on_card() + in_operations();
    if (on_card() > LIMIT) broke(OVER_THE_LIMIT);
    for (int i = 0; i < THREADS; i++)
        if (model.threads[i].running && claimed > model.threads[i].most_claimed) model.threads[i].most_claimed = claimed;
}

static void advance(thread *one) {
    if (!one->running) return;
    watch();
    model.now = one;
    swapcontext(&model.scheduler, &one->context);
    if (one->refused && one->most_claimed <= LIMIT) broke(REFUSED_WITHOUT_NEED);
    one->refused = 0;
    watch();
}

static void finish(void) {
    for (int steps = 0; in_operations(); steps++) {
        if (steps > MOST_STEPS) return broke(HANGS);
        advance(&model.threads[steps % THREADS]);
    }
}

static uint64_t used;

static void ask(void) {
    used = account_used(account_of(model.now));
    model.now->running = 0;
    step();
}

static void sum_up(void) {
    start(&model.threads[0], 1, 1);
    makecontext(&model.threads[0].context, ask, 0);
    finish();
    if (!model.broken && (used != on_card() || model.card.lock)) broke(LEAKS);
}

/* --- the script ------------------------------------------------------------------------------------------------------ */

static void act(unsigned char byte) {
    thread *one = &model.threads[byte % THREADS];
    int action = byte / THREADS;
    if (action < 30) advance(one);
    else if (action < 37) start(one, 1, 1 + (uint64_t)(action - 30));
    else if (action < 41) start(one, 0, one->held);
    else replace((byte % THREADS) / 2);
}

int model_run(const unsigned char *script, int length) {
    memset(&model.card, 0, sizeof model.card);
    memset(&model.control, 0, sizeof model.control);
    model.control.memory = LIMIT;
    model.broken = model.last_name = 0;
    for (int i = 0; i < PROCESSES; i++) replace(i);
    for (int i = 0; i < length && !model.broken; i++) act(script[i]);
    if (!model.broken) finish();
    if (!model.broken) sum_up();
    return model.broken;
}

/* Runs random scripts until a law is broken; returns it. */
int model_explore(uint64_t seed, int scripts) {
    static unsigned char script[600];
    for (int i = 0; i < scripts; i++) {
        for (unsigned at = 0; at < sizeof script; at++) {
            seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
            script[at] = (unsigned char)((seed >> 33) % 252);
        }
        int broken = model_run(script, sizeof script);
        if (broken) return broken;
    }
    return KEPT;
}
