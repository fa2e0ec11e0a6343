/* Makes the stand-in for NVML call its own exported function by name, as NVIDIA's does. */
typedef struct {
    unsigned long long total, free, used;
} memory;
typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} memory_v2;

int nvmlDeviceGetMemoryInfo_v2(void *device, memory_v2 *found);

int nvmlDeviceGetMemoryInfo(void *device, memory *found) {
    memory_v2 all = {.version = sizeof all | 2U << 24};
    int error = nvmlDeviceGetMemoryInfo_v2(device, &all);
    if (!error) *found = (memory){all.total, all.free, all.used + all.reserved};
    return error;
}
