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
 * examples/c_complete is a complete program. These rules apply to every function:
 *
 *   - A function that can fail returns a status (WEFT_SUCCESS is 0) and writes the reason to the weft_error given to
 *     that call, which may be null. The message is in the caller's memory, so no other call, thread or moved coroutine
 *     can overwrite it, and nothing has to be freed. No C++ exception leaves a function.
 *   - A function that fails changes nothing, and sets the handle or text that it would return to null.
 *   - Texts are zero-terminated UTF-8. The library copies an argument if it needs it after the call. A returned text
 *     (char**) belongs to the caller, who frees it with weft_text_free.
 *   - Any function may be called from any thread. Calls on one handle run one after another; calls on different handles
 *     do not wait for each other. Destroy a handle only when no other thread is in a call on it, waits for one or will
 *     begin one. Only weft_model_close and weft_graph_close may be called during a weft_model_complete or
 *     weft_graph_run of another thread: they wait for its end.
 *   - Handles do not depend on each other: a model or graph copies the options and priorities of its context when it
 *     is opened. Later changes of the context, including its end, do not affect it.
 *   - Nothing is printed except what options ask for (logs, print-ir-after). Warnings that the program prints are in
 *     weft_model_notes and weft_context_notes.
 *   - Models use a compile cache on disk, as the program does, and create its folder: `compile` in the folder of the
 *     option cache-root, else in WEFT_CACHE_ROOT, else in XDG_CACHE_HOME/weft, else in HOME/.cache/weft. The option
 *     {"disable-compile-cache", ""} turns it off. The variable WEFT_DISABLE_COMPILE_CACHE is not read.
 *   - The environment is read only for that folder, for the folder of a model that is given by name (WEFT_MODELS_ROOT,
 *     XDG_CACHE_HOME, HOME) and, with a GPU, for the libraries of CUDA (CUDA_HOME, XDG_CACHE_HOME, HOME, VIRTUAL_ENV).
 */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increases whenever anything in this file changes its layout or meaning. Additions do not increase it. The name of
 * libweft.so contains it: libweft.so.1. */
#define WEFT_ABI_VERSION 1u

#if defined(_WIN32)
#define WEFT_API
#else
#define WEFT_API __attribute__((visibility("default")))
#endif

/* The WEFT_ABI_VERSION of the library that is loaded. */
WEFT_API uint32_t weft_abi_version(void);
/* The version of the program, "0.1.0". The pointer is always valid. */
WEFT_API const char* weft_version(void);

/* ---- Errors ---- */

/* The exit statuses of the program `weft`. */
enum {
  WEFT_SUCCESS = 0,
  WEFT_USER_ERROR = 2,     /* the request, file, model or option is wrong */
  WEFT_INTERNAL_ERROR = 3, /* a bug in weft */
  WEFT_DEVICE_ERROR = 4    /* memory, a driver or the system failed */
};

/* Every call that is given one writes it. After success, status is WEFT_SUCCESS and text is empty. */
typedef struct weft_error {
  int32_t status;
  char text[2044]; /* the subject in brackets, what was wanted and what was found; a longer text is cut */
} weft_error;

/* Frees a text that a function returned. Null is allowed and does nothing. */
WEFT_API void weft_text_free(char* text);

/* ---- Context: the options of the models and graphs opened from it ---- */

typedef struct weft_context weft_context;

/* One option. Keys are those of `weft dump options`, the command line and JSON configs: {"threads", "4"},
 * {"ir-op-priority.rms_norm", "reference,cpu"}, {"enforce-eager", ""}, {"cc", "{\"splitting_ops\": []}"}. */
typedef struct weft_option {
  const char* key;
  const char* value; /* empty: true, for a flag */
} weft_option;

/* If several options have the same key, the last one applies. An unknown key, value, op, provider or pass is
 * WEFT_USER_ERROR, with the nearest known name. */
WEFT_API int weft_context_create(const weft_option* options, size_t option_count, weft_context** context,
                                 weft_error* error);
/* Null is allowed and does nothing. */
WEFT_API void weft_context_destroy(weft_context* context);
/* The notes that the program prints about the options: one line for each option that was changed, with the reason,
 * and one for each that has no effect. Warnings about graphs compiled with this context follow, for example that no
 * code can be generated. */
WEFT_API int weft_context_notes(weft_context* context, char** text, weft_error* error);
/* A JSON object of all options with their effective values. */
WEFT_API int weft_context_options(weft_context* context, char** json, weft_error* error);

/* ---- Priorities: which providers compute an op, first choice first ---- */

/* Puts providers before an op's defaults, until the next call for that op or the end of the context. No providers
 * (0) removes the list. It applies to models and graphs opened after this call. WEFT_USER_ERROR, with the nearest
 * known name, for an unknown op or provider, and for a provider that is named twice. */
WEFT_API int weft_priority_set(weft_context* context, const char* op, const char* const* providers,
                               size_t provider_count, weft_error* error);

/* The same until weft_priority_pop, which restores the list as it was before this call, whatever was set in between.
 * Scopes belong to the context, not to a thread, and end in reverse order: to pop a scope that is not the newest is
 * WEFT_USER_ERROR. Threads that need their own lists use their own contexts. */
typedef uint64_t weft_priority_scope; /* never 0 */
WEFT_API int weft_priority_push(weft_context* context, const char* op, const char* const* providers,
                                size_t provider_count, weft_priority_scope* scope, weft_error* error);
