/* make_cards MIB: writes the cards of the stand-in driver, each with this much memory, to standard output. */
#include <stdio.h>
#include <stdlib.h>

#include "card.h"
#include "cards_file.h"

static card made[CARDS];

int main(int count, char **arguments) {
    for (int at = 0; at < CARDS; at++) card_make(&made[at], count == 2 ? strtoull(arguments[1], NULL, 10) << 20 : 0);
    return fwrite(made, sizeof made, 1, stdout) == 1 ? 0 : 1;
}
