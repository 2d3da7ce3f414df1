/* weft_plugin.h: what a shared library brings to weft.
 *
 * A plugin is a shared library with one exported function, weft_plugin_entry. It may bring ops, kernels for its own and
 * for built-in ops, priorities, passes and patterns:
 *
 *     weft complete MODEL -p "Hi" --plugin ./libmine.so --ir-op-priority.rms_norm=mine
 *     weft plugin check ./libmine.so
 *
 * This header is all it needs: plain C11 (or C++), nothing to link against. What a plugin may call comes to it in a
 * table of functions, weft_host. examples/plugin_kernel and examples/plugin_platform are whole plugins.
 *
 * Rules that hold everywhere:
 *
 *   - Names are zero-terminated UTF-8. What is given to a function of weft_host is copied at once, but for `state`,
 *     which is handed back as it is, and functions: they must stay valid as long as the process lives (a plugin is
 *     never unloaded).
 *   - What a plugin is handed is valid until its function returns.
 *   - A function that fails writes why into the message (WEFT_SAY) and gives a status. The user sees the message, the
 *     plugin's name and what it was doing; the run ends with exit status 2. A C++ exception that leaves a function is
 *     taken the same way.
 *   - Functions may be called from several threads at once, for different calls. They keep no state between calls that
 *     changes a result.
 *   - Nothing is registered unless everything is: a plugin that fails leaves no trace.
 */
#ifndef WEFT_PLUGIN_H
#define WEFT_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Goes up whenever anything in this file changes its layout or meaning. A plugin is loaded by programs of its own
 * version alone. */
#define WEFT_PLUGIN_ABI_VERSION 1u

#if defined(_WIN32)
#define WEFT_PLUGIN_EXPORT __declspec(dllexport)
#else
#define WEFT_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/* ---- Status and messages ---- */

typedef int32_t weft_status;
enum {
  WEFT_OK = 0,
  WEFT_REFUSED = 1, /* from `supported` and `supports` alone: no, for the reason in the message; not an error */
  WEFT_ERROR = 2,   /* failed, for the reason in the message; every other number means the same */
  WEFT_NONE = 3     /* from the attribute functions: the attribute is `none` */
};

typedef struct weft_message {
  char* text; /* empty at first; room for `capacity` bytes, the final zero included */
  size_t capacity;
} weft_message;

/* WEFT_SAY(message, "x must be f32, but is %s", ...) */
#define WEFT_SAY(message, ...) ((void)snprintf((message)->text, (message)->capacity, __VA_ARGS__))

/* ---- Types and tensors ---- */

/* Element types. Block types hold 32 elements each, as in GGUF files. */
enum {
  WEFT_F64 = 0,
  WEFT_F32 = 1,
  WEFT_F16 = 2,
  WEFT_BF16 = 3,
  WEFT_I64 = 4,
  WEFT_I32 = 5,
  WEFT_I16 = 6,
  WEFT_I8 = 7,
  WEFT_U8 = 8,
  WEFT_U16 = 9,
  WEFT_U32 = 10,
  WEFT_BOOL = 11,
  WEFT_I4 = 12, /* two to a byte, low nibble first; so is WEFT_F4E2M1 */
  WEFT_F8E4M3 = 13,
  WEFT_F8E4M3FNUZ = 14,
  WEFT_F8E5M2 = 15,
  WEFT_F8E8M0 = 16,
  WEFT_F4E2M1 = 17,
  WEFT_Q4_0 = 18,
  WEFT_Q4_1 = 19,
  WEFT_Q8_0 = 20,
  WEFT_DTYPE_UNDER_TEST = 1000 /* in samples alone: tried with f32, bf16 and f16 */
};

enum {
  WEFT_ABSENT = 0, /* an optional tensor that was not given */
  WEFT_TENSOR = 1,
  WEFT_KV = 2,    /* the KV pages of one layer */
  WEFT_BATCH = 3, /* what attention needs to know of the step: data is a weft_batch* */
  WEFT_INTEGER = 4,
  WEFT_REAL = 5
};

