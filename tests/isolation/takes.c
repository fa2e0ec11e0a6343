/* takes LIBRARY MIB...: prints the error of cuInit, and that of allocating each amount. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 64;
    int (*start)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*take)(unsigned long *, size_t) = (int (*)(unsigned long *, size_t))dlsym(library, "cuMemAlloc_v2");
    printf("%d", start(0));
    for (int at = 2; at < count; at++) {
        unsigned long made;
        printf(" %d", take(&made, strtoul(arguments[at], NULL, 10) << 20));
    }
    printf("\n");
}
