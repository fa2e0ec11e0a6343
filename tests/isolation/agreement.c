/* Lets Python call the account on bytes of its own, with owners that need not be processes: all of them live. */
#include "account.h"

#include <string.h>

static uint64_t asked, moment = 1;

int process_is_gone(process_name name) { return (void)name, asked++, 0; }
uint64_t process_moment(void) { return moment; }
void process_sleep_us(unsigned microseconds) { (void)microseconds; }

static account of(void *file, const void *control, int card, process_name self) {
    account_file *accounts = file;
    const control_file *controls = control;
    return (account){&accounts->cards[card], &controls->cards[card], self, NULL};
}

int take(void *file, const void *control, int card, process_name self, uint64_t bytes) {
    account mine = of(file, control, card, self);
    return account_take(&mine, bytes);
}

uint64_t used(void *file, const void *control, int card) {
    account mine = of(file, control, card, 1);
    return account_used(&mine);
}

/* The numbers of a card in the order of the structure, without its uuid and the excess; returns their count. */
int numbers(const void *control, int card, uint64_t *found, uint8_t uuid[16]) {
    const control_card *of = &((const control_file *)control)->cards[card];
    uint64_t all[] = {of->memory, of->share, of->ceiling, of->spare, of->correction, of->context};
    memcpy(found, all, sizeof all);
    memcpy(uuid, of->uuid, sizeof of->uuid);
    return sizeof all / sizeof *all;
}

uint64_t measured_at(const void *control) { return ((const control_file *)control)->head.measured_at; }

/* Returns how often the end of a process is asked for, where this many sums are made in each of so many moments. */
uint64_t questions(void *file, const void *control, int sums, int moments) {
    account mine = of(file, control, 0, 1);
    asked = 0;
    for (int at = 0; at < sums * moments; at++) {
        moment += at % sums == 0;
        account_used(&mine);
    }
    return asked;
}
