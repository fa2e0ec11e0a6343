/* A libcuda.so.1 before TARGET that prints what cuGetProcAddress is asked and what it answers: the name, version, flags,
 * error and status, and the symbol and file of the answer. All other functions are the target's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int (*lookup)(const char *, void **, int, uint64_t);
typedef int (*lookup_v2)(const char *, void **, int, uint64_t, int *);

static void *target(const char *name) {
    static void *library;
    if (!library) library = dlopen(TARGET, RTLD_NOW);
    return dlsym(library, name);
}

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status);
int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags);

/* The program would ask the target itself from then on. */
static void stay_between(void **found) {
    if (*found && *found == target("cuGetProcAddress_v2")) *found = (void *)cuGetProcAddress_v2;
    if (*found && *found == target("cuGetProcAddress")) *found = (void *)cuGetProcAddress;
}

static int recorded(const char *name, void **found, int version, uint64_t flags, int error, int status) {
    Dl_info at = {0};
    if (!error && *found) dladdr(*found, &at);
    printf("%s %d %lu %d %d %s %s\n", name, version, flags, error, status, at.dli_sname ? at.dli_sname : "-",
           at.dli_fname ? at.dli_fname : "-");
    if (!error) stay_between(found);
    return error;
}

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {
    int found_status = -1, error;
    lookup_v2 asks = (lookup_v2)target("cuGetProcAddress_v2");
    if (!asks) return cuGetProcAddress(name, found, version, flags);
    error = asks(name, found, version, flags, &found_status);
    if (status) *status = found_status;
    return recorded(name, found, version, flags, error, found_status);
}

int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    int error = ((lookup)target("cuGetProcAddress"))(name, found, version, flags);
    return recorded(name, found, version, flags, error, error != 0); /* the first version has no status: found or not */
}
