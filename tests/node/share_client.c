/* share_client LIBRARY MIB... [stay]: allocates memory of card 0 by this libcuda, prints the result of each call in a
 * line, and stays if that is asked for. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *driver;

static void *function(const char *name) {
    void *found = driver ? dlsym(driver, name) : NULL;
    if (!found) exit(fprintf(stderr, "%s\n", dlerror()));
    return found;
}

static int begin(void) {
    void *context;
    int error = ((int (*)(unsigned))function("cuInit"))(0);
    if (!error) error = ((int (*)(void **, int))function("cuDevicePrimaryCtxRetain"))(&context, 0);
    return error ? error : ((int (*)(void *))function("cuCtxSetCurrent"))(context);
}

static int allocate(uint64_t mib) {
    uint64_t made;
    return ((int (*)(uint64_t *, size_t))function("cuMemAlloc_v2"))(&made, mib << 20);
}

int main(int count, char **arguments) {
    driver = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    int error = begin();
    for (int at = 2; at < count; at++) {
        if (!strcmp(arguments[at], "stay")) {
            fflush(stdout);
            pause();
        }
        printf("%d\n", error ? error : allocate(strtoull(arguments[at], NULL, 10)));
    }
    return 0;
}
