/* For images that bring a driver of their own: a program that opens a driver's library by dlopen or dlmopen, from
 * wherever, gets ours. /etc/ld.so.preload loads this into every program, so nothing happens at its start.
 *
 * libc searches the RUNPATH of the caller, and opens in the caller's namespace. It knows the caller by the address that
 * it returns to, so it must be jumped to, not called: the Makefile asks the compiler for that. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "run_folder.h"

#define EXPORT __attribute__((visibility("default")))
#define DRIVER RUN_FOLDER "/driver/"
#define OURS(name) RUN_FOLDER "/library/" name

typedef void *(*open_function)(const char *file, int flags);
typedef void *(*open_in_function)(Lmid_t namespace, const char *file, int flags);

/* Returns what follows `start`, or NULL. */
static const char *after(const char *text, const char *start) {
    while (*start)
        if (*text++ != *start++) return 0;
    return text;
}

static const char *name_of(const char *file) {
    const char *name = file;
    for (; *file; file++)
        if (*file == '/') name = file + 1;
    return name;
}

static int is(const char *name, const char *library) {
    const char *end = after(name, library);
    return end && (!*end || *end == '.');
}

static const char *ours(const char *file) {
    if (!file || after(file, DRIVER)) return file; /* our libraries open the driver */
    const char *name = name_of(file);
    return is(name, "libcuda.so")        ? OURS("libcuda.so.1")
           : is(name, "libnvidia-ml.so") ? OURS("libnvidia-ml.so.1")
                                         : file;
}

EXPORT void *dlopen(const char *file, int flags) {
    open_function next = (open_function)dlsym(RTLD_NEXT, "dlopen");
    return next(ours(file), flags);
}

EXPORT void *dlmopen(Lmid_t namespace, const char *file, int flags) {
    open_in_function next = (open_in_function)dlsym(RTLD_NEXT, "dlmopen");
    return next(namespace, ours(file), flags);
}
