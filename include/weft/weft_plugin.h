/* weft_plugin.h: the interface between weft and its plugins.
 *
 * A plugin is a shared library with one exported function, weft_plugin_entry. It may add ops, kernels for its own ops
 * and for built-in ops, priorities, passes and patterns:
 *
 *     weft complete MODEL -p "Hi" --plugin ./libmine.so --ir-op-priority.rms_norm=mine
 *     weft plugin check ./libmine.so
 *
 * A plugin needs only this header: plain C11 (or C++), with nothing to link against. It calls weft through a table of
 * functions, weft_host. examples/plugin_kernel and examples/plugin_platform are complete plugins.
 *
 * These rules hold for all functions:
 *
 *   - Names are zero-terminated UTF-8. A function of weft_host copies its arguments before it returns. It does not copy
 *     `state`, which weft passes back unchanged, nor the code of functions: both must stay valid until the process ends
 *     (a plugin is never unloaded).
 *   - The arguments of a plugin's function are valid until that function returns.
 *   - A function that fails writes the reason into the message (WEFT_SAY) and returns a status. The user sees the
 *     message, the plugin's name and the action that failed; the run ends with exit status 2. A C++ exception that
 *     leaves a function has the same effect.
 *   - Several threads may call functions at the same time, for different calls. A function must not keep state between
 *     calls that changes a result.
 *   - Registration is all or nothing: if a plugin fails to register, nothing of it remains registered.
 */
#ifndef WEFT_PLUGIN_H
#define WEFT_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This version increases whenever the layout or meaning of anything in this file changes. A program loads only plugins
 * of its own version. */
#define WEFT_PLUGIN_ABI_VERSION 3u

#if defined(_WIN32)
#define WEFT_PLUGIN_EXPORT __declspec(dllexport)
#else
#define WEFT_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/* ---- Status and messages ---- */

typedef int32_t weft_status;
enum {
  WEFT_OK = 0,
  WEFT_REFUSED = 1, /* only from `supported` and `supports`: no, for the reason in the message; not an error */
  WEFT_ERROR = 2,   /* failed, for the reason in the message; all other numbers mean the same */
  WEFT_NONE = 3     /* from the attribute functions: the attribute is `none` */
};

typedef struct weft_message {
  char* text; /* empty at first; room for `capacity` bytes, the final zero included */
  size_t capacity;
} weft_message;

/* WEFT_SAY(message, "x must be f32, but is %s", ...) */
#define WEFT_SAY(message, ...) ((void)snprintf((message)->text, (message)->capacity, __VA_ARGS__))

/* ---- Types and tensors ---- */

/* Element types. Those from WEFT_Q4_0 on are block types, of 32 to 256 elements: those of GGUF files, and groups of
   codes of Hugging Face folders. */
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
  WEFT_I4 = 12, /* two elements in a byte, low nibble first; WEFT_F4E2M1 has the same layout */
  WEFT_F8E4M3 = 13,
  WEFT_F8E4M3FNUZ = 14,
  WEFT_F8E5M2 = 15,
  WEFT_F8E8M0 = 16,
  WEFT_F4E2M1 = 17,
  WEFT_Q4_0 = 18,
  WEFT_Q4_1 = 19,
  WEFT_Q8_0 = 20,
  WEFT_Q5_0 = 21,
  WEFT_Q5_1 = 22,
  WEFT_IQ4_NL = 23,
  WEFT_MXFP4 = 24,
  WEFT_NVFP4 = 25,
  WEFT_Q2_K = 26,
  WEFT_Q3_K = 27,
  WEFT_Q4_K = 28,
  WEFT_Q5_K = 29,
  WEFT_Q6_K = 30,
  WEFT_IQ4_XS = 31,
  WEFT_IQ3_S = 32,
  WEFT_IQ3_XXS = 33,
  WEFT_IQ2_S = 34,
  WEFT_IQ2_XS = 35,
  WEFT_IQ2_XXS = 36,
  WEFT_IQ1_M = 37,
  WEFT_IQ1_S = 38,
  WEFT_TQ1_0 = 39,
  WEFT_TQ2_0 = 40,
  WEFT_I4G32 = 41,
  WEFT_I4G64 = 42,
  WEFT_I4G128 = 43,
  WEFT_NF4G32 = 44,
  WEFT_NF4G64 = 45,
  WEFT_I8G32 = 46,
  WEFT_E4M3G32 = 47,
  WEFT_E4M3G128 = 48,
  WEFT_E2M1G16 = 49,
  WEFT_DTYPE_UNDER_TEST = 1000 /* only in samples: the sample runs with f32, bf16 and f16 */
};

