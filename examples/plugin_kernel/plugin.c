/* A plugin in plain C with two kernels, both called `example`:
 *
 *   rms_norm            of weft's own, for f32
 *   example_soft_cap    an op that weft does not know: y = cap * tanh(x / cap), with its shape rule and a sample
 *
 *     make && weft plugin check ./libexample_kernel.so
 *     weft complete MODEL -p "Hi" --plugin ./libexample_kernel.so --ir-op-priority.rms_norm=example
 */
#include <math.h>
#include <weft/weft_plugin.h>

/* ---- rms_norm(x, weight) = x / sqrt(mean(x * x) + epsilon) * weight, a row at a time ---- */

static weft_status supports_rms_norm(const weft_request* request, void* state, weft_message* message) {
  (void)state;
  const weft_type* x = &request->operands[0];
  const weft_type* weight = &request->operands[1];
  int64_t variance_size = 0;
  if (x->dtype != WEFT_F32 || (weight->kind != WEFT_ABSENT && weight->dtype != WEFT_F32)) {
    WEFT_SAY(message, "is for f32, not for %s and %s", x->text, weight->text);
    return WEFT_REFUSED;
  }
  if (request->host->attribute_integer(request->attributes, "variance_size", &variance_size) != WEFT_NONE) {
    WEFT_SAY(message, "takes the mean over whole rows alone");
    return WEFT_REFUSED;
  }
  return WEFT_OK;
}

struct rms_norm {
  const float* x;
  const float* weight; /* null: none */
  float* y;
  int64_t columns;
  float epsilon;
};

/* weft's own row sum (src/tensor/reference_math.h): 64 strided partial sums and a fixed tree. A kernel may sum in another
 * order; in this one it gives the same bits as every other provider. */
static float mean_of_squares(const float* x, int64_t count) {
  float partial[64] = {0};
  for (int64_t i = 0; i < count; ++i) partial[i % 64] += x[i] * x[i];
  for (int width = 32; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) partial[i] += partial[i + width];
  return partial[0] / (float)count;
}

static weft_status rms_norm_row(void* context, int64_t row, int32_t thread) {
  (void)thread;
  const struct rms_norm* task = context;
  const float* x = task->x + row * task->columns;
  float* y = task->y + row * task->columns;
  const float scale = 1.0f / sqrtf(mean_of_squares(x, task->columns) + task->epsilon);
  for (int64_t i = 0; i < task->columns; ++i) {
    const float normal = x[i] * scale;
    y[i] = task->weight == NULL ? normal : normal * task->weight[i];
  }
  return WEFT_OK;
}

static int64_t rows_of(const weft_tensor* tensor) {
  int64_t rows = 1;
  for (int32_t i = 0; i + 1 < tensor->rank; ++i) rows *= tensor->size[i];
  return rows;
}

static weft_status run_rms_norm(const weft_call* call, void* state, weft_message* message) {
  (void)state;
  const weft_tensor* x = &call->operands[0];
  double epsilon = 0;
  struct rms_norm task = {
      .x = x->data, .weight = call->operands[1].data, .y = call->results[0].data, .columns = x->size[x->rank - 1]};
  if (call->host->attribute_real(call->attributes, "epsilon", &epsilon) != WEFT_OK) {
    WEFT_SAY(message, "epsilon is missing");
    return WEFT_ERROR;
  }
  task.epsilon = (float)epsilon;
  return call->host->parallel(call->threads, rows_of(x), rms_norm_row, &task);
}

static const weft_kernel kRmsNorm = {
    .op = "rms_norm",
    .provider = "example",
    .schema = "rms_norm(Tensor x, Tensor? weight, float epsilon, int? variance_size=None) -> Tensor",
    .note = "plain C, a row at a time",
    .flags = WEFT_BATCH_INVARIANT | WEFT_MAY_BE_CAPTURED,
    .supports = supports_rms_norm,
    .run = run_rms_norm,
};

/* ---- example_soft_cap ---- */

#define SOFT_CAP_SCHEMA "example_soft_cap(Tensor x, float cap=30.0) -> Tensor"

static weft_status infer_soft_cap(const weft_request* request, weft_results* results, void* state,
                                  weft_message* message) {
  (void)state;
  if (request->operands[0].kind != WEFT_TENSOR || request->operands[0].dtype != WEFT_F32) {
    WEFT_SAY(message, "x must be f32, but is %s", request->operands[0].text);
    return WEFT_ERROR;
  }
  return request->host->result_like(results, 0, 0);
}

static weft_status run_soft_cap(const weft_call* call, void* state, weft_message* message) {
  (void)state;
  const weft_tensor* x = &call->operands[0];
  const float* from = x->data;
  float* to = call->results[0].data;
  double cap = 0;
  if (call->host->attribute_real(call->attributes, "cap", &cap) != WEFT_OK || !(cap > 0)) {
    WEFT_SAY(message, "cap must be above 0, but is %g", cap);
    return WEFT_ERROR;
  }
  const int64_t count = rows_of(x) * (x->rank == 0 ? 1 : x->size[x->rank - 1]);
  for (int64_t i = 0; i < count; ++i) to[i] = (float)(cap * tanh(from[i] / cap));
  return WEFT_OK;
}

static const weft_sample_tensor kSoftCapTensors[] = {
    {.name = "x", .dtype = WEFT_F32, .rank = 2, .size = {5, 48}, .fill = WEFT_FILL_NORMAL}};
static const weft_sample kSoftCapSamples[] = {{.tensors = kSoftCapTensors, .tensor_count = 1, .attributes = NULL},
                                              {.tensors = kSoftCapTensors, .tensor_count = 1, .attributes = "cap=0.5"}};

static const weft_op kSoftCap = {
    .schema = SOFT_CAP_SCHEMA,
    .infer = infer_soft_cap,
    .samples = kSoftCapSamples,
    .sample_count = 2,
};

static const weft_kernel kSoftCapKernel = {
    .op = "example_soft_cap",
    .provider = "example",
    .schema = SOFT_CAP_SCHEMA,
    .note = "plain C",
    .flags = WEFT_BATCH_INVARIANT,
    .run = run_soft_cap,
};

/* ---- What the library exports ---- */

static weft_status bring(const weft_host* host, weft_registry* registry, weft_message* message) {
  if (host->add_op(registry, &kSoftCap) != WEFT_OK || host->add_kernel(registry, &kSoftCapKernel) != WEFT_OK ||
      host->add_kernel(registry, &kRmsNorm) != WEFT_OK) {
    WEFT_SAY(message, "could not be registered");
    return WEFT_ERROR;
  }
  return WEFT_OK;
}

const weft_plugin* weft_plugin_entry(void) {
  static const weft_plugin kPlugin = {
      .abi_version = WEFT_PLUGIN_ABI_VERSION, .name = "example_kernel", .version = "1.0", .bring = bring};
  return &kPlugin;
}
