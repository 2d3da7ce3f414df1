#include "io/embedding_head.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/checkpoint.h"
#include "io/config_fields.h"
#include "io/feed_forward_config.h"
#include "io/quantized_weight.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tensor/reference_math.h"

namespace weft {
namespace {

constexpr const char* kDenseTensors[] = {"dense_2", "dense_3"};
constexpr const char *kFirstScore = "cls", *kScoreNorm = "cls.norm";

double activated(DenseActivation activation, double x) {
  switch (activation) {
    case DenseActivation::none:
      return x;
    case DenseActivation::tanh:
      return std::tanh(x);
    case DenseActivation::relu:
      return std::max(x, 0.0);
    case DenseActivation::gelu:
      return x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
  }
  return x;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void normalize(const DenseLayer& layer, std::vector<double>& y) {
  const auto count = static_cast<double>(y.size());
  const double mean = std::accumulate(y.begin(), y.end(), 0.0) / count;
  double squares = 0;
  for (const double number : y) squares += (number - mean) * (number - mean);
  const double factor = 1 / std::sqrt(squares / count + layer.norm_eps);
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = (y[i] - mean) * factor * double{layer.norm[i]} + (layer.norm_bias.empty() ? 0.0 : layer.norm_bias[i]);
}

// Each sum is made in order, in f64.
std::vector<float> after_layer(const DenseLayer& layer, const std::vector<float>& x) {
  std::vector<double> y;
  for (std::size_t row = 0; row < static_cast<std::size_t>(layer.outputs); ++row) {
    const auto weights = layer.weight.begin() + static_cast<std::ptrdiff_t>(row * x.size());
    const double sum = std::inner_product(x.begin(), x.end(), weights, layer.bias.empty() ? 0.0 : layer.bias[row],
                                          std::plus<>(), [](float a, float b) { return double{a} * double{b}; });
    y.push_back(activated(layer.activation, sum));
  }
  if (!layer.norm.empty()) normalize(layer, y);
  return {y.begin(), y.end()};
}

// Finds the tensors of layers, by their names without ".weight", and where messages say that they are.
struct Source {
  std::function<const Tensor*(const std::string& name)> find;
  std::string where;
};

Source source_of(const Checkpoint& checkpoint) {
  const auto find = [&checkpoint](const std::string& name) -> const Tensor* {
    const TensorEntry* entry = checkpoint.find(name);
    return entry == nullptr ? nullptr : &entry->tensor;
  };
  return {find, checkpoint.path()};
}

// The numbers of a tensor, which must have this shape. Empty if it is not there.
std::vector<float> numbers_of(const Source& source, const std::string& name, const Shape& shape) {
  const Tensor* tensor = source.find(name);
  if (tensor == nullptr) return {};
  const DType dtype = tensor->meta.dtype;
  USER_CHECK(tensor->meta.shape == shape && (is_floating(dtype) || is_block(dtype)),
             "[{}] {} must be float{}, but is {}", source.where, name, shape_text(shape), tensor->meta.text());
  std::vector<float> numbers(static_cast<std::size_t>(element_count(shape).number()));
  if (is_block(dtype)) {
    dequantize_row(dtype, tensor->data(), numbers.data(), std::ssize(numbers));
  } else {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = load_float(dtype, tensor->data(), static_cast<std::int64_t>(i));
  }
  return numbers;
}

// A layer that reads `inputs` numbers, with the bias that is there.
DenseLayer layer_of(const Source& source, const std::string& name, std::int64_t inputs) {
  const Tensor* weight = source.find(name + ".weight");
  USER_CHECK(weight != nullptr, "[{}] wanted {}.weight, but it is not there", source.where, name);
  USER_CHECK(weight->meta.rank() == 2 && weight->meta.shape[1] == Dim(inputs),
             "[{}] {}.weight must have rows of {} numbers, which it reads, but is {}", source.where, name, inputs,
             weight->meta.text());
  const std::int64_t outputs = weight->meta.shape[0].number();
  return {.inputs = inputs,
          .outputs = outputs,
          .weight = numbers_of(source, name + ".weight", weight->meta.shape),
          .bias = numbers_of(source, name + ".bias", {outputs})};
}

// Of a folder: config.json and model.safetensors of a Dense module.
DenseLayer layer_of_module(const Checkpoint& checkpoint, const SentenceModule& module, std::int64_t inputs) {
  const std::string file = module.path("model.safetensors");
  const Json config = config_of(checkpoint, module);
  const JsonFields fields(config, module.path("config.json"));
  const std::vector<TensorEntry> tensors = checkpoint.tensors_of_file(file);
  const auto find = [&](const std::string& name) -> const Tensor* {
    for (const TensorEntry& entry : tensors)
      if (entry.name == name) return &entry.tensor;
    return nullptr;
  };
  DenseLayer layer = layer_of({find, file}, "linear", inputs);
  const bool wants_bias = fields.find_boolean("bias").value_or(true);
  USER_CHECK(wants_bias != layer.bias.empty(), "[{}] bias is {}, but linear.bias is {}there", fields.where(),
             wants_bias, layer.bias.empty() ? "not " : "");
  const std::string activation = fields.find_text("activation_function").value_or("torch.nn.modules.activation.Tanh");
  USER_CHECK(activation.ends_with(".Tanh") || activation.ends_with(".Identity"),
             "[{}] activation_function must be Tanh or Identity of torch.nn, but is {}", fields.where(),
             quote(activation));
  if (activation.ends_with(".Tanh")) layer.activation = DenseActivation::tanh;
  return layer;
}

// A row of a weight, in f32.
std::vector<float> row_of(const Checkpoint& checkpoint, const ModelConfig& config, const std::string& weight,
                          std::int64_t row) {
  std::vector<float> numbers(static_cast<std::size_t>(config.hidden_size));
  if (const QuantizationConfig* codes = config.quantization ? config.quantization->of(weight) : nullptr) {
    weight_rows(checkpoint, *codes, weight).read(row, 1, reinterpret_cast<std::byte*>(numbers.data()));
    return numbers;
  }
  const Tensor& tensor = checkpoint.tensor(weight);
  const DType dtype = tensor.meta.dtype;
  USER_CHECK(is_floating(dtype) || is_block(dtype), "[{}] {} must have numbers or blocks of them, but is {}",
             checkpoint.path(), weight, tensor.meta.text());
  convert_row(dtype, tensor.data() + bytes_of(dtype, row * config.hidden_size), DType::f32,
              reinterpret_cast<std::byte*>(numbers.data()), config.hidden_size);
  return numbers;
}

// A row for each score, of the weight that makes logits.
DenseLayer layer_of_tokens(const Checkpoint& checkpoint, const ModelConfig& config, std::span<const TokenScore> scores,
                           const std::string& weight) {
  USER_CHECK(config.logit_softcap == 0 && !config.head_bias,
             "[{}] scores that are logits of tokens are not supported with a soft cap or a bias of logits",
             checkpoint.path());
  DenseLayer layer{.inputs = config.hidden_size, .outputs = std::ssize(scores)};
  const auto scale = static_cast<float>(config.logit_scale / config.logit_divisor);
  for (const TokenScore& score : scores) {
    std::vector<float> row = row_of(checkpoint, config, weight, score.token);
    if (score.less) {
      const std::vector<float> other = row_of(checkpoint, config, weight, *score.less);
      std::transform(row.begin(), row.end(), other.begin(), row.begin(), std::minus<>());
    }
    for (const float number : row) layer.weight.push_back(number * scale);
  }
  return layer;
}

// GGUF files of rerankers that generate text have the rows of the tokens yes and no: the score is the softmax of the
// first, which is the sigmoid of the difference.
void take_difference_of_rows(DenseLayer& layer) {
  const auto width = static_cast<std::ptrdiff_t>(layer.inputs);
  std::transform(layer.weight.begin(), layer.weight.begin() + width, layer.weight.begin() + width, layer.weight.begin(),
                 std::minus<>());
  layer.weight.resize(static_cast<std::size_t>(layer.inputs));
  if (!layer.bias.empty()) layer.bias = {layer.bias[0] - layer.bias[1]};
  layer.outputs = 1;
}

std::vector<DenseLayer> layers_of_scores(const Checkpoint& checkpoint, const ArchitectureFacts& facts,
                                         const ModelConfig& config) {
  static const std::vector<ScoreLayer> kOfDecoders{{"score"}};
  const std::vector<ScoreLayer>& wanted =
      facts.score_layers.empty() && config.is_causal ? kOfDecoders : facts.score_layers;
  const Source source = source_of(checkpoint);
  USER_CHECK(!wanted.empty(), "[{}] scores of texts are not supported in models of {}", checkpoint.path(),
             config.architecture);
  std::vector<DenseLayer> layers;
  std::int64_t width = config.hidden_size;
  for (const ScoreLayer& one : wanted) {
    const bool is_last = &one == &wanted.back();
    const std::string name = !checkpoint.is_gguf() ? std::string(one.module) : is_last ? kLastScoreLayer : kFirstScore;
    layers.push_back(layer_of(source, name, width));
    DenseLayer& layer = layers.back();
    layer.activation = one.activation;
    width = layer.outputs;
    if (one.norm.empty()) continue;
    const std::string norm = checkpoint.is_gguf() ? std::string(kScoreNorm) : std::string(one.norm);
    layer.norm = numbers_of(source, norm + ".weight", {width});
    layer.norm_bias = numbers_of(source, norm + ".bias", {width});
    layer.norm_eps = config.norm_eps;
    USER_CHECK(!layer.norm.empty(), "[{}] wanted {}.weight, but it is not there", source.where, norm);
  }
  if (checkpoint.is_gguf() && config.is_causal && width == 2) take_difference_of_rows(layers.back());
  return layers;
}

std::vector<DenseLayer> layers_of_embedding(const Checkpoint& checkpoint, const ModelConfig& config,
                                            std::span<const SentenceModule> modules) {
  std::vector<DenseLayer> layers;
  const auto width = [&] { return layers.empty() ? config.hidden_size : layers.back().outputs; };
  if (!checkpoint.is_gguf()) {
    for (const SentenceModule& module : modules)
      if (module.name == "Dense") layers.push_back(layer_of_module(checkpoint, module, width()));
    return layers;
  }
  const Source source = source_of(checkpoint);
  for (const std::string name : kDenseTensors)
    if (source.find(name + ".weight") != nullptr) layers.push_back(layer_of(source, name, width()));
  return layers;
}

// Numbers from 0 on are words of transformers for classes without names.
std::vector<std::string> labels_of(const Checkpoint& checkpoint, std::vector<std::string> stated, std::int64_t count) {
  if (stated.empty())
    for (std::int64_t i = 0; i < count; ++i) stated.push_back(fmt::format("LABEL_{}", i));
  USER_CHECK(std::ssize(stated) == count || count == 1, "[{}] the labels must be those of {} classes, but are {}",
             checkpoint.path(), count, stated.size());
  return stated;
}

void add_scores(const Checkpoint& checkpoint, const ArchitectureFacts& facts, const ModelConfig& config,
                std::span<const SentenceModule> modules, const LogitHead& logits, EmbeddingHead& head) {
  ScoreConfig scores = score_config_of(checkpoint, config, modules, logits.find_token);
  head.pooling = checkpoint.is_gguf() && facts.scores_mean_in_gguf ? Pooling::mean : scores.pooling;
  head.has_sigmoid = scores.has_sigmoid;
  head.classes = scores.classes;
  head.layers = scores.tokens.empty() ? layers_of_scores(checkpoint, facts, config)
                                      : std::vector{layer_of_tokens(checkpoint, config, scores.tokens, logits.weight)};
  head.labels = labels_of(checkpoint, std::move(scores.labels), head.layers.back().outputs);
  head.prompt = score_prompt_of(checkpoint, modules);
  // As vLLM joins texts whose score is made of logits.
  if (!head.prompt && !scores.tokens.empty())
    head.prompt = ScorePrompt{.source = "{query}{document}", .is_plain = true, .adds_special = true};
}

}  // namespace

bool is_of_embedding_head(std::string_view gguf_tensor) {
  const std::string_view module = gguf_tensor.substr(0, gguf_tensor.rfind('.'));
  if (module == kFirstScore || module == kLastScoreLayer || module == kScoreNorm) return true;
  return std::find(std::begin(kDenseTensors), std::end(kDenseTensors), module) != std::end(kDenseTensors);
}

EmbeddingHead embedding_head_of(const Checkpoint& checkpoint, const ArchitectureFacts& facts, const ModelConfig& config,
                                const LogitHead& logits) {
  EmbeddingHead head{.width = config.hidden_size};
  if (checkpoint.is_dummy()) return head;
  const std::vector<SentenceModule> modules = modules_of(checkpoint);
  head.scores = scores_texts(checkpoint, config, modules);
  if (head.scores) {
    add_scores(checkpoint, facts, config, modules, logits, head);
  } else {
    head.pooling = pooling_of(checkpoint, modules);
    head.layers = layers_of_embedding(checkpoint, config, modules);
  }
  if (!head.layers.empty()) head.width = head.layers.back().outputs;
  return head;
}

std::vector<float> finished_embedding(const EmbeddingHead& head, std::vector<float> pooled,
                                      std::optional<std::int64_t> dimensions, bool normalizes) {
  for (const DenseLayer& layer : head.layers) pooled = after_layer(layer, pooled);
  if (dimensions) pooled.resize(static_cast<std::size_t>(*dimensions));
  double squares = 0;
  for (const float number : pooled) squares += double{number} * double{number};
  if (!normalizes || squares == 0) return pooled;
  const double factor = 1 / std::sqrt(squares);
  for (float& number : pooled) number = static_cast<float>(number * factor);
  return pooled;
}

double finished_score(const EmbeddingHead& head, std::vector<float> pooled, bool activates) {
  const std::vector<float> numbers = finished_embedding(head, std::move(pooled), std::nullopt, false);
  CHECK(numbers.size() == 1, "a head of {} numbers has no one score", numbers.size());
  return head.has_sigmoid && activates ? sigmoid(numbers[0]) : double{numbers[0]};
}

std::vector<double> finished_classes(const EmbeddingHead& head, std::vector<float> pooled, bool activates) {
  const std::vector<float> numbers = finished_embedding(head, std::move(pooled), std::nullopt, false);
  std::vector<double> classes(numbers.begin(), numbers.end());
  if (!activates || head.classes == ClassActivation::none) return classes;
  if (head.classes == ClassActivation::sigmoid || classes.size() == 1) {
    std::transform(classes.begin(), classes.end(), classes.begin(), sigmoid);
    return classes;
  }
  const double largest = *std::max_element(classes.begin(), classes.end());
  for (double& number : classes) number = std::exp(number - largest);
  const double sum = std::accumulate(classes.begin(), classes.end(), 0.0);
  for (double& number : classes) number /= sum;
  return classes;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * double{b[i]};
    of_a += double{a[i]} * double{a[i]};
    of_b += double{b[i]} * double{b[i]};
  }
  return of_a == 0 || of_b == 0 ? 0 : product / std::sqrt(of_a * of_b);
}

Json embedding_json(std::span<const float> embedding) {
  Json numbers = Json::array();
  for (const float number : embedding) {
    char digits[32];
    double shortest = number;
    std::from_chars(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr, shortest);
    numbers.push_back(shortest);
  }
  return numbers;
}

}  // namespace weft