enum {
  WEFT_ABSENT = 0, /* an optional tensor that was not given */
  WEFT_TENSOR = 1,
  WEFT_KV = 2,    /* the KV pages of one layer */
  WEFT_BATCH = 3, /* the sequences of the step, for attention: data is a weft_batch* */
  WEFT_INTEGER = 4,
  WEFT_REAL = 5
};

#define WEFT_MAX_RANK 8
#define WEFT_UNKNOWN (-1) /* a size that is known at run time only, such as the number of rows */

/* KV pages: a page holds `block` tokens. For each head it has K as [head_dim][block], then V as [block][head_dim]. If
 * the keys are the values, there is no V. */
typedef struct weft_kv_layout {
  int32_t dtype;
  int32_t keys_are_values; /* 1: they are */
  int64_t block;
  int64_t heads;
  int64_t head_dim;
  int64_t state_rows; /* not 0: the pages have no keys and values, but for each head a state [state_rows][head_dim] */
} weft_kv_layout;

/* Sequence i has the query rows [query_starts[i], query_starts[i + 1]). They are the last of its lengths[i] tokens. Its
 * pages are block_table[i * max_blocks ...]. */
typedef struct weft_batch {
  int32_t sequences;
  const int32_t* query_starts;
  const int32_t* lengths;
  const int32_t* block_table;
  int32_t max_blocks;
} weft_batch;

/* A tensor at run time. Its element (i, j, ...) is at an offset of stride[0] * i + stride[1] * j + ... elements from
 * `data`, which is aligned to at least one element. KV pages have one dim, the pages. */
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
  int64_t size[WEFT_MAX_RANK];   /* WEFT_UNKNOWN where the size is not a number */
  int64_t stride[WEFT_MAX_RANK]; /* the same */
  int32_t contiguous;            /* 1: row-major without gaps */
  weft_kv_layout kv;
  const char* packed;
  const char* dim[WEFT_MAX_RANK]; /* each size in the syntax of graphs: 576, s0, 2*s0 + 1 */
  const char* text;               /* the type in the syntax of graphs: f32[s0, 576] */
} weft_type;

/* ---- What a plugin may call ---- */

typedef struct weft_attributes weft_attributes; /* of one call, defaults included */
typedef struct weft_results weft_results;       /* a shape rule writes types here */
typedef struct weft_threads weft_threads;       /* the threads a kernel may use */
typedef struct weft_text weft_text;             /* a pass writes a graph here */
typedef struct weft_registry weft_registry;     /* what the plugin has registered so far */
typedef struct weft_host weft_host;

/* Runs one chunk of a loop. `thread` is less than weft_host.thread_count. */
typedef weft_status (*weft_chunk_function)(void* context, int64_t chunk, int32_t thread);

struct weft_op;
struct weft_kernel;
struct weft_pass;

struct weft_host {
  uint32_t abi_version;

  /* Registration; only weft_plugin.bring may call these. If an argument is plainly wrong, the function keeps the reason
   * for the user and returns WEFT_ERROR. Everything else is checked after all plugins are loaded. */
  weft_status (*add_op)(weft_registry* registry, const struct weft_op* op);
  weft_status (*add_kernel)(weft_registry* registry, const struct weft_kernel* kernel);
  /* Puts providers, in order of preference, before the device's defaults for an op. The user's own list stays first. */
  weft_status (*add_priority)(weft_registry* registry, const char* op, const char* const* providers, int32_t count);
  weft_status (*add_pass)(weft_registry* registry, const struct weft_pass* pass);
  /* Adds `pattern` definitions in the syntax of docs/graph-text.md. Each must hold on samples of its ops and on the
   * edges of each dtype. They are applied before the patterns of the program. */
  weft_status (*add_patterns)(weft_registry* registry, const char* text);

