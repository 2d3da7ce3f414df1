/* weft.h: weft as a library, libweft.so. Plain C99 (or C++), flat, with a version.
 *
 *     weft_context* context = NULL;
 *     weft_model* model = NULL;
 *     weft_error error;
 *     if (weft_context_create(NULL, 0, &context, &error) != WEFT_SUCCESS ||
 *         weft_model_open(context, "smollm2-135m", &model, &error) != WEFT_SUCCESS ||
 *         weft_model_complete(model, "The capital of France is", NULL, show, NULL, NULL, &error) != WEFT_SUCCESS)
 *       fprintf(stderr, "%s\n", error.text);
 *     weft_model_close(model, NULL);
 *     weft_context_destroy(context);
 *
 * examples/c_complete is a whole program. Rules that hold everywhere:
 *
 *   - A function that can fail returns a status (WEFT_SUCCESS is 0) and says why in the weft_error given to that call;
 *     null where nobody wants to know. The message lies in the caller's memory, so no other call, thread or moved
 *     coroutine can take its place, and nothing has to be freed. No C++ exception leaves a function.
 *   - A function that fails leaves everything as it was, and null in the place of a handle or text it would give.
 *   - Texts are zero-terminated UTF-8. What is given is copied where it is needed after the call. A text that is given
 *     back (char**) belongs to the caller: weft_text_free.
 *   - Any function may be called from any thread. Calls on one handle happen one after another; different handles do
 *     not wait for each other. A handle is destroyed once nobody uses it any more.
 *   - Handles do not depend on each other: a model or graph takes what its context says when it is opened. What happens
 *     to the context later, its end included, does not reach it.
 *   - Nothing is printed and the environment is not read, but for what options ask for (logs, print-ir-after) and the
 *     folder of a model that is given by name (WEFT_MODELS_ROOT, XDG_CACHE_HOME, HOME).
 */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Goes up whenever anything in this file changes its layout or meaning; what is only added does not count. libweft.so
 * carries it in its name: libweft.so.1. */
#define WEFT_ABI_VERSION 1u

#if defined(_WIN32)
#define WEFT_API
#else
#define WEFT_API __attribute__((visibility("default")))
#endif

/* WEFT_ABI_VERSION of the library that runs. */
WEFT_API uint32_t weft_abi_version(void);
/* The version of the program, "0.1.0". Valid for ever. */
WEFT_API const char* weft_version(void);

/* ---- Errors ---- */

/* The exit statuses of the program `weft`. */
enum {
  WEFT_SUCCESS = 0,
  WEFT_USER_ERROR = 2,     /* the request, file, model or option is wrong */
  WEFT_INTERNAL_ERROR = 3, /* weft broke a promise */
  WEFT_DEVICE_ERROR = 4    /* memory, a driver or the system failed */
};

/* Written by every call that is given one; empty, with WEFT_SUCCESS, when it did not fail. */
typedef struct weft_error {
  int32_t status;
  char text[2044]; /* the thing in brackets, what was wanted and what came; cut where it is longer */
} weft_error;

/* Frees a text that a function gave; null is none. */
WEFT_API void weft_text_free(char* text);

/* ---- Context: the options of whatever is opened from it ---- */

typedef struct weft_context weft_context;

/* One option, by the names of `weft dump options`, of the command line and of JSON configs: {"threads", "4"},
 * {"ir-op-priority.rms_norm", "reference,cpu"}, {"enforce-eager", ""}, {"cc", "{\"splitting_ops\": []}"}. */
typedef struct weft_option {
  const char* key;
  const char* value; /* empty: true, of a flag */
} weft_option;

/* Of several options of one key the last wins. An unknown key, value, op, provider or pass is WEFT_USER_ERROR, with the
 * nearest known name. */
WEFT_API int weft_context_create(const weft_option* options, size_t option_count, weft_context** context,
                                 weft_error* error);
/* Null is none. */
WEFT_API void weft_context_destroy(weft_context* context);
/* What the program would have said about the options: a line for each that was changed, with the reason, and for each
 * that has no effect. */
WEFT_API int weft_context_notes(weft_context* context, char** text, weft_error* error);
/* A JSON object of all options with the values that count. */
WEFT_API int weft_context_options(weft_context* context, char** json, weft_error* error);

/* ---- Priorities: which providers compute an op, first choice first ---- */

/* Puts providers in front of an op's defaults, for as long as the context lives or until the next call for that op;
 * none (0) takes them away. For what is opened from then on. WEFT_USER_ERROR, with the nearest known name, for an op or
 * provider that there is not, and for one that is named twice. */
WEFT_API int weft_priority_set(weft_context* context, const char* op, const char* const* providers,
                               size_t provider_count, weft_error* error);

/* The same until weft_priority_pop, which puts back the list as it was here, whatever was set in between. Scopes belong
 * to the context, not to a thread, and end in reverse order: popping one that is not the newest is WEFT_USER_ERROR.
 * Threads that want lists of their own take contexts of their own. */
typedef uint64_t weft_priority_scope; /* never 0 */
WEFT_API int weft_priority_push(weft_context* context, const char* op, const char* const* providers,
                                size_t provider_count, weft_priority_scope* scope, weft_error* error);
WEFT_API int weft_priority_pop(weft_context* context, weft_priority_scope scope, weft_error* error);