WEFT_API int weft_priority_pop(weft_context* context, weft_priority_scope scope, weft_error* error);

/* The whole list of an op, including defaults, as "reference,cpu,native". */
WEFT_API int weft_priority_list(weft_context* context, const char* op, char** text, weft_error* error);

/* ---- Models ---- */

typedef struct weft_model weft_model;

/* Loads and compiles a GGUF file, a folder with config.json, or a built-in name such as "smollm2-135m", whose file
 * is searched for in the same places as by the program. Or loads an artifact of `weft compile`, whose model is
 * inside it or next to it. Then the options that its code depends on are those it was compiled with. To request
 * another value for one of them is WEFT_USER_ERROR, and so is an artifact of another build, device or model. An
 * artifact contains machine code: trust it as you would a shared library. */
WEFT_API int weft_model_open(weft_context* context, const char* path_or_name, weft_model** model, weft_error* error);
/* Waits for a running call, then closes the model. Null is allowed and does nothing. From within the model's own
 * callback it is WEFT_USER_ERROR, and the model stays open. */
WEFT_API int weft_model_close(weft_model* model, weft_error* error);
/* The notes and warnings that the program prints about the model, one in a line: what was changed, left out or not
 * read, with the reason. Warnings follow, for example about the compile cache; a later call of the model may add some.
 * Notes about the context's options are in weft_context_notes. */
WEFT_API int weft_model_notes(weft_model* model, char** text, weft_error* error);

/* How the next token is sampled. `size` is sizeof(weft_sampling), so that members can be added at the end. */
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
  const char* const* stop; /* texts that end the completion; they are not part of the answer */
  size_t stop_count;
  int64_t ignore_end; /* not 0: end-of-text tokens do not end the completion */
} weft_sampling;

/* Returns the program's defaults for this model: 128 tokens, greedy, unless the model's own generation config says
 * otherwise. The caller sets `sampling->size` before the call. */
WEFT_API int weft_model_sampling(weft_model* model, weft_sampling* sampling, weft_error* error);

/* Called for each new token with the text that the token completes: `length` bytes and a zero. The text is empty
 * while a character, or a possible stop text, is incomplete. If WEFT_FINISH_STOP or WEFT_FINISH_LENGTH ends a
 * completion within a character, the text of the last token has U+FFFD for it. A return value other than 0 ends the
 * completion. The callback may call any function except those of its own model. A C++ exception that leaves it ends the
 * completion with WEFT_USER_ERROR. */
typedef int (*weft_token_function)(void* state, const char* text, size_t length, int32_t token);

enum {
  WEFT_FINISH_STOP = 1,    /* an end-of-text token or a stop text */
  WEFT_FINISH_LENGTH = 2,  /* max_tokens, or the end of the model's context */
  WEFT_FINISH_CALLBACK = 3 /* the callback ended it */
};

/* The outcome of a completion. `size` is sizeof(weft_completion); the caller sets it. */
typedef struct weft_completion {
  size_t size;
  int64_t finish;
  int64_t prompt_tokens;
  int64_t tokens; /* generated */
  double prompt_seconds;
  double generation_seconds;
} weft_completion;

/* Continues a text. If `sampling` is null, the values of weft_model_sampling are used. `on_token` must not be null;
 * `completion` may be. */
WEFT_API int weft_model_complete(weft_model* model, const char* prompt, const weft_sampling* sampling,
                                 weft_token_function on_token, void* state, weft_completion* completion,
                                 weft_error* error);

/* The provider of each node, op -> node -> provider, for each graph and range of token counts, as JSON:
 *   [{"graph": "forward", "range": [1, 512], "impls": {"rms_norm": {"rms_norm_0": "cpu"}, ...}}, ...]
 * Empty with enforce-eager, which compiles nothing. */
WEFT_API int weft_model_selected_impls(weft_model* model, char** json, weft_error* error);

/* ---- Graphs ---- */

typedef struct weft_graph weft_graph;

/* A tensor in the caller's memory: element (i, j, ...) is at `data` plus stride[0] * i + stride[1] * j + ...
 * elements. `data` is aligned to one element. Strides are not negative. Block types (q4_1, ..) are row-major without
 * gaps. */
#define WEFT_VIEW_RANK 8 /* the length of the arrays; `rank` itself is at most 6 */
typedef struct weft_tensor_view {
  void* data;        /* null if there is no element */
  const char* dtype; /* as in graph text: f32, bf16, i64, ... */
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
/* Runs the graph. Inputs and results are in the order of the text, with params among the inputs; all must be
 * tensors. Results are written into the caller's memory, whose views have the type and sizes of the results. The
 * memory of a result must not overlap that of another result, and its elements must not overlap each other: a stride of
 * 0 in a dim larger than 1 is WEFT_USER_ERROR. It may overlap inputs. Inputs are only read, except donated ones
 * (donated, .maybe_inplace): the graph may overwrite their memory. After a failure, the contents of the results' memory
 * and of donated inputs are undefined. */
WEFT_API int weft_graph_run(weft_graph* graph, const weft_tensor_view* inputs, size_t input_count,
                            const weft_tensor_view* results, size_t result_count, weft_error* error);
/* As weft_model_selected_impls, with one element. */
WEFT_API int weft_graph_selected_impls(weft_graph* graph, char** json, weft_error* error);

#ifdef __cplusplus
}
#endif

#endif
