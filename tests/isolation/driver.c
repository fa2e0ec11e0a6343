/* A libcuda.so.1 without a card: memory is numbers in the file RUN_FOLDER/cards, which all processes share.
 *
 * It answers like NVIDIA's where isolation depends on it: an address or handle that was freed is handed out again at
 * once, a context's end frees what was allocated in it, a block of virtual memory lives as long as it has a handle or a
 * mapping, cuGetProcAddress answers addresses of exported functions. With -DOLD it has what CUDA 11.4 had.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda.h"
#include "card.h"
#include "cards_file.h"
#include "driver_types.h"
#include "gpu.h"
#include "run_folder.h"
#include "sizes.h"

#define MOST 1024
#define PITCHED(width) (((width) + PITCH - 1) / PITCH * PITCH)

struct CUmemPoolHandle_st {
    int device;
    uint64_t reserved, used;
};

typedef struct {
    int device, handles, mappings;
    uint64_t bytes;
} block;

typedef enum { NOTHING, POINTER, OF_POOL, IN_ARRAY, IN_MIPMAP, OF_HANDLE, OF_MAPPING } kind;

typedef struct {
    kind kind;
    CUcontext context;
    int device;
    uint64_t at, bytes;
    block *block;
    CUmemoryPool pool;
} entry;

static card *cards;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static entry entries[MOST];
static struct CUctx_st primary[CARDS];
static __thread CUcontext current, before;
static process_name self;
static uint64_t addresses = 1ULL << 40;
static CUresult broken; /* after an error in a kernel, every call answers it */

static CUresult leave(CUresult answer) {
    pthread_mutex_unlock(&mutex);
    return answer;
}

/* A child of fork cannot use what its parent has made. */
static void forget_all(void) {
    memset(entries, 0, sizeof entries);
    memset(primary, 0, sizeof primary);
    current = NULL;
}

__attribute__((constructor)) static void load(void) { pthread_atfork(NULL, NULL, forget_all); }

/* --- entries: their place gives them their address, so a free place gives the same again ----------------------------- */

static entry *entry_of(kind wanted, uint64_t at) {
    for (entry *each = entries; each < entries + MOST; each++)
        if (each->kind == wanted && each->at == at) return each;
    return NULL;
}

static uint64_t address_of(const entry *each) { return (uint64_t)(each - entries + 1) << 16; }

static entry *new_entry(kind of) {
    entry *each = entries;
    while (each < entries + MOST && each->kind) each++;
    if (each == entries + MOST) return NULL;
    *each = (entry){.kind = of, .at = address_of(each)};
    return each;
}

static void free_entry(entry *each) {
    card_free(&cards[each->device], self, each->bytes);
    each->kind = NOTHING;
}

/* --- start ---------------------------------------------------------------------------------------------------------- */

