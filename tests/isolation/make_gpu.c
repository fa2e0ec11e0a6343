/* make_gpu PROCESSES: writes the time of the stand-in driver's cards to standard output. */
#include <stdio.h>
#include <stdlib.h>

#include "gpu.h"

static gpu_world made;

int main(int count, char **arguments) {
    gpu_make(&made, count == 2 ? atoi(arguments[1]) : 0);
    return fwrite(&made, sizeof made, 1, stdout) == 1 ? 0 : 1;
}
