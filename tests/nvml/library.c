/* A libnvidia-ml.so.1 without a driver: what the driver would know is read from the file that HALFCARD_NVML names.
 *
 * The law: it answers as NVIDIA's does, with the same structures and error codes, also in what is awkward. A card that
 * was lost stays lost until the library is initialised again; a driver that was reloaded knows none of its clients. Who
 * shuts it down under somebody that waits in it is ended, where NVIDIA's might do anything.
 *
 * The file, which is read again as soon as it is another one (tests/nvml/stand_in.py writes it, by rename):
 *     load N                      the how-manieth load of the driver this is; 0: it is not loaded
 *     driver VERSION
 *     unfit CODE                  what initialising answers instead
 *     card UUID                   the lines up to the next card are about this one
 *     minor|total|reserved|used|numa|mig|busy|recovery|unmappable|switch|limits N
 *     model|pci TEXT
 *     fails CODE                  what every call about this card answers
 *     lacks FUNCTION CODE
 *     process KIND PID MIB SM     KIND is C, G or M: compute, graphics, through MPS
 *     pair UUID UUID LEVEL LINKS
 *     event NUMBER UUID TYPE DATA UUID may be -
 * Numbers below 0 are what the card does not support. Limits of memory by cgroup, which only cards with `limits 1` have,
 * become lines of a file beside it: UUID CGROUP SOFT HARD.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_CARDS 32
#define MOST_PROCESSES 256
#define MOST_PAIRS 512
#define MOST_EVENTS 256
#define MOST_LACKING 32
#define NAME 96
#define MIB (1024ULL * 1024ULL)
#define SWITCH_PCI "00000000:C4:00.0"
#define LINKS_OF_A_CARD 18
#define NOT_AVAILABLE (~0ULL)

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    FUNCTION_NOT_FOUND = 13,
    GPU_IS_LOST = 15,
    ARGUMENT_VERSION_MISMATCH = 25,
};

typedef struct { char kind; unsigned pid; long long mib; unsigned sm; } Process;
typedef struct { char function[NAME]; int code; } Lacking;

typedef struct {
    char uuid[NAME], model[NAME], pci[32];
    long long minor, total, reserved, used, numa, mig, busy, recovery, unmappable, switch_links, limits, fails;
    int processes, lacking;
    Process process[MOST_PROCESSES];
    Lacking lacks[MOST_LACKING];
} Card;

typedef struct { char a[NAME], b[NAME]; int level, links; } Pair;
typedef struct { unsigned long number; char uuid[NAME]; unsigned long long type, data; } Event;

static struct {
    unsigned load;
    int unfit, cards, pairs, events;
    char driver[NAME];
    Card card[MOST_CARDS];
    Pair pair[MOST_PAIRS];
    Event event[MOST_EVENTS];
} now;

typedef struct Device { unsigned session; int lost; char uuid[NAME]; struct Device *next; } Device;

typedef struct {
    unsigned session;
    unsigned long seen;
    int cards;
    struct { Device *device; unsigned long long types; } card[MOST_CARDS];
} EventSet;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static FILE *kept; /* as long as it is open, no other file bears its number */
static unsigned clients, session, opened_load, waits;
static Device *devices;

/* --- the file ---------------------------------------------------------------------------------------------------- */

static void read_of_card(Card *card, const char *key, const char *value) {
    struct { const char *key; long long *number; } numbers[] = {
        {"minor", &card->minor}, {"total", &card->total}, {"reserved", &card->reserved}, {"used", &card->used},
        {"numa", &card->numa}, {"mig", &card->mig}, {"busy", &card->busy}, {"recovery", &card->recovery},
        {"unmappable", &card->unmappable}, {"switch", &card->switch_links}, {"limits", &card->limits},
        {"fails", &card->fails},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(key, numbers[i].key)) *numbers[i].number = atoll(value);
    if (!strcmp(key, "model")) snprintf(card->model, sizeof card->model, "%s", value);
    if (!strcmp(key, "pci")) snprintf(card->pci, sizeof card->pci, "%s", value);
    if (!strcmp(key, "process") && card->processes < MOST_PROCESSES) {
        Process *process = &card->process[card->processes++];
        sscanf(value, "%c %u %lld %u", &process->kind, &process->pid, &process->mib, &process->sm);
    }
    if (!strcmp(key, "lacks") && card->lacking < MOST_LACKING) {
        Lacking *lacking = &card->lacks[card->lacking++];
        sscanf(value, "%95s %d", lacking->function, &lacking->code);
    }
}

