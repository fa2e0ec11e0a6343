#include "cards.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "account.h"
#include "at_fork.h"
#include "driver.h"
#include "run_folder.h"

#define MOST_DEVICES 64

static account cards[MOST_CARDS];
static int ready;
static int found_cards[MOST_DEVICES]; /* by device: the card's place + 1; 0: not asked yet */

/* --- the files ------------------------------------------------------------------------------------------------------ */

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

static void name_process(void) {
    process_name self = process_self();
    for (int at = 0; at < MOST_CARDS; at++) {
        cards[at].self = self;
        cards[at].row = NULL;
    }
}

__attribute__((constructor)) static void open_files(void) {
    account_file *accounts = mapped(RUN_FOLDER "/account", 1, sizeof *accounts);
    const control_file *control = mapped(RUN_FOLDER "/control", 0, sizeof *control);
    if (!is_known((file_head *)accounts, ACCOUNT_MAGIC) || !is_known((file_head *)control, CONTROL_MAGIC)) return;
    for (int at = 0; at < MOST_CARDS; at++) cards[at] = (account){&accounts->cards[at], &control->cards[at], 0, NULL, 0};
    name_process();
    ready = 1;
}

static void name_child(void) {
    if (ready) name_process();
}

IN_CHILD_OF_FORK(name_child)

int cards_ready(void) { return ready; }

/* --- which card ----------------------------------------------------------------------------------------------------- */

static int card_of_uuid(const unsigned char uuid[16]) {
    for (int at = 0; at < MOST_CARDS; at++)
        if (!memcmp(cards[at].control->uuid, uuid, 16)) return at;
    return NOT_ALLOWED;
}

static int asked_card(CUdevice device) {
    unsigned char uuid[16];
    return CALL(cuDeviceGetUuid, (uuid, device)) ? NOT_COUNTED : card_of_uuid(uuid);
}

int card_of_device(CUdevice device) {
    if (!ready) return NOT_ALLOWED;
    if (device < 0 || device >= MOST_DEVICES) return NOT_COUNTED;
    int found = __atomic_load_n(&found_cards[device], __ATOMIC_RELAXED);
    if (found) return found - 1;
    int card = asked_card(device);
    if (card >= 0) __atomic_store_n(&found_cards[device], card + 1, __ATOMIC_RELAXED);
    return card;
}

int card_of_current_context(void) {
    CUdevice device;
    if (!ready) return NOT_ALLOWED;
    return CALL(cuCtxGetDevice, (&device)) ? NOT_COUNTED : card_of_device(device);
}

int card_of_location(const CUmemAllocationProp *how) {
    if (!ready) return NOT_ALLOWED;
    return how && how->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? card_of_device(how->location.id) : NOT_COUNTED;
}

/* --- what is taken -------------------------------------------------------------------------------------------------- */

CUresult cards_take(int card, uint64_t bytes) {
    if (card == NOT_ALLOWED) return CUDA_ERROR_UNKNOWN;
    return card == NOT_COUNTED || account_take(&cards[card], bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void cards_add(int card, uint64_t bytes) {
    if (card >= 0 && cards[card].row) account_add(&cards[card], bytes);
}

void cards_give(int card, uint64_t bytes) {
    if (card >= 0 && cards[card].row) account_give(&cards[card], bytes);
}

uint64_t cards_context_bytes(CUdevice device) {
    int card = card_of_device(device);
    return card < 0 ? 0 : cards[card].control->context;
}

uint64_t cards_limit(int card) { return cards[card].control->memory; }

uint64_t cards_used(int card) { return account_used(&cards[card]); }
