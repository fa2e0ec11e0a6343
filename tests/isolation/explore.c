/* explore SEED SCRIPTS: exits with the law that random scripts of model.c break; 0: none. */
#include <stdint.h>
#include <stdlib.h>

int model_explore(uint64_t seed, int scripts);

int main(int count, char **arguments) {
    return count == 3 ? model_explore(strtoull(arguments[1], NULL, 10), atoi(arguments[2])) : 64;
}