static void read_line(const char *key, const char *value) {
    if (!strcmp(key, "load")) now.load = (unsigned)atoi(value);
    else if (!strcmp(key, "unfit")) now.unfit = atoi(value);
    else if (!strcmp(key, "driver")) snprintf(now.driver, sizeof now.driver, "%s", value);
    else if (!strcmp(key, "card") && now.cards < MOST_CARDS)
        snprintf(now.card[now.cards++].uuid, NAME, "%s", value);
    else if (!strcmp(key, "pair") && now.pairs < MOST_PAIRS) {
        Pair *pair = &now.pair[now.pairs++];
        sscanf(value, "%95s %95s %d %d", pair->a, pair->b, &pair->level, &pair->links);
    } else if (!strcmp(key, "event") && now.events < MOST_EVENTS) {
        Event *event = &now.event[now.events++];
        sscanf(value, "%lu %95s %llu %llu", &event->number, event->uuid, &event->type, &event->data);
    } else if (now.cards)
        read_of_card(&now.card[now.cards - 1], key, value);
}

static Card *card_of(const char *uuid) {
    for (int i = 0; i < now.cards; i++)
        if (!strcmp(now.card[i].uuid, uuid)) return &now.card[i];
    return NULL;
}

static void remember_what_is_lost(void) {
    for (Device *device = devices; device; device = device->next) {
        Card *card = card_of(device->uuid);
        if (!card || card->fails == GPU_IS_LOST) device->lost = 1;
    }
}

static void look(void) {
    const char *path = getenv("HALFCARD_NVML");
    struct stat found, read_from;
    char line[512], *value;
    FILE *file;
    if (!path || stat(path, &found) != 0) {
        now.load = 0;
        return;
    }
    if (kept && fstat(fileno(kept), &read_from) == 0 && found.st_ino == read_from.st_ino &&
        found.st_dev == read_from.st_dev)
        return;
    if (!(file = fopen(path, "r"))) return;
    if (kept) fclose(kept);
    kept = file;
    memset(&now, 0, sizeof now);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if ((value = strchr(line, ' '))) {
            *value++ = 0;
            read_line(line, value);
        }
    }
    remember_what_is_lost();
}

/* --- coming in and going out: one call at a time ------------------------------------------------------------------ */

static int leave(int code) {
    pthread_mutex_unlock(&mutex);
    return code;
}

static int enter(void) {
    pthread_mutex_lock(&mutex);
    look();
    return clients && now.load && now.load == opened_load ? SUCCESS : UNINITIALIZED;
}

static int enter_about(Device *device, const char *function, Card **card) {
    int code = enter();
    if (code) return code;
    if (!device || device->session != session) return INVALID_ARGUMENT;
    if (device->lost || !(*card = card_of(device->uuid))) return GPU_IS_LOST;
    if ((*card)->fails) return (int)(*card)->fails;
    for (int i = 0; i < (*card)->lacking; i++)
        if (!strcmp((*card)->lacks[i].function, function)) return (*card)->lacks[i].code;
    return SUCCESS;
}

#define ABOUT(device) \
    Card *card = NULL; \
    int code = enter_about(device, __func__, &card); \
    if (code) return leave(code)

static int number(Device *device, const char *function, size_t offset, unsigned *answer) {
    Card *card = NULL;
    int code = enter_about(device, function, &card);
    long long value = code ? 0 : *(long long *)((char *)card + offset);
    if (!code && value < 0) code = NOT_SUPPORTED;
    if (!code) *answer = (unsigned)value;
    return leave(code);
}

static int text(Device *device, const char *function, size_t offset, char *answer, unsigned length) {
    Card *card = NULL;
    int code = enter_about(device, function, &card);
    if (!code) snprintf(answer, length, "%s", (char *)card + offset);
    return leave(code);
}

#define offset_of(field) __builtin_offsetof(Card, field)

/* --- the driver --------------------------------------------------------------------------------------------------- */