#define WEFT_MAX_RANK 8
#define WEFT_UNKNOWN (-1) /* a size that is known at run time only, such as the number of rows */

/* KV pages: a page holds `block` tokens; for each head K as [head_dim][block], then V as [block][head_dim]. */
typedef struct weft_kv_layout {
  int32_t dtype;
  int64_t block;
  int64_t heads;
  int64_t head_dim;
} weft_kv_layout;

/* Sequence i owns the query rows [query_starts[i], query_starts[i + 1]); they are the last of its lengths[i] tokens,
 * whose pages are block_table[i * max_blocks ...]. */
typedef struct weft_batch {
  int32_t sequences;
  const int32_t* query_starts;
  const int32_t* lengths;
  const int32_t* block_table;
  int32_t max_blocks;
} weft_batch;

/* A tensor at run time. Its element (i, j, ...) lies stride[0] * i + stride[1] * j + ... elements behind `data`, which
 * is aligned to one element at least. KV pages have one dim, the pages. */
typedef struct weft_tensor {
  void* data; /* null: absent */
  int32_t kind;
  int32_t dtype;
  int32_t rank;
  int64_t size[WEFT_MAX_RANK];
  int64_t stride[WEFT_MAX_RANK];
  weft_kv_layout kv;  /* kind WEFT_KV */
  const char* packed; /* the packing of a weight, "" for a plain one */
} weft_tensor;

/* A tensor's type when a graph is compiled. */
typedef struct weft_type {
  int32_t kind;
  int32_t dtype;
  int32_t rank;
  int64_t size[WEFT_MAX_RANK];   /* WEFT_UNKNOWN where it is no number */
  int64_t stride[WEFT_MAX_RANK]; /* as well */
  int32_t contiguous;            /* row-major without gaps */
  weft_kv_layout kv;
  const char* packed;
  const char* dim[WEFT_MAX_RANK]; /* each size as graphs spell it: 576, s0, 2*s0 + 1 */
  const char* text;               /* the type as graphs spell it: f32[s0, 576] */
} weft_type;

/* ---- What a plugin may call ---- */

typedef struct weft_attributes weft_attributes; /* of one call; defaults are filled in */
typedef struct weft_results weft_results;       /* where a shape rule puts types */
typedef struct weft_threads weft_threads;       /* the threads a kernel may use */
typedef struct weft_text weft_text;             /* where a pass puts a graph */
typedef struct weft_registry weft_registry;     /* what the plugin brought so far */
typedef struct weft_host weft_host;

/* One part of a loop. `thread` is below weft_host.thread_count. */
typedef weft_status (*weft_chunk_function)(void* context, int64_t chunk, int32_t thread);

struct weft_op;
struct weft_kernel;
struct weft_pass;

struct weft_host {
  uint32_t abi_version;

  /* Registering, from weft_plugin.bring alone. Each gives WEFT_ERROR with the reason kept for the user when it is
   * plainly wrong; everything else is checked once all plugins are there. */
  weft_status (*add_op)(weft_registry* registry, const struct weft_op* op);
  weft_status (*add_kernel)(weft_registry* registry, const struct weft_kernel* kernel);
  /* Puts providers, first choice first, in front of the device's defaults for an op. The user's own list stays first.
   */
  weft_status (*add_priority)(weft_registry* registry, const char* op, const char* const* providers, int32_t count);
  weft_status (*add_pass)(weft_registry* registry, const struct weft_pass* pass);
  /* `pattern` definitions as in docs/graph-text.md. Each must hold on samples of its ops; they are
   * applied before the patterns of the program. */
  weft_status (*add_patterns)(weft_registry* registry, const char* text);