/* The whole list of an op, defaults included, as "reference,cpu,native". */
WEFT_API int weft_priority_list(weft_context* context, const char* op, char** text, weft_error* error);

/* ---- Models ---- */

typedef struct weft_model weft_model;

/* Loads and compiles a GGUF file, a folder with config.json, or a built-in name such as "smollm2-135m", which is looked
 * for where the program does. Or loads an artifact of `weft compile`, whose model lies inside or beside it: the options
 * that its code depends on are then those that it was compiled with, and one that was asked for otherwise is
 * WEFT_USER_ERROR, as is an artifact of another build, device or model. It holds machine code, like a shared library.
 */
WEFT_API int weft_model_open(weft_context* context, const char* path_or_name, weft_model** model, weft_error* error);
/* Waits for a call that is running; null is none. WEFT_USER_ERROR, and still open, from within its own callback. */
WEFT_API int weft_model_close(weft_model* model, weft_error* error);

/* How the next token is drawn. `size` is sizeof(weft_sampling), so that members can be added at the end. */
typedef struct weft_sampling {
  size_t size;
  int64_t max_tokens;
  double temperature; /* 0: the most likely token */
  int64_t top_k;      /* 0 or -1: off */
  double top_p;       /* 1: off */
  double min_p;       /* 0: off */
  double repetition_penalty;
  double frequency_penalty;
  double presence_penalty;
  uint64_t seed;
  const char* const* stop; /* texts that end it, and are no part of the answer */
  size_t stop_count;
  int64_t ignore_end; /* not 0: end-of-text tokens do not end it */
} weft_sampling;

/* The defaults of the program for this model: 128 tokens, greedy, but for what the model's own generation config says.
 * `sampling->size` is set by the caller. */
WEFT_API int weft_model_sampling(weft_model* model, weft_sampling* sampling, weft_error* error);

/* Called for each new token with the text that became whole with it: `length` bytes and a zero; empty while a character
 * or what may become a stop text is not complete. Not 0 ends the completion. May use everything but its own model. A
 * C++ exception that leaves it ends the completion with WEFT_USER_ERROR. */
typedef int (*weft_token_function)(void* state, const char* text, size_t length, int32_t token);

enum {
  WEFT_FINISH_STOP = 1,    /* an end-of-text token or a stop text */
  WEFT_FINISH_LENGTH = 2,  /* max_tokens, or the end of the model's context */
  WEFT_FINISH_CALLBACK = 3 /* the callback ended it */
};

/* How a completion went. `size` is sizeof(weft_completion). */
typedef struct weft_completion {
  size_t size;
  int64_t finish;
  int64_t prompt_tokens;
  int64_t tokens; /* generated */
  double prompt_seconds;
  double generation_seconds;
} weft_completion;

/* Continues a text. Null for `sampling` takes weft_model_sampling; `completion` may be null. */
WEFT_API int weft_model_complete(weft_model* model, const char* prompt, const weft_sampling* sampling,
                                 weft_token_function on_token, void* state, weft_completion* completion,
                                 weft_error* error);

/* Who computes each node, op -> node -> provider, for each graph and range of token counts, as JSON:
 *   [{"graph": "forward", "range": [1, 512], "impls": {"rms_norm": {"rms_norm_0": "cpu"}, ...}}, ...]
 * Empty with enforce-eager, where nothing is compiled. */
WEFT_API int weft_model_selected_impls(weft_model* model, char** json, weft_error* error);

/* ---- Graphs ---- */

typedef struct weft_graph weft_graph;

/* A tensor in the caller's memory: element (i, j, ...) lies stride[0] * i + stride[1] * j + ... elements behind `data`,
 * which is aligned to one element. Strides are not negative. Block types (q4_1, ..) are row-major without gaps. */
#define WEFT_VIEW_RANK 8
typedef struct weft_tensor_view {
  void* data;        /* null where there is no element */
  const char* dtype; /* as graphs spell it: f32, bf16, i64, ... */
  int32_t rank;
  int64_t size[WEFT_VIEW_RANK];
  int64_t stride[WEFT_VIEW_RANK]; /* in elements */
} weft_tensor_view;

/* Compiles a text that holds one graph (docs/graph-text.md), as `weft graph run` does. */
WEFT_API int weft_graph_compile(weft_context* context, const char* text, weft_graph** graph, weft_error* error);
/* As weft_model_close. */
WEFT_API int weft_graph_close(weft_graph* graph, weft_error* error);
/* {"name": "g", "inputs": [{"name": "x", "type": "f32[s0, 6]"}, ...], "results": [...]} */
WEFT_API int weft_graph_describe(weft_graph* graph, char** json, weft_error* error);
/* Runs it. Inputs and results are in the order of the text, params among the inputs; all must be tensors. Results are
 * written into the caller's memory, which has the type and sizes of the result. Inputs are only read, but for those
 * that the graph gives away (donated, .maybe_inplace): their memory may be written over. After a failure the memory of
 * the results, and of what is given away, holds anything. */
WEFT_API int weft_graph_run(weft_graph* graph, const weft_tensor_view* inputs, size_t input_count,
                            const weft_tensor_view* results, size_t result_count, weft_error* error);
/* As weft_model_selected_impls, with one element. */
WEFT_API int weft_graph_selected_impls(weft_graph* graph, char** json, weft_error* error);

#ifdef __cplusplus
}
#endif

#endif
