#include "cards.h"

#include "driver.h"
#include "files.h"

#define MOST_DEVICES 64

static int found_cards[MOST_DEVICES]; /* by device: the card's place + 1; 0: not asked yet */

/* --- which card ----------------------------------------------------------------------------------------------------- */

static int asked_card(CUdevice device) {
    unsigned char uuid[16];
    if (CALL(cuDeviceGetUuid, (uuid, device))) return NOT_COUNTED;
    int card = files_card(uuid);
    return card < 0 ? NOT_ALLOWED : card;
}

int card_of_device(CUdevice device) {
    if (!files_ready()) return NOT_ALLOWED;
    if (device < 0 || device >= MOST_DEVICES) return NOT_COUNTED;
    int found = __atomic_load_n(&found_cards[device], __ATOMIC_RELAXED);
    if (found) return found - 1;
    int card = asked_card(device);
    if (card >= 0) __atomic_store_n(&found_cards[device], card + 1, __ATOMIC_RELAXED);
    return card;
}

int card_of_current_context(void) {
    CUdevice device;
    if (!files_ready()) return NOT_ALLOWED;
    return CALL(cuCtxGetDevice, (&device)) ? NOT_COUNTED : card_of_device(device);
}

int card_of_location(const CUmemAllocationProp *how) {
    if (!files_ready()) return NOT_ALLOWED;
    return how && how->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? card_of_device(how->location.id) : NOT_COUNTED;
}

/* --- what is taken -------------------------------------------------------------------------------------------------- */

CUresult cards_take(int card, uint64_t bytes) {
    if (card == NOT_ALLOWED) return CUDA_ERROR_UNKNOWN;
    return card == NOT_COUNTED || account_take(&cards[card], bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cards_take_again(int card, uint64_t bytes) {
    if (card >= 0) account_forget_refusal(&cards[card]);
    return cards_take(card, bytes);
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

void cards_count_contexts(int card, uint64_t contexts, uint64_t bytes) {
    if (card >= 0 && cards[card].row) account_count_contexts(&cards[card], contexts, bytes);
}

uint64_t cards_limit(int card) { return cards[card].control->memory; }

uint64_t cards_used(int card) { return account_used(&cards[card]); }