CUresult cuInit(unsigned flags) {
    int file = open(RUN_FOLDER "/cards", O_RDWR);
    if (file < 0 || flags) return CUDA_ERROR_INVALID_VALUE;
    if (!cards) cards = mmap(NULL, CARDS * sizeof *cards, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    self = process_self();
    gpu_join();
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) { return *version = VERSION, CUDA_SUCCESS; }

static int keep; /* everything is in use by the card: nothing can be trimmed */

CUresult standInKeep(int kept) { return keep = kept, CUDA_SUCCESS; }

CUresult standInBreak(CUresult answer) { return broken = answer, CUDA_SUCCESS; }

CUresult cuDeviceGetCount(int *count) { return *count = CARDS, CUDA_SUCCESS; }

static int is_device(CUdevice device) { return device >= 0 && device < CARDS; }

CUresult cuDeviceGetUuid(unsigned char uuid[16], CUdevice device) {
    if (!cards) return CUDA_ERROR_NOT_INITIALIZED;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    memset(uuid, 'A' + device, 16);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *total, CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *total = cards[device].total;
    return CUDA_SUCCESS;
}

/* --- contexts ------------------------------------------------------------------------------------------------------- */

static CUresult begin_context(CUcontext made, CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    made->device = device;
    return card_allocate(&cards[device], self, CONTEXT_BYTES) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void end_context(CUcontext old) {
    for (entry *each = entries; each < entries + MOST; each++)
        if (each->kind && each->context == old) free_entry(each);
    card_free(&cards[old->device], self, CONTEXT_BYTES);
    if (current == old) current = NULL;
}

CUresult cuCtxCreate_v2(CUcontext *made, unsigned flags, CUdevice device) {
    (void)flags;
    CUcontext context = calloc(1, sizeof *context);
    CUresult answer = begin_context(context, device);
    if (answer) return free(context), answer;
    *made = current = context;
    return answer;
}

CUresult cuCtxCreate(CUcontext *made, unsigned flags, CUdevice device) { return cuCtxCreate_v2(made, flags, device); }

CUresult cuCtxDestroy_v2(CUcontext old) {
    if (!old || old->is_primary) return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&mutex);
    end_context(old);
    free(old);
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxDestroy(CUcontext old) { return cuCtxDestroy_v2(old); }

CUresult cuDevicePrimaryCtxRetain(CUcontext *made, CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&mutex);
    CUresult answer = primary[device].users ? CUDA_SUCCESS : begin_context(&primary[device], device);
    if (answer) return leave(answer);
    primary[device].users++;
    primary[device].is_primary = 1;
    *made = &primary[device];
    return leave(answer);
}

static CUresult leave_primary(CUdevice device, int users) {
    pthread_mutex_lock(&mutex);
    CUcontext of = &primary[device];
    if (!of->users) return leave(CUDA_ERROR_INVALID_CONTEXT);
    of->users = users < 0 ? of->users - 1 : users;
    if (!of->users) end_context(of);
    return leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return leave_primary(device, -1); }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return leave_primary(device, -1); }
CUresult cuDevicePrimaryCtxReset(CUdevice device) { return leave_primary(device, 0); }
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return leave_primary(device, 0); }

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    pthread_mutex_lock(&mutex);
    *flags = 0;
    *active = primary[device].users > 0;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
    before = current;
    return current = context, CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *old) {
    *old = current;
    return current = before, CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) { return current = context, CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *found) { return *found = current, CUDA_SUCCESS; }