  /* Each reads an attribute by name. It returns WEFT_OK; WEFT_NONE if the attribute is `none`; WEFT_ERROR if there is
   * no attribute of that name or it has another type. An integer may be read as a real. Texts are strings, enum words
   * and dtypes. */
  weft_status (*attribute_integer)(const weft_attributes* attributes, const char* name, int64_t* value);
  weft_status (*attribute_real)(const weft_attributes* attributes, const char* name, double* value);
  weft_status (*attribute_boolean)(const weft_attributes* attributes, const char* name, int32_t* value);
  weft_status (*attribute_text)(const weft_attributes* attributes, const char* name, const char** value);
  /* Reads up to `capacity` elements of a list of integers and sets `count` to the length of the list. An element that
   * is not a number reads as WEFT_UNKNOWN. */
  weft_status (*attribute_integers)(const weft_attributes* attributes, const char* name, int64_t* values,
                                    int32_t capacity, int32_t* count);

  /* A shape rule sets the type of one result: from text, or from an operand's type without its strides and packing. */
  weft_status (*result_type)(weft_results* results, int32_t result, const char* type);
  weft_status (*result_like)(weft_results* results, int32_t result, int32_t operand);

  /* Calls body(context, chunk, thread) once for each chunk in [0, chunks), on several threads, and returns when all
   * chunks are done. It returns WEFT_OK, or the status of the lowest chunk that failed. A result must not depend on the
   * thread that runs a chunk, nor on the number of threads. A chunk must not wait for another chunk. */
  weft_status (*parallel)(const weft_threads* threads, int64_t chunks, weft_chunk_function body, void* context);
  int32_t (*thread_count)(const weft_threads* threads);

  /* A pass sets the changed graph with this. */
  weft_status (*set_text)(weft_text* text, const char* value);
};

/* ---- Ops ---- */

/* The types of a call. The operands are in the order of the op's signature. */
typedef struct weft_request {
  const weft_host* host;
  int32_t operand_count;
  const weft_type* operands;
  int32_t result_count; /* 0 in a shape rule */
  const weft_type* results;
  const weft_attributes* attributes;
  int64_t least_rows; /* the range of rows that the kernel is chosen for; 0 and 0 in a shape rule */
  int64_t most_rows;
} weft_request;

/* The result may use the memory of the argument if the caller donates it. */
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

/* A tensor for a trial call of an op. An optional tensor that the sample does not name is absent. */
typedef struct weft_sample_tensor {
  const char* name;
  int32_t dtype; /* WEFT_DTYPE_UNDER_TEST: one trial each with f32, bf16 and f16 */
  int32_t rank;
  int64_t size[WEFT_MAX_RANK];
  int32_t fill;
  int64_t limit;
} weft_sample_tensor;

/* Arguments for trial calls of an op; `weft plugin check` and weft's own tests run them. Choose a number of rows that
 * differs from all other extents, so that the rows can be recognized. */
typedef struct weft_sample {
  const weft_sample_tensor* tensors;
  int32_t tensor_count;
  const char* attributes; /* in the syntax of graphs: "epsilon=1e-06, rounding=nearest"; null for none */
} weft_sample;

/* An opaque op: it has a shape rule and kernels, but no definition in smaller ops. It may be used in any graph and is
 * never fused with other ops; its kernel alone defines its result. The plugin must add at least one kernel for it. */
