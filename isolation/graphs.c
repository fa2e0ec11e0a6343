/* Graphs allocate memory when they are uploaded or launched, and the driver keeps it for later launches. It is counted
 * after a launch that made it grow, so it may exceed the limit once; then nothing that uses more can be launched until
 * enough was freed. Processes whose graphs allocate nothing pay one comparison. */
#include "cards.h"
#include "cores.h"
#include "driver.h"
#include "pools.h"

#define MEM_ALLOC_NODE 10 /* CUgraphNodeType */

static void count_graphs(const CUmemAllocationProp *where) {
    if (!where || where->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return;
    pools_lock();
    pools_add_graphs_locked(where->location.id);
    pools_unlock();
}

/* --- nodes that allocate; those of a stream that is captured are in stream_memory.c --------------------------------- */

CUresult cuGraphAddMemAllocNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t count, void *how) {
    count_graphs(how);
    return CALL(cuGraphAddMemAllocNode, (made, graph, after, count, how));
}

static void count_node(const CUgraphNodeParams *how) {
    if (how && how->type == MEM_ALLOC_NODE) count_graphs(&how->where);
}

CUresult cuGraphAddNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t count,
                        CUgraphNodeParams *how) {
    count_node(how);
    return CALL(cuGraphAddNode, (made, graph, after, count, how));
}

CUresult cuGraphAddNode_v2(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count,
                           CUgraphNodeParams *how) {
    count_node(how);
    return CALL(cuGraphAddNode_v2, (made, graph, after, edges, count, how));
}

/* --- launches ------------------------------------------------------------------------------------------------------- */

/* Takes nothing, which is refused where more than the limit is used already. */
static CUresult before_launch(void) { return pools_have_graphs() ? take_or_trim(card_of_current_context(), 0) : 0; }

static CUresult after_launch(CUresult answer) {
    if (pools_have_graphs()) pools_measure();
    return answer;
}

#define UPLOAD(name)                                            \
    CUresult name(CUgraphExec graph, CUstream stream) {         \
        CUresult error = before_launch();                       \
        if (error) return error;                                \
        return after_launch(CALL(name, (graph, stream)));       \
    }

#define LAUNCH_GRAPH(name, used_stream)                                                   \
    CUresult name(CUgraphExec graph, CUstream stream) {                                   \
        CUresult error = before_launch();                                                 \
        if (error) return error;                                                          \
        if (!cores_are_held()) return after_launch(CALL(name, (graph, stream)));          \
        launch of = cores_begin(kernel_key(graph, 0, 0, 0), used_stream);                 \
        return after_launch(cores_end(of, CALL(name, (graph, stream))));                  \
    }

LAUNCH_GRAPH(cuGraphLaunch, stream)
LAUNCH_GRAPH(cuGraphLaunch_ptsz, OF_THREAD(stream))
UPLOAD(cuGraphUpload)
UPLOAD(cuGraphUpload_ptsz)
