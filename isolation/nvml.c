/* NVML as a container with a share sees it: its own memory and processes. All other functions are the driver's own.
 *
 * NVML calls some of its exported functions by name, and so comes here again. Every answer is therefore computed from
 * the account and the limit: computed twice it is the same. */
#include <dlfcn.h>
#include <string.h>

#include "files.h"
#include "nvml.h"
#include "pinned.h"
#include "run_folder.h"

#define EXPORT __attribute__((visibility("default")))
#define LONGEST_UUID 96
#define NO_INSTANCE (~0U)

static nvmlReturn_t (*real_uuid)(nvmlDevice_t device, char *text, unsigned size);
static nvmlReturn_t (*real_memory)(nvmlDevice_t device, nvmlMemory_t *memory);
static nvmlReturn_t (*real_memory_v2)(nvmlDevice_t device, nvmlMemory_v2_t *memory);

__attribute__((constructor)) static void find_functions(void) {
    void *driver = dlopen(RUN_FOLDER "/driver/libnvidia-ml.so.1", RTLD_LAZY);
    if (!driver) return;
    *(void **)&real_uuid = dlsym(driver, "nvmlDeviceGetUUID");
    *(void **)&real_memory = dlsym(driver, "nvmlDeviceGetMemoryInfo");
    *(void **)&real_memory_v2 = dlsym(driver, "nvmlDeviceGetMemoryInfo_v2");
}

/* --- which card ----------------------------------------------------------------------------------------------------- */

static int digit(char of) { return of >= '0' && of <= '9' ? of - '0' : of >= 'a' && of <= 'f' ? of - 'a' + 10 : -1; }

/* Reads GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx. */
static int read_uuid(const char *text, unsigned char uuid[16]) {
    unsigned digits = 0;
    if (strncmp(text, "GPU-", 4)) return 0;
    for (text += 4; *text; text++) {
        if (*text == '-') continue;
        if (digit(*text) < 0 || digits == 32) return 0;
        uuid[digits / 2] = (unsigned char)(uuid[digits / 2] << 4 | digit(*text));
        digits++;
    }
    return digits == 32;
}

static nvmlReturn_t find_share(nvmlDevice_t device, account **found) {
    char text[LONGEST_UUID];
    unsigned char uuid[16];
    nvmlReturn_t error = real_uuid ? real_uuid(device, text, sizeof text) : NVML_ERROR_FUNCTION_NOT_FOUND;
    if (error) return error;
    int card = files_ready() && read_uuid(text, uuid) ? files_card(uuid) : -1;
    if (card < 0) return NVML_ERROR_NO_PERMISSION;
    *found = &cards[card];
    return NVML_SUCCESS;
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

typedef unsigned long long number;

static number smaller(number one, number other) { return one < other ? one : other; }

static void show_share(account *share, number *total, number *free, number *used) {
    *total = smaller(*total, share->control->memory);
    *used = smaller(account_used(share), *total);
    *free = smaller(*free, *total - *used); /* without a limit, the card may have less left */
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    account *share;
    nvmlReturn_t error = find_share(device, &share);
    if (!error) error = real_memory ? real_memory(device, memory) : NVML_ERROR_FUNCTION_NOT_FOUND;
    if (!error) show_share(share, &memory->total, &memory->free, &memory->used);
    return error;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    account *share;
    nvmlReturn_t error = find_share(device, &share);
    if (!error) error = real_memory_v2 ? real_memory_v2(device, memory) : NVML_ERROR_FUNCTION_NOT_FOUND;
    if (error) return error;
    show_share(share, &memory->total, &memory->free, &memory->used);
    memory->reserved = 0;
    return NVML_SUCCESS;
}

/* --- processes: of the account, so with their pids in the container ------------------------------------------------- */

static void write_users(const account_user *users, unsigned count, char *infos, size_t size) {
    for (unsigned at = 0; at < count; at++) {
        nvmlProcessInfo_t info = {process_pid(users[at].owner), users[at].bytes, NO_INSTANCE, NO_INSTANCE};
        memcpy(infos + at * size, &info, size);
    }
}

static nvmlReturn_t list(nvmlDevice_t device, unsigned *count, void *infos, size_t size) {
    account *share;
    account_user users[MOST_PROCESSES];
    nvmlReturn_t error = find_share(device, &share);
    if (error) return error;
    if (!count || (*count && !infos)) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned room = *count;
    *count = account_users(share, users);
    if (*count > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    write_users(users, *count, infos, size);
    return NVML_SUCCESS;
}

/* A share has neither graphics nor MPS. */
static nvmlReturn_t list_none(nvmlDevice_t device, unsigned *count) {
    account *share;
    nvmlReturn_t error = find_share(device, &share);
    if (error) return error;
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

#define LIST(name, size) \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned *count, void *infos) { return list(device, count, infos, size); }
#define NONE(name) \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned *count) { return list_none(device, count); }
/* These show the processes of all containers, some with pids of the node. */
#define HIDDEN(name) \
    EXPORT nvmlReturn_t name(void) { return NVML_ERROR_NOT_SUPPORTED; }

LIST(nvmlDeviceGetComputeRunningProcesses, FIRST_VERSION)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, sizeof(nvmlProcessInfo_t))
LIST(nvmlDeviceGetComputeRunningProcesses_v3, sizeof(nvmlProcessInfo_t))
NONE(nvmlDeviceGetGraphicsRunningProcesses)
NONE(nvmlDeviceGetGraphicsRunningProcesses_v2)
NONE(nvmlDeviceGetGraphicsRunningProcesses_v3)
NONE(nvmlDeviceGetMPSComputeRunningProcesses)
NONE(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NONE(nvmlDeviceGetMPSComputeRunningProcesses_v3)
HIDDEN(nvmlDeviceGetAccountingPids)
HIDDEN(nvmlDeviceGetAccountingStats)
HIDDEN(nvmlDeviceGetAccountingStats_v2)
HIDDEN(nvmlDeviceGetEncoderSessions)
HIDDEN(nvmlDeviceGetFBCSessions)
HIDDEN(nvmlDeviceGetProcessUtilization)
HIDDEN(nvmlDeviceGetProcessesUtilizationInfo)
HIDDEN(nvmlDeviceGetRunningProcessDetailList)