CUresult cuCtxGetDevice(CUdevice *found) {
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    *found = current->device;
    return CUDA_SUCCESS;
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

static CUresult allocate(kind of, int device, CUcontext context, uint64_t bytes, entry **made) {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    if (!card_allocate(&cards[device], self, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    *made = new_entry(of);
    (*made)->context = context;
    (*made)->device = device;
    (*made)->bytes = bytes;
    return CUDA_SUCCESS;
}

static CUresult allocate_here(kind of, uint64_t bytes, uint64_t *at) {
    entry *made;
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&mutex);
    CUresult answer = allocate(of, current->device, current, bytes, &made);
    if (!answer) *at = made->at;
    return leave(answer);
}

static CUresult release(kind of, uint64_t at) {
    pthread_mutex_lock(&mutex);
    entry *each = at ? entry_of(of, at) : NULL;
    if (broken) return leave(broken);
    if (!each) return leave(at ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
    free_entry(each);
    return leave(CUDA_SUCCESS);
}

CUresult cuMemAlloc_v2(CUdeviceptr *made, size_t size) { return allocate_here(POINTER, size, (uint64_t *)made); }

CUresult cuMemAllocManaged(CUdeviceptr *made, size_t size, unsigned flags) {
    return flags ? cuMemAlloc_v2(made, size) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *made, size_t *pitch, size_t width, size_t height, unsigned element) {
    (void)element;
    *pitch = PITCHED(width);
    return cuMemAlloc_v2(made, *pitch * height);
}

CUresult cuMemFree_v2(CUdeviceptr old) { return release(POINTER, old); }

CUresult cuMemAlloc(unsigned *made, unsigned size) {
    uint64_t at = 0;
    CUresult answer = allocate_here(POINTER, size, &at);
    *made = (unsigned)at;
    return answer;
}

CUresult cuMemAllocPitch(unsigned *made, unsigned *pitch, unsigned width, unsigned height, unsigned element) {
    (void)element;
    *pitch = PITCHED(width);
    return cuMemAlloc(made, *pitch * height);
}

CUresult cuMemFree(unsigned old) { return release(POINTER, old); }

CUresult cuMemGetInfo_v2(size_t *left, size_t *total) {
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    *total = cards[current->device].total;
    *left = *total - card_used(&cards[current->device]);
    return CUDA_SUCCESS;
}

/* --- arrays --------------------------------------------------------------------------------------------------------- */

CUresult cuArray3DCreate_v2(CUarray *made, const CUDA_ARRAY3D_DESCRIPTOR *of) {
    uint64_t bytes = of ? bytes_of_array(of->width, of->height, of->depth, of->format, of->channels) : 0;
    if (of && is_filled_later(of->flags)) return CUDA_SUCCESS;
    return allocate_here(IN_ARRAY, bytes, (uint64_t *)made);
}

CUresult cuArrayCreate_v2(CUarray *made, const CUDA_ARRAY_DESCRIPTOR *of) {
    if (!of) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR deep = {of->width, of->height, 0, of->format, of->channels, 0};
    return cuArray3DCreate_v2(made, &deep);
}

CUresult cuArrayCreate(CUarray *made, const CUDA_ARRAY_DESCRIPTOR_v1 *of) {
    CUDA_ARRAY3D_DESCRIPTOR deep = {of->width, of->height, 0, of->format, of->channels, 0};
    return cuArray3DCreate_v2(made, &deep);
}

CUresult cuArray3DCreate(CUarray *made, const CUDA_ARRAY3D_DESCRIPTOR_v1 *of) {
    CUDA_ARRAY3D_DESCRIPTOR deep = {of->width, of->height, of->depth, of->format, of->channels, of->flags};
    return cuArray3DCreate_v2(made, &deep);
}

CUresult cuArrayDestroy(CUarray old) { return release(IN_ARRAY, (uintptr_t)old); }

CUresult cuMipmappedArrayCreate(CUmipmappedArray *made, const CUDA_ARRAY3D_DESCRIPTOR *of, unsigned levels) {
    if (is_filled_later(of->flags)) return CUDA_SUCCESS;
    return allocate_here(IN_MIPMAP, bytes_of_levels(of, levels), (uint64_t *)made);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray old) { return release(IN_MIPMAP, (uintptr_t)old); }

/* --- virtual memory -------------------------------------------------------------------------------------------------- */

static void end_use(block *of) {
    if (of->handles || of->mappings) return;
    if (of->device >= 0) card_free(&cards[of->device], self, of->bytes);
    free(of);
}

static uint64_t new_handle(block *of) {
    entry *made = new_entry(OF_HANDLE);
    made->block = of;
    of->handles = 1;
    return made->at;
}

CUresult cuMemCreate(CUhandle *made, size_t size, const CUmemAllocationProp *how, unsigned long long flags) {
    if (!how || flags || !size) return CUDA_ERROR_INVALID_VALUE;
    int device = how->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? how->location.id : -1;
    if (device >= CARDS) return CUDA_ERROR_INVALID_DEVICE;
    if (device >= 0 && !card_allocate(&cards[device], self, size)) return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&mutex);
    block *of = calloc(1, sizeof *of);
    *of = (block){device, 0, 0, size};
    *made = new_handle(of);
    return leave(CUDA_SUCCESS);
}

CUresult cuMemRelease(CUhandle old) {
    pthread_mutex_lock(&mutex);
    entry *each = entry_of(OF_HANDLE, old);
    if (!each) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!--each->block->handles) each->kind = NOTHING;
    end_use(each->block);
    return leave(CUDA_SUCCESS);
}

CUresult cuMemAddressReserve(CUdeviceptr *at, size_t size, size_t align, CUdeviceptr wish, unsigned long long flags) {
    (void)align, (void)wish, (void)flags;
    *at = __atomic_fetch_add(&addresses, size, __ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUhandle handle, unsigned long long flags) {
    (void)offset, (void)flags;
    pthread_mutex_lock(&mutex);
    entry *of = entry_of(OF_HANDLE, handle), *made = of ? new_entry(OF_MAPPING) : NULL;
    if (!of) return leave(CUDA_ERROR_INVALID_VALUE);
    *made = (entry){.kind = OF_MAPPING, .at = at, .bytes = size, .block = of->block};
    of->block->mappings++;
    return leave(CUDA_SUCCESS);
}

static void end_mapping(entry *old) {
    old->kind = NOTHING;
    old->block->mappings--;
    end_use(old->block);
}

CUresult cuMemUnmap(CUdeviceptr at, size_t size) {
    int found = 0;
    pthread_mutex_lock(&mutex);
    for (entry *each = entries; each < entries + MOST; each++)
        if (each->kind == OF_MAPPING && each->at >= at && each->at < at + size) end_mapping(each), found = 1;
    return leave(found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static uint64_t handle_of(block *of) {
    for (entry *each = entries; each < entries + MOST; each++)
        if (each->kind == OF_HANDLE && each->block == of) return of->handles++, each->at;
    return new_handle(of);
}

CUresult cuMemRetainAllocationHandle(CUhandle *found, void *at) {
    uint64_t address = (uintptr_t)at;
    pthread_mutex_lock(&mutex);
    for (entry *each = entries; each < entries + MOST; each++)
        if (each->kind == OF_MAPPING && each->at <= address && address < each->at + each->bytes)
            return *found = handle_of(each->block), leave(CUDA_SUCCESS);
    return leave(CUDA_ERROR_INVALID_VALUE);
}

/* --- pools: they grow by whole steps, and shrink when a stream is synchronised ---------------------------------------- */

#define STEP (32ULL << 20)
#define MOST_POOLS 16

static struct CUmemPoolHandle_st pools[MOST_POOLS] = {{0}, {.device = 1}}; /* first the default pools */
static int pool_count = CARDS;

static uint64_t whole_steps(uint64_t bytes) { return (bytes + STEP - 1) / STEP * STEP; }

static void shrink(CUmemoryPool of) {
    uint64_t rest = of->reserved - whole_steps(of->used);
    card_free(&cards[of->device], self, rest);
    of->reserved -= rest;
}

static int grow(CUmemoryPool of, uint64_t bytes) {
    uint64_t wanted = whole_steps(of->used + bytes), more = wanted > of->reserved ? wanted - of->reserved : 0;
    if (more && !card_allocate(&cards[of->device], self, more)) return 0;
    of->reserved += more;
    of->used += bytes;
    return 1;
}

CUresult cuStreamCreate(CUstream *made, unsigned flags) {
    (void)flags;
    *made = calloc(1, sizeof **made);
    (*made)->context = current;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, int *status) {
    return *status = (uintptr_t)stream > 2 && stream->captured, CUDA_SUCCESS;
}

static CUcontext context_of(CUstream stream) { return (uintptr_t)stream > 2 ? stream->context : current; }

CUresult cuStreamGetCtx(CUstream stream, CUcontext *found) { return *found = context_of(stream), CUDA_SUCCESS; }

CUresult cuStreamSynchronize(CUstream stream) {
    (void)stream;
    pthread_mutex_lock(&mutex);
    for (int at = 0; at < pool_count; at++) shrink(&pools[at]);
    return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *found, CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    return *found = &pools[device], CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *made, const CUmemPoolProps *how) {
    *made = &pools[pool_count++];
    (*made)->device = how->location.id;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool old) {
    pthread_mutex_lock(&mutex);
    shrink(old);
    return leave(CUDA_SUCCESS);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
    if (bytes || keep) return CUDA_SUCCESS;
    pthread_mutex_lock(&mutex);
    shrink(pool);
    return leave(CUDA_SUCCESS);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *found) {
    pthread_mutex_lock(&mutex);
    *(uint64_t *)found = attribute == 5 ? pool->reserved : pool->used;
    return leave(attribute == 5 || attribute == 7 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *made, size_t size, CUmemoryPool pool, CUstream stream) {
    if (stream && stream->captured) return stream->captured->bytes += size, CUDA_SUCCESS;
    pthread_mutex_lock(&mutex);
    if (!grow(pool, size)) return leave(CUDA_ERROR_OUT_OF_MEMORY);
    entry *each = new_entry(OF_POOL);
    each->pool = pool;
    each->bytes = size;
    *made = each->at;
    return leave(CUDA_SUCCESS);
}

CUresult cuMemAllocAsync(CUdeviceptr *made, size_t size, CUstream stream) {
    CUcontext of = context_of(stream);
    return of ? cuMemAllocFromPoolAsync(made, size, &pools[of->device], stream) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemFreeAsync(CUdeviceptr old, CUstream stream) {
    (void)stream;
    pthread_mutex_lock(&mutex);
    entry *each = entry_of(OF_POOL, old);
    if (!each) return leave(CUDA_ERROR_INVALID_VALUE);
    each->kind = NOTHING;
    each->pool->used -= each->bytes;
    return leave(CUDA_SUCCESS);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *made, size_t size, CUstream stream) {
    return cuMemAllocAsync(made, size, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *made, size_t size, CUmemoryPool pool, CUstream stream) {
    return cuMemAllocFromPoolAsync(made, size, pool, stream);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr old, CUstream stream) { return cuMemFreeAsync(old, stream); }

/* --- graphs: what they allocated is kept for the next launch ---------------------------------------------------------- */

#define BYTES_OF_NODE 104 /* where CUDA_MEM_ALLOC_NODE_PARAMS has the size */

static uint64_t graph_bytes;

CUresult cuGraphCreate(CUgraph *made, unsigned flags) {
    *made = calloc(1, sizeof **made);
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
    capture_begins(stream->capture_mode = mode);
    return cuGraphCreate(&stream->captured, 0);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *made) {
    *made = stream->captured;
    stream->captured = NULL;
    return capture_ends(stream->capture_mode);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t count, void *how) {
    (void)made, (void)after, (void)count;
    graph->bytes += *(uint64_t *)((char *)how + BYTES_OF_NODE);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t count,
                        CUgraphNodeParams *how) {
    return how->type == 10 ? cuGraphAddMemAllocNode(made, graph, after, count, &how->where) : CUDA_SUCCESS;
}

CUresult cuGraphAddNode_v2(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count,
                           CUgraphNodeParams *how) {
    (void)edges;
    return cuGraphAddNode(made, graph, after, count, how);
}

CUresult cuGraphInstantiateWithFlags(CUgraph *made, CUgraph graph, uint64_t flags) {
    (void)flags;
    return *made = graph, CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec graph, CUstream stream) {
    (void)stream;
    uint64_t wanted = ((CUgraph)graph)->bytes, more = wanted > graph_bytes ? wanted - graph_bytes : 0;
    if (more && !card_allocate(&cards[0], self, more)) return CUDA_ERROR_OUT_OF_MEMORY;
    graph_bytes += more;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
    CUresult answer = cuGraphUpload(graph, stream);
    if (!answer && current) gpu_launch(current->device, ((CUgraph)graph)->gpu_ns);
    return answer;
}

CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) { return cuGraphLaunch(graph, stream); }
CUresult cuGraphUpload_ptsz(CUgraphExec graph, CUstream stream) { return cuGraphUpload(graph, stream); }

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *found) {
    *(uint64_t *)found = device || attribute != 2 ? 0 : graph_bytes;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
    if (device || keep) return CUDA_SUCCESS;
    card_free(&cards[0], self, graph_bytes);
    return graph_bytes = 0, CUDA_SUCCESS;
}

/* --- functions ------------------------------------------------------------------------------------------------------ */

static void *exported(const char *name, const char *suffix) {
    char whole[96];
    snprintf(whole, sizeof whole, "%s%s", name, suffix);
    return dlsym(dlopen(RUN_FOLDER "/driver/libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), whole);
}

CUresult cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    (void)flags;
    *found = version >= 3020 ? exported(name, "_v2") : NULL;
    if (!*found) *found = exported(name, "");
    return *found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#ifndef OLD
CUresult cuGreenCtxCreate(CUgreenCtx *made, void *resources, CUdevice device, unsigned flags) {
    (void)resources, (void)flags;
    *made = (CUgreenCtx)calloc(1, sizeof(struct CUctx_st));
    return begin_context((CUcontext)*made, device);
}

CUresult cuGreenCtxDestroy(CUgreenCtx old) { return cuCtxDestroy_v2((CUcontext)old); }

CUresult cuCtxCreate_v3(CUcontext *made, void *affinity, int count, unsigned flags, CUdevice device) {
    (void)affinity, (void)count;
    return cuCtxCreate_v2(made, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *made, void *how, unsigned flags, CUdevice device) {
    (void)how;
    return cuCtxCreate_v2(made, flags, device);
}

CUresult cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {
    CUresult answer = cuGetProcAddress(name, found, version, flags);
    if (status) *status = answer ? 1 : 0;
    return answer;
}
#endif
