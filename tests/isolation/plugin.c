/* A plug-in that opens libraries which only its own RUNPATH finds. */
#include <dlfcn.h>

void *opens(const char *file) {
    void *opened = dlopen(file, RTLD_NOW);
    return opened; /* in a variable, so that this call is not a jump */
}