typedef struct weft_op {
  /* In PyTorch's grammar, tensors first: "scaled(Tensor x, float factor, int? width=None) -> Tensor". The op's name
   * ([a-z_][a-z0-9_]*) must be new, so it should begin with the plugin's name. */
  const char* schema;
  const char* rows_of;   /* the tensor whose dim 0 is the number of rows; null: the first; "": the op has no rows */
  int32_t allow_inplace; /* 1: the op has a maybe_inplace form that donates arguments; needs donations */
  const weft_donation* donations;
  int32_t donation_count;
  /* The shape rule: sets the types of the results with weft_host.result_type and result_like. Sizes may be symbols: a
   * rule for `s0` rows must hold for each number of rows, zero included. It refuses invalid operands with WEFT_ERROR.
   */
  weft_status (*infer)(const weft_request* request, weft_results* results, void* state, weft_message* message);
  const weft_sample* samples; /* at least one */
  int32_t sample_count;
  void* state;
} weft_op;

/* ---- Kernels ---- */

typedef struct weft_device {
  const char* kind; /* "cpu" */
  const char* name; /* the name that the processor reports */
  const char*
      features; /* the instruction sets in use, each including those before it: baseline avx2 avx512 vnni bf16 */
  int32_t threads;
} weft_device;

/* The arguments of a kernel's run. Operands are in the order of the op's signature. Results do not overlap operands,
 * with one exception: if the kernel overwrites an argument, the result of that argument has the argument's memory. The
 * kernel must not write to other operands. */
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
  WEFT_BATCH_INVARIANT = 1, /* the bits of a row never depend on other rows: allowed under --batch-invariant */
  WEFT_MAY_BE_CAPTURED = 2, /* a launch may be recorded and replayed; without this flag the kernel is always called */
  WEFT_TAKES_STRIDES = 4,   /* operands may have any strides; without this flag all are contiguous */
  WEFT_TAKES_PACKED = 8     /* weights may have a packing that `supports` accepts; without this flag all are plain */
};

typedef struct weft_kernel {
  const char* op; /* a built-in op or the plugin's own */
  const char*
      provider; /* the implementation's name ([a-z_][a-z0-9_]*): new for this op, and neither native nor reference */
  /* The op's signature that the kernel was written for. It is compared with the op's current signature, defaults
   * included, so that a change of the op is an error and not a wrong result. */
  const char* schema;
  const char* note; /* one line for `weft dump kernels`; may be null */
  uint32_t flags;
  int64_t least_rows; /* the range of row counts that the kernel supports; most_rows 0: no upper bound */
  int64_t most_rows;
  const char* const* writes; /* arguments that the kernel overwrites; the op must donate them */
  int32_t write_count;
  /* Called once, when the program starts; null: the kernel supports all devices. */
  weft_status (*supported)(const weft_device* device, void* state, weft_message* message);
  /* Called once for each call in a graph, when the graph is compiled, and never at run time; null: the kernel supports
   * all calls. A refusal (WEFT_REFUSED) is shown to the user, and the next provider is tried. */
  weft_status (*supports)(const weft_request* request, void* state, weft_message* message);
  /* Not called if all results are empty. */
  weft_status (*run)(const weft_call* call, void* state, weft_message* message);
  void* state;
} weft_kernel;

/* ---- Passes ---- */

typedef struct weft_pass {
  const char* name;  /* [a-z_][a-z0-9_]*, new */
  const char* stage; /* traced, pure, lowered or split: runs after the built-in passes of that stage and must not change
                        the stage */
  /* The graph is text (docs/graph-text.md). A pass that changes the graph calls weft_host.set_text with the new text.
   * weft parses and verifies it. It must have the same inputs and result types as before. */
  weft_status (*run)(const weft_host* host, const char* graph, weft_text* changed, void* state, weft_message* message);
  void* state;
} weft_pass;

/* ---- The entry ---- */

typedef struct weft_plugin {
  uint32_t abi_version; /* WEFT_PLUGIN_ABI_VERSION; the first field in all versions of this file */
  const char* name;     /* for messages */
  const char* version;  /* the plugin's version */
  /* Registers everything with the functions of `host`. It is called once for each Context that loads the plugin. */
  weft_status (*bring)(const weft_host* host, weft_registry* registry, weft_message* message);
} weft_plugin;

/* The only function that the library exports. The plugin must never change the struct that it returns. */
WEFT_PLUGIN_EXPORT const weft_plugin* weft_plugin_entry(void);

#ifdef __cplusplus
}
#endif

#endif
