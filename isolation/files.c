#include "files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "at_fork.h"
#include "run_folder.h"

account cards[MOST_CARDS];
static const control_file *control;
static int ready, hold_cores;

static void *mapped(const char *path, int writable, size_t size) {
    int file = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (file < 0) return NULL;
    int whole = lseek(file, 0, SEEK_END) >= (off_t)size;
    void *at = whole ? mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    return at == MAP_FAILED ? NULL : at;
}

static int is_known(const file_head *head, uint64_t magic) {
    return head && head->magic == magic && head->version == FILES_VERSION;
}

static int is_held(const control_card *card) {
    static const uint8_t none[16];
    return memcmp(card->uuid, none, sizeof none) && card->share != NO_LIMIT;
}

static void name_process(void) {
    process_name self = process_self();
    for (int at = 0; at < MOST_CARDS; at++) {
        cards[at].self = self;
        cards[at].row = NULL;
    }
}

__attribute__((constructor)) static void open_files(void) {
    account_file *accounts = mapped(RUN_FOLDER "/account", 1, sizeof *accounts);
    control = mapped(RUN_FOLDER "/control", 0, sizeof *control);
    if (!is_known((file_head *)accounts, ACCOUNT_MAGIC) || !is_known((file_head *)control, CONTROL_MAGIC)) return;
    for (int at = 0; at < MOST_CARDS; at++) cards[at] = (account){&accounts->cards[at], &control->cards[at], 0, NULL};
    for (int at = 0; at < MOST_CARDS; at++) hold_cores |= is_held(&control->cards[at]);
    name_process();
    ready = 1;
}

static void name_child(void) {
    if (ready) name_process();
}

IN_CHILD_OF_FORK(name_child)

int files_ready(void) { return ready; }

uint64_t files_measured_ns_ago(uint64_t now) {
    uint64_t at = __atomic_load_n(&control->head.measured_at, __ATOMIC_RELAXED);
    if (!at) return UINT64_MAX;
    return now > at ? now - at : 0;
}

int files_hold_cores(void) { return hold_cores; }

int files_card(const unsigned char uuid[16]) {
    for (int at = 0; at < MOST_CARDS; at++)
        if (!memcmp(cards[at].control->uuid, uuid, 16)) return at;
    return -1;
}
