/* A plugin that knows a platform rather than an op:
 *
 *   a default list    rms_norm and silu_and_mul run as their meaning in smaller ops (`native`), unless the user says
 *                     otherwise
 *   a pass            drop_unit_scale takes out `%y = mul_scalar(%x, value=1.0)`: whoever read %y reads %x
 *
 * A pass gets the graph as text and gives text back; docs/graph-text.md has the grammar. One definition stands on one
 * line, which is all that this pass needs to know.
 *
 *     make && weft plugin check ./libexample_platform.so
 */
#include <stdlib.h>
#include <string.h>
#include <weft/weft_plugin.h>

/* A text that grows. */
struct text {
  char* bytes;
  size_t size, capacity;
  int failed; /* there was no memory */
};

static void append(struct text* text, const char* bytes, size_t count) {
  if (text->size + count + 1 > text->capacity) {
    const size_t capacity = 2 * text->capacity + count + 1;
    char* larger = realloc(text->bytes, capacity);
    if (larger == NULL) {
      text->failed = 1;
      return;
    }
    text->bytes = larger;
    text->capacity = capacity;
  }
  memcpy(text->bytes + text->size, bytes, count);
  text->size += count;
  text->bytes[text->size] = '\0';
}

/* How many bytes of a %name begin at `at`, the % included. */
static size_t name_size(const char* at) {
  return 1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
}

/* Appends [from, from + size) with the name `old` replaced by `new_name` wherever it stands. */
static void append_renamed(struct text* text, const char* from, size_t size, const char* old, size_t old_size,
                           const char* new_name, size_t new_size) {
  const char* end = from + size;
  while (from < end) {
    const char* percent = memchr(from, '%', (size_t)(end - from));
    if (percent == NULL) percent = end;
    append(text, from, (size_t)(percent - from));
    if (percent == end) return;
    const size_t length = name_size(percent);
    if (length == old_size && memcmp(percent, old, length) == 0)
      append(text, new_name, new_size);
    else
      append(text, percent, length);
    from = percent + length;
  }
}

struct unit_scale {
  const char* line;
  size_t line_size; /* its newline included */
  const char* result;
  size_t result_size;
  const char* operand;
  size_t operand_size;
};

/* The first line `%y: TYPE = mul_scalar(%x, value=1.0)` of the graph; 0 when there is none. */
static int find_unit_scale(const char* graph, struct unit_scale* found) {
  static const char kCall[] = " = mul_scalar(%", kOne[] = ", value=1.0)";
  for (const char* line = graph; *line != '\0';) {
    const size_t size = strcspn(line, "\n");
    const char* call = strstr(line, kCall);
    if (call != NULL && call < line + size) {
      const char* operand = call + sizeof kCall - 2;
      const size_t operand_size = name_size(operand);
      const char* result = line + strspn(line, " ");
      if (strncmp(operand + operand_size, kOne, sizeof kOne - 1) == 0) {
        *found =
            (struct unit_scale){line, size + (line[size] == '\n'), result, name_size(result), operand, operand_size};
        return 1;
      }
    }
    line += size + (line[size] == '\n');
  }
  return 0;
}

static weft_status drop_unit_scale(const weft_host* host, const char* graph, weft_text* changed, void* state,
                                   weft_message* message) {
  (void)state;
  struct text now = {NULL, 0, 0, 0};
  struct unit_scale scale;
  const char* text = graph;
  while (!now.failed && find_unit_scale(text, &scale)) {
    struct text next = {NULL, 0, 0, 0};
    const char* behind = scale.line + scale.line_size;
    append(&next, text, (size_t)(scale.line - text));
    append_renamed(&next, behind, strlen(behind), scale.result, scale.result_size, scale.operand, scale.operand_size);
    free(now.bytes);
    now = next;
    text = now.bytes;
  }
  weft_status status = WEFT_OK;
  if (now.failed) {
    WEFT_SAY(message, "there is no memory for the text");
    status = WEFT_ERROR;
  } else if (text != graph) {
    status = host->set_text(changed, text);
  }
  free(now.bytes);
  return status;
}

static const weft_pass kDropUnitScale = {.name = "drop_unit_scale", .stage = "pure", .run = drop_unit_scale};

static weft_status bring(const weft_host* host, weft_registry* registry, weft_message* message) {
  static const char* const kNative[] = {"native"};
  if (host->add_priority(registry, "rms_norm", kNative, 1) != WEFT_OK ||
      host->add_priority(registry, "silu_and_mul", kNative, 1) != WEFT_OK ||
      host->add_pass(registry, &kDropUnitScale) != WEFT_OK) {
    WEFT_SAY(message, "could not be registered");
    return WEFT_ERROR;
  }
  return WEFT_OK;
}

const weft_plugin* weft_plugin_entry(void) {
  static const weft_plugin kPlugin = {
      .abi_version = WEFT_PLUGIN_ABI_VERSION, .name = "example_platform", .version = "1.0", .bring = bring};
  return &kPlugin;
}