  /* Attributes by name. WEFT_OK; WEFT_NONE when the attribute is none; WEFT_ERROR when there is none of that name or it
   * is of another type. A real may be read from an integer. Texts are strings, enum words and dtypes. */
  weft_status (*attribute_integer)(const weft_attributes* attributes, const char* name, int64_t* value);
  weft_status (*attribute_real)(const weft_attributes* attributes, const char* name, double* value);
  weft_status (*attribute_boolean)(const weft_attributes* attributes, const char* name, int32_t* value);
  weft_status (*attribute_text)(const weft_attributes* attributes, const char* name, const char** value);
  /* Up to `capacity` elements of a list of integers; `count` becomes how many it has. WEFT_UNKNOWN where an element is
   * no number. */
  weft_status (*attribute_integers)(const weft_attributes* attributes, const char* name, int64_t* values,
                                    int32_t capacity, int32_t* count);

  /* The type of one result, from a shape rule: as text, or that of an operand without its strides and packing. */
  weft_status (*result_type)(weft_results* results, int32_t result, const char* type);
  weft_status (*result_like)(weft_results* results, int32_t result, int32_t operand);

  /* Calls body(context, chunk, thread) once for each chunk in [0, chunks), on several threads, and returns when all are
   * done: WEFT_OK, or the status of the lowest chunk that failed. A result must not depend on which thread runs a chunk
   * nor on how many there are, and no chunk may wait for another. */
  weft_status (*parallel)(const weft_threads* threads, int64_t chunks, weft_chunk_function body, void* context);
  int32_t (*thread_count)(const weft_threads* threads);

  /* The text that a pass leaves. */
  weft_status (*set_text)(weft_text* text, const char* value);
};

/* ---- Ops ---- */

/* A call by its types: operands in the order of the op's signature. */
typedef struct weft_request {
  const weft_host* host;
  int32_t operand_count;
  const weft_type* operands;
  int32_t result_count; /* 0 in a shape rule */
  const weft_type* results;
  const weft_attributes* attributes;
  int64_t least_rows; /* the rows that the choice is made for; 0 and 0 in a shape rule */
  int64_t most_rows;
} weft_request;

/* The result may live in the memory of the argument, when the caller gives that away. */
typedef struct weft_donation {
  const char* argument;
  int32_t result;
} weft_donation;

enum {
  WEFT_FILL_NORMAL = 0,   /* about N(0, 1) */
  WEFT_FILL_POSITIVE = 1, /* uniform in (0.1, 2) */
  WEFT_FILL_INDICES = 2,  /* integers in [0, limit) */
  WEFT_FILL_CODES = 3,    /* int8 codes in [-127, 127] */
  WEFT_FILL_ZERO = 4
};

/* A tensor to try an op with; an optional one that no sample names is absent. */
typedef struct weft_sample_tensor {
  const char* name;
  int32_t dtype; /* WEFT_DTYPE_UNDER_TEST: f32, bf16 and f16 in turn */
  int32_t rank;
  int64_t size[WEFT_MAX_RANK];
  int32_t fill;
  int64_t limit;
} weft_sample_tensor;

/* Arguments to try an op with: what `weft plugin check` and weft's own tests run. The number of rows is best unlike
 * every other extent, so that it can be told apart. */
typedef struct weft_sample {
  const weft_sample_tensor* tensors;
  int32_t tensor_count;
  const char* attributes; /* as graphs spell them: "epsilon=1e-06, rounding=nearest"; null for none */
} weft_sample;

/* An op that is opaque: it has a shape rule and kernels, but no meaning in smaller ops. It may stand in any graph, is
 * never fused with its neighbours, and its result is what its kernel computes. At least one kernel must come with it.
 */
typedef struct weft_op {
  /* In PyTorch's grammar, tensors first: "scaled(Tensor x, float factor, int? width=None) -> Tensor". The op's name
   * ([a-z_][a-z0-9_]*) is new; so it is wise to begin it with the plugin's own. */
  const char* schema;
  const char* rows_of;   /* the tensor whose dim 0 is the number of rows; null: the first; "": the op has no rows */
  int32_t allow_inplace; /* may be called so that the donated arguments are given away; needs donations */
  const weft_donation* donations;
  int32_t donation_count;
  /* The types of the results, by weft_host.result_type and result_like. Sizes may be symbols: a rule that works for
   * `s0` rows works for every number of them, zero included. What it cannot take it refuses with WEFT_ERROR. */
  weft_status (*infer)(const weft_request* request, weft_results* results, void* state, weft_message* message);
  const weft_sample* samples; /* at least one */
  int32_t sample_count;
  void* state;
} weft_op;

