/* Continues a text, in plain C over libweft.so:
 *
 *     make && ./complete smollm2-135m "The capital of France is" threads=2 ir-op-priority.rms_norm=reference,cpu
 *
 * The words behind the prompt are options, as `weft dump options` lists them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#define MOST_OPTIONS 16

static int show(void* state, const char* text, size_t length, int32_t token) {
  (void)state;
  (void)token;
  /* Not 0, which ends the completion, when nobody reads any more. */
  return fwrite(text, 1, length, stdout) != length || fflush(stdout) != 0;
}

/* Splits KEY=VALUE where they are joined; a KEY alone is a flag. */
static weft_option option_of(char* word) {
  weft_option option;
  char* equals = strchr(word, '=');
  if (equals != NULL) *equals = '\0';
  option.key = word;
  option.value = equals == NULL ? "" : equals + 1;
  return option;
}

static int complete(weft_model* model, const char* prompt, weft_error* error) {
  weft_sampling sampling;
  weft_completion completion;
  int status;
  sampling.size = sizeof sampling;
  completion.size = sizeof completion;
  status = weft_model_sampling(model, &sampling, error);
  if (status != WEFT_SUCCESS) return status;
  sampling.max_tokens = 32;
  status = weft_model_complete(model, prompt, &sampling, show, NULL, &completion, error);
  if (status != WEFT_SUCCESS) return status;
  printf("\n");
  fprintf(stderr, "%" PRId64 " tokens after a prompt of %" PRId64 "\n", completion.tokens, completion.prompt_tokens);
  return WEFT_SUCCESS;
}

int main(int argc, char** argv) {
  weft_option options[MOST_OPTIONS];
  size_t option_count = 0;
  weft_context* context = NULL;
  weft_model* model = NULL;
  weft_error error;
  int status;
  if (argc < 3 || argc - 3 > MOST_OPTIONS) {
    fprintf(stderr, "usage: %s MODEL PROMPT [OPTION=VALUE]...\n", argv[0]);
    return WEFT_USER_ERROR;
  }
  if (weft_abi_version() != WEFT_ABI_VERSION) {
    fprintf(stderr, "built for version %u of weft.h, but libweft.so is of version %u\n", WEFT_ABI_VERSION,
            weft_abi_version());
    return WEFT_USER_ERROR;
  }
  for (int i = 3; i < argc; ++i) options[option_count++] = option_of(argv[i]);
  status = weft_context_create(options, option_count, &context, &error);
  if (status == WEFT_SUCCESS) status = weft_model_open(context, argv[1], &model, &error);
  if (status == WEFT_SUCCESS) status = complete(model, argv[2], &error);
  if (status != WEFT_SUCCESS) fprintf(stderr, "%s\n", error.text);
  weft_model_close(model, NULL);
  weft_context_destroy(context);
  return status;
}
