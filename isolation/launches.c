/* The functions that launch kernels, as overrides.h describes them. */
#include "cores.h"
#include "driver.h"

static uint64_t key_of_configured(const CUlaunchConfig *how, CUfunction function) {
    return how ? kernel_key(function, how->grid[0], how->grid[1], how->grid[2]) : kernel_key(function, 0, 0, 0);
}

#define LAUNCH(name, parameters, arguments, key, stream)         \
    CUresult name parameters {                                   \
        if (!cores_are_held()) return CALL(name, arguments);     \
        launch of = cores_begin(key, stream);                    \
        return cores_end(of, CALL(name, arguments));             \
    }

#define ALLOCATE(name, ...)
#define RELEASE(name, ...)
#define OTHER(name, parameters)
#define ASK(name, parameters)

#include "overrides.h"
