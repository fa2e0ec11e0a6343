#include "driver.h"

#include <dlfcn.h>

#include "pinned.h"
#include "run_folder.h"

#define REAL(name, parameters) CUresult(*real_##name) parameters;
#define ALLOCATE(name, parameters, ...) REAL(name, parameters)
#define RELEASE(name, parameters, ...) REAL(name, parameters)
#define LAUNCH(name, parameters, ...) REAL(name, parameters)
#define OTHER(name, parameters) REAL(name, parameters)
#define ASK(name, parameters) REAL(name, parameters)
#include "overrides.h"
#undef ALLOCATE
#undef RELEASE
#undef LAUNCH
#undef OTHER
#undef ASK

typedef struct {
    const char *name;
    void **real;
    void *ours; /* NULL: not overridden */
} function;

#define ROW(name, ours) {#name, (void **)&real_##name, (void *)(ours)},
#define ALLOCATE(name, ...) ROW(name, name)
#define RELEASE(name, ...) ROW(name, name)
#define LAUNCH(name, ...) ROW(name, name)
#define OTHER(name, ...) ROW(name, name)
#define ASK(name, ...) ROW(name, NULL)
static const function functions[] = {
#include "overrides.h"
};

#define END (functions + sizeof functions / sizeof *functions)

/* The driver is loaded already, because this library is linked with it; so this counts one more user. */
__attribute__((constructor)) static void find_functions(void) {
    void *driver = dlopen(RUN_FOLDER "/driver/libcuda.so.1", RTLD_LAZY);
    for (const function *each = functions; driver && each < END; each++) *each->real = dlsym(driver, each->name);
}

void *driver_override(void *found) {
    for (const function *each = functions; found && each < END; each++)
        if (each->ours && *each->real == found) return each->ours;
    return found;
}
