/* opens WAY FILE SYMBOL: opens a library, and prints where the symbol is found, or the error. A way that is a path is a
 * plug-in, whose function `opens` opens the file. Before that: whether this is a program with more rights than its user. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

static void *opened(const char *way, const char *file) {
    if (!strcmp(way, "dlmopen")) return dlmopen(LM_ID_NEWLM, file, RTLD_NOW);
    if (!strcmp(way, "dlopen")) return dlopen(file, RTLD_NOW);
    if (!strcmp(way, "deepbind")) return dlopen(file, RTLD_NOW | RTLD_DEEPBIND);
    void *plugin = dlopen(way, RTLD_NOW);
    void *(*opens)(const char *) = plugin ? (void *(*)(const char *))dlsym(plugin, "opens") : NULL;
    return opens ? opens(file) : NULL;
}

int main(int count, char **arguments) {
    Dl_info found;
    void *library = count == 4 ? opened(arguments[1], arguments[2]) : NULL;
    void *symbol = library ? dlsym(library, arguments[3]) : NULL;
    int known = symbol && dladdr(symbol, &found);
    printf("%d %s\n", getauxval(AT_SECURE) != 0, known ? found.dli_fname : dlerror());
    return 0;
}
