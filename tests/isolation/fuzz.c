/* fuzz ROUNDS: takes, gives and sums up on files with random numbers in random places. */
#include <stdint.h>
#include <stdlib.h>

#include "account.h"

static account_file file;
static control_file control;
static uint64_t seed = 1;

static uint64_t next(void) { return seed = seed * 6364136223846793005ULL + 1442695040888963407ULL; }

int process_is_gone(process_name name) { return name != 1; }
void process_sleep_us(unsigned microseconds) { (void)microseconds; }
uint64_t process_moment(void) { return next(); }

static uint64_t number(void) {
    static const uint64_t edges[] = {0, 1, 255, 256, 257, UINT64_MAX, UINT64_MAX - 1, 1ULL << 63};
    uint64_t random = next() >> 16;
    return random % 3 ? edges[random / 3 % (sizeof edges / sizeof *edges)] : next();
}

/* Mostly in the heads and first rows of the cards, which every call reads. */
static void mutate(void *start, size_t size) {
    uint64_t *numbers = start, most = size / sizeof *numbers, random = next() >> 16;
    numbers[random % (random % 2 ? most : 64)] = number();
}

int main(int count, char **arguments) {
    long rounds = count == 2 ? atol(arguments[1]) : 0;
    for (long i = 0; i < rounds; i++) {
        mutate(&file, sizeof file);
        mutate(&control, sizeof control);
        int at = i % 8 ? 0 : (int)((next() >> 16) % MOST_CARDS);
        account mine = {&file.cards[at], &control.cards[at], 1, NULL};
        if (file.cards[at].lock == mine.self) file.cards[at].lock = 0; /* its holder would live, and would give it back */
        uint64_t bytes = number();
        if (account_take(&mine, bytes)) account_give(&mine, bytes);
        account_used(&mine);
    }
    return rounds ? 0 : 64;
}
