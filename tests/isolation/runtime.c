/* A program of the CUDA runtime, which it is linked with: prints the errors and versions that it is told. */
#include <stddef.h>
#include <stdio.h>

int cudaRuntimeGetVersion(int *version);
int cudaDriverGetVersion(int *version);
int cudaGetDeviceCount(int *count);
int cudaMalloc(void **made, size_t size);
int cudaMemGetInfo(size_t *left, size_t *total);

int main(void) {
    int runtime = -1, driver = -1, count = -1;
    void *made = NULL;
    size_t left, total;
    int versions = cudaRuntimeGetVersion(&runtime) + cudaDriverGetVersion(&driver);
    printf("versions %d %d %d\n", versions, runtime, driver);
    printf("devices %d\n", cudaGetDeviceCount(&count));
    printf("malloc %d\n", cudaMalloc(&made, 1 << 20));
    printf("info %d\n", cudaMemGetInfo(&left, &total));
}
