/* The real driver: `real_NAME` is its function of each overridden name, NULL where this driver has none. */
#ifndef HALFCARD_DRIVER_H
#define HALFCARD_DRIVER_H

#include "cuda.h"

#define EXPORT __attribute__((visibility("default")))

#define REAL(name, parameters) extern CUresult(*real_##name) parameters;
#define OVERRIDE(name, parameters)    \
    EXPORT CUresult name parameters; \
    REAL(name, parameters)
#define ALLOCATE(name, parameters, ...) OVERRIDE(name, parameters)
#define RELEASE(name, parameters, ...) OVERRIDE(name, parameters)
#define LAUNCH(name, parameters, ...) OVERRIDE(name, parameters)
#define OTHER(name, parameters) OVERRIDE(name, parameters)
#define ASK(name, parameters) REAL(name, parameters)
#include "overrides.h"
#undef ALLOCATE
#undef RELEASE
#undef LAUNCH
#undef OTHER
#undef ASK
#undef OVERRIDE
#undef REAL

#define CALL(name, arguments) (real_##name ? real_##name arguments : CUDA_ERROR_NOT_SUPPORTED)

/* Returns our function where `found` is the driver's function of an overridden name, else `found`. */
void *driver_override(void *found);

#endif
