#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define START_BITS 26
#define PROGRAM_BITS 16
#define LOW(value, bits) ((value) & ((1ULL << (bits)) - 1))

unsigned process_pid(process_name name) { return (unsigned)(name >> (START_BITS + PROGRAM_BITS)); }

/* Kernels place the first stack at random for each program, so its address tells programs of one process apart.
 * Returns 0 where the kernel hides it from us. */
static uint64_t program_of_stack(uint64_t stack) {
    uint64_t mixed = LOW(stack >> 4 ^ stack >> 20 ^ stack >> 36, PROGRAM_BITS);
    return stack ? (mixed ? mixed : 1) : 0;
}

/* Returns a field of /proc/PID/stat by its number in proc(5); `rest` begins with field 3. */
static uint64_t field(const char *rest, int number) {
    for (int at = 3; at < number && rest; at++) rest = (rest = strchr(rest, ' ')) ? rest + 1 : NULL;
    return rest ? strtoull(rest, NULL, 10) : 0;
}

/* A zombie holds nothing, except where its first thread has ended before the others. */
static int has_ended(const char *rest) {
    return *rest == 'X' || *rest == 'x' || (*rest == 'Z' && field(rest, 20) <= 1);
}

process_name process_of_stat(const char *text) {
    const char *end = strrchr(text, ')'); /* the name before it may have spaces and parentheses */
    if (!end || end[1] != ' ' || has_ended(end + 2)) return 0;
    uint64_t pid = strtoull(text, NULL, 10), start = field(end + 2, 22), stack = field(end + 2, 28);
    return LOW(pid, 22) << (START_BITS + PROGRAM_BITS) | LOW(start, START_BITS) << PROGRAM_BITS |
           program_of_stack(stack);
}

/* By syscall(), which unlike open() and read() is no cancellation point: a thread may hold a lock here. */
static long read_file(const char *path, char *text, size_t size) {
    long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    long length = syscall(SYS_read, file, text, size - 1);
    syscall(SYS_close, file);
    text[length > 0 ? length : 0] = 0;
    return length;
}

process_name process_self(void) {
    char text[1024];
    process_name self = read_file("/proc/self/stat", text, sizeof text) > 0 ? process_of_stat(text) : 0;
    return self ? self : (uint64_t)syscall(SYS_getpid) << (START_BITS + PROGRAM_BITS);
}

static int differ(uint64_t one, uint64_t other) { return one && other && one != other; }

int process_is_gone(process_name name) {
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", process_pid(name));
    if (read_file(path, text, sizeof text) <= 0) /* no /proc, or one that hides others: the kernel still knows */
        return syscall(SYS_kill, process_pid(name), 0) < 0 && errno == ESRCH;
    process_name found = process_of_stat(text);
    return !found || differ(LOW(found >> PROGRAM_BITS, START_BITS), LOW(name >> PROGRAM_BITS, START_BITS)) ||
           differ(LOW(found, PROGRAM_BITS), LOW(name, PROGRAM_BITS));
}

uint64_t process_moment(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 10 + (uint64_t)now.tv_nsec / 100000000;
}

void process_sleep_us(unsigned microseconds) {
    struct timespec pause = {0, (long)microseconds * 1000};
    syscall(SYS_nanosleep, &pause, NULL);
}