/* ---- Kernels ---- */

typedef struct weft_device {
  const char* kind;     /* "cpu" */
  const char* name;     /* the processor's own name */
  const char* features; /* the instruction sets in use, each holding those before: baseline avx2 avx512 vnni bf16 */
  int32_t threads;
} weft_device;

/* What a kernel is handed to run. Operands are in the order of the op's signature. Results do not overlap operands,
 * except that the result of an argument that the kernel writes over is that argument. Other operands are only read. */
typedef struct weft_call {
  const weft_host* host;
  int32_t operand_count;
  const weft_tensor* operands;
  int32_t result_count;
  const weft_tensor* results;
  const weft_attributes* attributes;
  const weft_threads* threads;
} weft_call;

enum {
  WEFT_BATCH_INVARIANT = 1, /* the bits of a row never depend on the other rows: allowed under --batch-invariant */
  WEFT_MAY_BE_CAPTURED = 2, /* a launch may be recorded and replayed; without it the kernel is always called */
  WEFT_TAKES_STRIDES = 4,   /* operands may have any strides; without it only contiguous ones come */
  WEFT_TAKES_PACKED = 8     /* weights may be packed, by names that `supports` knows; without it only plain ones come */
};

typedef struct weft_kernel {
  const char* op;       /* built in or the plugin's own */
  const char* provider; /* who computes it ([a-z_][a-z0-9_]*): new for this op, and neither native nor reference */
  /* The op's signature as the kernel was written for. It is held against the op's own, defaults included, so that a
   * change of the op is told and not computed past. */
  const char* schema;
  const char* note; /* one line for `weft dump kernels`; may be null */
  uint32_t flags;
  int64_t least_rows; /* the numbers of rows that it is for; most_rows 0: no upper bound */
  int64_t most_rows;
  const char* const* writes; /* arguments it writes over; the op must donate them */
  int32_t write_count;
  /* Asked once, when the program starts; null: every device. */
  weft_status (*supported)(const weft_device* device, void* state, weft_message* message);
  /* Asked once per place in a graph when it is compiled, never per call; null: every call. A refusal (WEFT_REFUSED) is
   * shown to the user, and the next provider is asked. */
  weft_status (*supports)(const weft_request* request, void* state, weft_message* message);
  /* Never called when no result has an element. */
  weft_status (*run)(const weft_call* call, void* state, weft_message* message);
  void* state;
} weft_kernel;

/* ---- Passes ---- */

typedef struct weft_pass {
  const char* name;  /* [a-z_][a-z0-9_]*, new */
  const char* stage; /* traced, pure, lowered or split: runs behind the built-in passes of that stage, and leaves it */
  /* The graph comes as text (docs/graph-text.md). A pass that changes it hands the new text to weft_host.set_text; it
   * is parsed and verified, and must keep the graph's inputs and the types of its results. */
  weft_status (*run)(const weft_host* host, const char* graph, weft_text* changed, void* state, weft_message* message);
  void* state;
} weft_pass;

/* ---- The entry ---- */

typedef struct weft_plugin {
  uint32_t abi_version; /* WEFT_PLUGIN_ABI_VERSION; stands first in every version of this file */
  const char* name;     /* for messages */
  const char* version;  /* the plugin's own */
  /* Registers everything through the functions of `host`. Called once for each Context that loads the plugin. */
  weft_status (*bring)(const weft_host* host, weft_registry* registry, weft_message* message);
} weft_plugin;

/* The one function that the library exports; what it points to is never changed. */
WEFT_PLUGIN_EXPORT const weft_plugin* weft_plugin_entry(void);

#ifdef __cplusplus
}
#endif

#endif