int nvmlInitWithFlags(unsigned flags) {
    int code;
    (void)flags;
    pthread_mutex_lock(&mutex);
    look();
    if ((code = now.unfit ? now.unfit : now.load ? SUCCESS : DRIVER_NOT_LOADED)) return leave(code);
    if (!clients) {
        session++;
        opened_load = now.load;
    }
    clients++;
    return leave(SUCCESS);
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void) {
    pthread_mutex_lock(&mutex);
    if (!clients) return leave(UNINITIALIZED);
    if (waits) {
        fputs("the stand-in for NVML: it was shut down while somebody waits in it\n", stderr);
        abort();
    }
    clients--;
    return leave(SUCCESS);
}

const char *nvmlErrorString(int code) {
    static char said[64];
    snprintf(said, sizeof said, "error %d of the stand-in", code);
    return said;
}

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    int code = enter();
    if (!code) snprintf(version, length, "%s", now.driver);
    return leave(code);
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    int code = enter();
    if (!code) *count = (unsigned)now.cards;
    return leave(code);
}

static Device *device_of(Card *card) {
    Device *device = devices;
    while (device && (device->session != session || strcmp(device->uuid, card->uuid))) device = device->next;
    if (device || !(device = calloc(1, sizeof *device))) return device;
    device->session = session;
    memcpy(device->uuid, card->uuid, sizeof device->uuid);
    device->next = devices;
    return devices = device;
}

static int hand_out(Card *card, Device **device) {
    if (card->fails) return (int)card->fails;
    *device = device_of(card);
    return (*device)->lost ? GPU_IS_LOST : SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
    int code = enter();
    if (!code && index >= (unsigned)now.cards) code = INVALID_ARGUMENT;
    return leave(code ? code : hand_out(&now.card[index], device));
}

/* --- a card ------------------------------------------------------------------------------------------------------- */

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} Pci;

static void describe_pci(const char *text, Pci *pci) {
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%s", text);
    if (strlen(text) > 4) snprintf(pci->legacy, sizeof pci->legacy, "%s", text + 4);
    sscanf(text, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
}

int nvmlDeviceGetPciInfo_v3(Device *device, Pci *pci) {
    ABOUT(device);
    describe_pci(card->pci, pci);
    return leave(SUCCESS);
}

int nvmlDeviceGetUUID(Device *device, char *uuid, unsigned length) {
    return text(device, __func__, offset_of(uuid), uuid, length);
}

int nvmlDeviceGetName(Device *device, char *name, unsigned length) {
    return text(device, __func__, offset_of(model), name, length);
}

int nvmlDeviceGetMinorNumber(Device *device, unsigned *minor) {
    return number(device, __func__, offset_of(minor), minor);
}

int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    int code = number(device, __func__, offset_of(mig), current);
    if (!code) *pending = *current;
    return code;
}

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } MemoryV2;

int nvmlDeviceGetMemoryInfo(Device *device, Memory *memory) {
    ABOUT(device);
    if (card->total < 0) return leave(NOT_SUPPORTED);
    memory->total = (unsigned long long)card->total * MIB;
    memory->used = (unsigned long long)(card->used + card->reserved) * MIB; /* the first version adds them up */
    memory->free = memory->total - memory->used;
    return leave(SUCCESS);
}

int nvmlDeviceGetMemoryInfo_v2(Device *device, MemoryV2 *memory) {
    ABOUT(device);
    if (memory->version != (sizeof *memory | 2U << 24)) return leave(ARGUMENT_VERSION_MISMATCH);
    if (card->total < 0) return leave(NOT_SUPPORTED);
    memory->total = (unsigned long long)card->total * MIB;
    memory->reserved = (unsigned long long)card->reserved * MIB;
    memory->used = (unsigned long long)card->used * MIB;
    memory->free = memory->total - memory->reserved - memory->used;
    return leave(SUCCESS);
}

typedef struct { const char *cgroup; unsigned long long soft, hard; } MemoryLimits;

int nvmlDeviceSetMemoryLimits_v1(Device *device, MemoryLimits *limits) {
    char path[512];
    ABOUT(device);
    if (card->limits <= 0) return leave(FUNCTION_NOT_FOUND);
    if (card->mig > 0) return leave(NOT_SUPPORTED);
    if (access(limits->cgroup, F_OK)) return leave(NOT_FOUND);
    snprintf(path, sizeof path, "%s.limits", getenv("HALFCARD_NVML"));
    FILE *file = fopen(path, "a");
    if (!file) return leave(NOT_FOUND);
    fprintf(file, "%s %s %llu %llu\n", card->uuid, limits->cgroup, limits->soft, limits->hard);
    fclose(file);
    return leave(SUCCESS);
}

