/* The two files that the processes of one container share with the node agent: the account and the control file.
 *
 *     account   the agent creates it, full of zeros but for its head; the container's processes write what they use
 *     control   the agent writes it, the container can only read it: limits, and what the agent found from outside
 *
 * All numbers are unsigned, of 64 bits, aligned, in the machine's byte order, and each is valid alone: no reader needs
 * two numbers of the same moment, so nothing here needs a transaction. `halfcard/isolation/shared_files.py` is the same
 * layout in Python, and tests/isolation/test_shared_files.py compares both.
 *
 * A change of this layout needs a new version. A library refuses a version that it does not know.
 */
#ifndef HALFCARD_SHARED_FILES_H
#define HALFCARD_SHARED_FILES_H

#include <stdint.h>

#define FILES_VERSION 2
#define ACCOUNT_MAGIC 0x746e756f63636148ULL /* "Haccount" */
#define CONTROL_MAGIC 0x6c6f72746e6f6348ULL /* "Hcontrol" */
#define MOST_CARDS 16
#define MOST_PROCESSES 512
#define NO_LIMIT UINT64_MAX

/* After measured_at: the agent writes each second, and what it wrote must not hold for ever when it is gone. It is back
 * from an upgrade within a minute. */
#define SPARE_LASTS_NS 5000000000ULL
#define CORRECTION_LASTS_NS 120000000000ULL

typedef struct {
    uint64_t magic, version;
    uint64_t measured_at; /* control: when the agent last wrote what it measured, by CLOCK_MONOTONIC in ns; 0: never */
    uint64_t spare[5];
} file_head;

/* What one process uses of one card. A row never moves, and only its owner adds to it. */
typedef struct {
    uint64_t owner; /* names the process (process.h); 0: the row is free, and its other numbers are 0 */
    uint64_t bytes;
    uint64_t refused; /* allocations that did not fit */
    uint64_t launches;
    uint64_t gpu_ns;
    uint64_t throttled_ns;
    uint64_t contexts;      /* that the process has now, without green ones */
    uint64_t context_bytes; /* of `bytes`: what was taken for all of them */
} account_row;

typedef struct {
    uint64_t lock;      /* names the process that holds it; 0: free */
    uint64_t rows_used; /* rows from here on were never used */
    uint64_t recovered; /* locks that were taken from dead processes */
    uint64_t share_paid_until, ceiling_paid_until; /* buckets of GPU time (bucket.h), by CLOCK_MONOTONIC */
    uint64_t swept_at; /* the moment in which a process last freed rows because one asked what is used */
    uint64_t spare[2];
    account_row rows[MOST_PROCESSES];
} account_card;

typedef struct {
    file_head head;
    account_card cards[MOST_CARDS]; /* in the order of the control file */
} account_file;

/* Memory that a process uses and its row does not show: as NVML measures it, less what the row said at that time. */
typedef struct {
    uint64_t owner; /* valid only while the row of this place has the same owner */
    uint64_t bytes;
} control_excess;

typedef struct {
    uint8_t uuid[16]; /* as cuDeviceGetUuid returns it; 16 zeros: no card */
    uint64_t memory;  /* bytes; NO_LIMIT: no limit */
    uint64_t share;   /* of the card's cores, in 1/1000; NO_LIMIT when a process starts: it is never limited */
    uint64_t ceiling; /* likewise, while spare is not 0; NO_LIMIT: the share is never exceeded */
    uint64_t spare; /* not 0: no neighbour needs the cores between share and ceiling; for SPARE_LASTS_NS */
    uint64_t correction; /* what NVML measured of the container, by the gpu_ns of its rows, in 1/1000: 100 to 4000; one
                            below 1000 for CORRECTION_LASTS_NS */
    uint64_t context;    /* bytes that a context was last seen to use on this card */
    control_excess excess[MOST_PROCESSES];
} control_card;

typedef struct {
    file_head head;
    control_card cards[MOST_CARDS];
} control_file;

_Static_assert(sizeof(account_row) == 64, "a row is one cache line");
_Static_assert(sizeof(account_file) == 64 + MOST_CARDS * (64 + MOST_PROCESSES * 64), "the account has no padding");
_Static_assert(sizeof(control_file) == 64 + MOST_CARDS * (64 + MOST_PROCESSES * 16), "the control file has no padding");

#endif
