/* The functions that only allocate or release, as overrides.h describes them. */
#include "cards.h"
#include "driver.h"
#include "holdings.h"
#include "sizes.h"

#define CURRENT card_of_current_context()
#define DEVICE(number) card_of_device(number)
#define KEY(value) ((uint64_t)(value))

#define ALLOCATE(name, parameters, arguments, card, bytes, kind, key) \
    CUresult name parameters {                                        \
        holding *holds;                                               \
        CUresult error = holding_begin(&holds, kind, card, bytes);    \
        if (error) return error;                                      \
        CUresult answer = CALL(name, arguments);                      \
        return holding_keep(holds, answer, answer ? 0 : KEY(key));    \
    }

#define RELEASE(name, parameters, arguments, kind, key)  \
    CUresult name parameters {                           \
        holding *ends = holding_remove(kind, KEY(key)); \
        return holding_end(ends, CALL(name, arguments)); \
    }

#define LAUNCH(name, ...)
#define OTHER(name, parameters)
#define ASK(name, parameters)

#include "overrides.h"