int nvmlDeviceGetMemoryAffinity(Device *device, unsigned size, unsigned long *nodes, unsigned scope) {
    ABOUT(device);
    (void)scope;
    if (card->numa < 0) return leave(NOT_SUPPORTED);
    memset(nodes, 0, size * sizeof *nodes);
    nodes[card->numa / 64] |= 1UL << (card->numa % 64);
    return leave(SUCCESS);
}

int nvmlDeviceGetUtilizationRates(Device *device, unsigned rates[2]) {
    rates[1] = 0;
    return number(device, __func__, offset_of(busy), rates);
}

int nvmlDeviceGetRemappedRows(Device *device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending,
                              unsigned *failure) {
    *correctable = *uncorrectable = *pending = 0;
    return number(device, __func__, offset_of(unmappable), failure);
}

typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type, code;
    union { double real; unsigned number; unsigned long long large; } value;
} FieldValue;

#define RECOVERY_ACTION 230
#define UNSIGNED_INT 1

int nvmlDeviceGetFieldValues(Device *device, int count, FieldValue *values) {
    ABOUT(device);
    for (int i = 0; i < count; i++) {
        int known = values[i].field == RECOVERY_ACTION && card->recovery >= 0;
        values[i].code = known ? SUCCESS : NOT_SUPPORTED;
        values[i].type = UNSIGNED_INT;
        if (known) values[i].value.number = (unsigned)card->recovery;
    }
    return leave(SUCCESS);
}

/* --- how cards are connected -------------------------------------------------------------------------------------- */

static Pair *pair_of(const char *a, const char *b) {
    for (int i = 0; i < now.pairs; i++) {
        Pair *pair = &now.pair[i];
        if ((!strcmp(pair->a, a) && !strcmp(pair->b, b)) || (!strcmp(pair->a, b) && !strcmp(pair->b, a))) return pair;
    }
    return NULL;
}

int nvmlDeviceGetTopologyCommonAncestor(Device *device, Device *other, unsigned *level) {
    ABOUT(device);
    Pair *pair = other ? pair_of(card->uuid, other->uuid) : NULL;
    *level = pair ? (unsigned)pair->level : 50;
    return leave(SUCCESS);
}

enum { TO_CARD = 0, TO_SWITCH = 2 };

/* What a link of a card leads to: first those to other cards, in the order of the file, then those to the switch. */
static int link_of(Card *card, unsigned link, unsigned *type, Pci *pci) {
    unsigned first = 0;
    for (int i = 0; i < now.cards; i++) {
        Pair *pair = pair_of(card->uuid, now.card[i].uuid);
        if (!pair || &now.card[i] == card) continue;
        if (link < first + (unsigned)pair->links) {
            *type = TO_CARD;
            describe_pci(now.card[i].pci, pci);
            return SUCCESS;
        }
        first += (unsigned)pair->links;
    }
    if (link >= first + (unsigned)card->switch_links) return link < LINKS_OF_A_CARD ? NOT_SUPPORTED : INVALID_ARGUMENT;
    *type = TO_SWITCH;
    describe_pci(SWITCH_PCI, pci);
    return SUCCESS;
}

int nvmlDeviceGetNvLinkState(Device *device, unsigned link, unsigned *active) {
    unsigned type;
    Pci pci;
    ABOUT(device);
    code = link_of(card, link, &type, &pci);
    *active = !code;
    return leave(code);
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *device, unsigned link, Pci *pci) {
    unsigned type;
    ABOUT(device);
    return leave(link_of(card, link, &type, pci));
}

int nvmlDeviceGetNvLinkRemoteDeviceType(Device *device, unsigned link, unsigned *type) {
    Pci pci;
    ABOUT(device);
    return leave(link_of(card, link, type, &pci));
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } Running;

static int running(Device *device, const char *function, char kind, unsigned *count, Running *infos) {
    Card *card = NULL;
    int code = enter_about(device, function, &card);
    unsigned room = *count, found = 0;
    if (code) return leave(code);
    for (int i = 0; i < card->processes; i++) {
        Process *process = &card->process[i];
        if (process->kind != kind) continue;
        if (infos && found < room)
            infos[found] = (Running){process->pid,
                                     process->mib < 0 ? NOT_AVAILABLE : (unsigned long long)process->mib * MIB, ~0U, ~0U};
        found++;
    }
    *count = found;
    return leave(found > room ? INSUFFICIENT_SIZE : SUCCESS);
}

int nvmlDeviceGetComputeRunningProcesses_v2(Device *device, unsigned *count, Running *infos) {
    return running(device, __func__, 'C', count, infos);
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Running *infos) {
    return running(device, __func__, 'C', count, infos);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(Device *device, unsigned *count, Running *infos) {
    return running(device, __func__, 'G', count, infos);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(Device *device, unsigned *count, Running *infos) {
    return running(device, __func__, 'M', count, infos);
}

typedef struct { unsigned pid; unsigned long long timestamp; unsigned sm, memory, encoder, decoder; } Sample;

static unsigned long long microseconds(void) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    return (unsigned long long)at.tv_sec * 1000000ULL + (unsigned long long)at.tv_nsec / 1000ULL;
}

int nvmlDeviceGetProcessUtilization(Device *device, Sample *samples, unsigned *count, unsigned long long since) {
    ABOUT(device);
    unsigned room = *count;
    *count = (unsigned)card->processes;
    if (!card->processes || since > microseconds()) return leave(NOT_FOUND);
    if (!samples || room < *count) return leave(INSUFFICIENT_SIZE);
    for (int i = 0; i < card->processes; i++)
        samples[i] = (Sample){card->process[i].pid, microseconds(), card->process[i].sm, 0, 0, 0};
    return leave(SUCCESS);
}

/* --- what is reported --------------------------------------------------------------------------------------------- */

#define SINGLE_BIT_ECC 1ULL
#define DOUBLE_BIT_ECC 2ULL
#define XID 8ULL
#define LOOK_EVERY_US 100000

typedef struct {
    Device *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
} EventData;

int nvmlDeviceGetSupportedEventTypes(Device *device, unsigned long long *types) {
    ABOUT(device);
    *types = SINGLE_BIT_ECC | DOUBLE_BIT_ECC | XID;
    return leave(SUCCESS);
}

int nvmlEventSetCreate(EventSet **set) {
    int code = enter();
    if (code) return leave(code);
    *set = calloc(1, sizeof **set);
    (*set)->session = session;
    (*set)->seen = now.events ? now.event[now.events - 1].number : 0;
    return leave(SUCCESS);
}

int nvmlEventSetFree(EventSet *set) {
    int code = enter();
    free(set);
    return leave(code);
}

int nvmlDeviceRegisterEvents(Device *device, unsigned long long types, EventSet *set) {
    ABOUT(device);
    if (set->session != session || set->cards == MOST_CARDS) return leave(INVALID_ARGUMENT);
    set->card[set->cards].device = device;
    set->card[set->cards++].types = types;
    return leave(SUCCESS);
}

static int registered(EventSet *set, Event *event, Device **device) {
    for (int i = 0; i < set->cards; i++) {
        if (!(set->card[i].types & event->type)) continue;
        *device = strcmp(event->uuid, "-") ? set->card[i].device : NULL;
        if (!*device || !strcmp((*device)->uuid, event->uuid)) return 1;
    }
    return 0;
}

static int next_event(EventSet *set, EventData *data) {
    if (set->session != session) return UNINITIALIZED;
    for (int i = 0; i < now.events; i++) {
        Event *event = &now.event[i];
        if (event->number <= set->seen) continue;
        set->seen = event->number;
        if (!registered(set, event, &data->device)) continue;
        data->type = event->type;
        data->data = event->data;
        data->gpu_instance = data->compute_instance = ~0U;
        return SUCCESS;
    }
    for (int i = 0; i < set->cards; i++)
        if (set->card[i].device->lost) return GPU_IS_LOST;
    return TIMEOUT;
}

int nvmlEventSetWait_v2(EventSet *set, EventData *data, unsigned timeout_ms) {
    unsigned long long deadline = microseconds() + timeout_ms * 1000ULL;
    int code = enter();
    waits++;
    while (!code && (code = next_event(set, data)) == TIMEOUT && microseconds() < deadline) {
        leave(code);
        usleep(LOOK_EVERY_US);
        code = enter();
    }
    waits--;
    return leave(code);
}
