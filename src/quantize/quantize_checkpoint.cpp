#include "quantize/quantize_checkpoint.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "base/error.h"
#include "io/config_fields.h"
#include "io/quantization_config.h"
#include "io/quantized_weight.h"
#include "io/safetensors_writer.h"
#include "io/scaled_blocks.h"
#include "models/unread_tensors.h"
#include "quantize/folder_tensors.h"
#include "quantize/hugging_face_files.h"
#include "quantize/output_folder.h"
#include "quantize/weight_codes.h"
#include "quantize/weight_layouts.h"
#include "tensor/convert.h"
#include "tensor/quant_key.h"

namespace weft {
namespace {

Tensor part_of(const Tensor& stack, std::int64_t part) {
  const Meta meta = Meta::tensor(stack.meta.dtype, Shape(stack.meta.shape.begin() + 1, stack.meta.shape.end()));
  return {meta, stack.storage, stack.byte_offset + part * meta.bytes().number()};
}

Tensor converted(const Tensor& tensor, DType dtype) {
  Tensor result = Tensor::empty(Meta::tensor(dtype, tensor.meta.shape));
  const std::int64_t width = tensor.meta.shape.back().number();
  const std::int64_t rows = element_count(tensor.meta.shape).number() / width;
  for (std::int64_t row = 0; row < rows; ++row)
    convert_row(tensor.meta.dtype, tensor.data() + row * bytes_of(tensor.meta.dtype, width), dtype,
                result.data() + row * bytes_of(dtype, width), width);
  return result;
}

// UserError if the format cannot represent the weight. The block height must divide the number of rows, so that the
// rows can be merged with those of other weights. The block width must divide the number of columns, because column
// blocks are the groups of the inputs.
void check_divides(const FolderTensor& source, const QuantizeRecipe& recipe) {
  const BlockShape& block = recipe.block;
  if (recipe.format == NumberFormat::fp8_block)
    USER_CHECK(source.shape[0] % block.rows == 0 && source.shape[1] % block.columns == 0,
               "[--block] {}x{} must divide the weights of all linear layers, but {} is {}x{}", block.rows,
               block.columns, source.key(), source.shape[0], source.shape[1]);
  if (recipe.format == NumberFormat::nvfp4)
    USER_CHECK(source.shape[1] % kNvfp4Group == 0, "[--format] nvfp4 wants rows of whole blocks of {}, but {} is {}x{}",
               kNvfp4Group, source.key(), source.shape[0], source.shape[1]);
  if (recipe.format == NumberFormat::w4a16)
    USER_CHECK(source.shape[1] % block.columns == 0,
               "[--group-size] {} must divide the rows of all linear layers, but {} is {}x{}", block.columns,
               source.key(), source.shape[0], source.shape[1]);
}

class Quantizer {
 public:
  Quantizer(const Checkpoint& checkpoint, const ModelConfig& model, const QuantizeRecipe& recipe, ThreadPool& threads)
      : checkpoint_(checkpoint), config_(model), recipe_(recipe), threads_(threads) {
    for (const LinearInput& input : recipe.inputs)
      for (const std::string& weight : input.weights) inputs_[weight] = &input;
    if (recipe.format == NumberFormat::bf16) return;
    const Json config = {
        {"quantization_config", quantization_json(recipe.format, recipe.block, !recipe.inputs.empty(), {})}};
    written_ = quantization_from_json(JsonFields(config, "quantization_config"));
  }

  // Returns the tensors that represent the weight in the folder.
  std::vector<NamedTensor> tensors_of(const FolderTensor& source) {
    if (!is_quantized(source)) {
      const Tensor plain = source.becomes_transposed ? transpose_of(numbers(source)) : numbers(source);
      return {{source.name, converted(plain, DType::bf16)}};
    }
    using enum NumberFormat;
    const QuantizedNames names = quantized_names(*written_, source.name);
    const Tensor weight = numbers(source);
    const float magnitude = largest_magnitude(weight, source.key(), threads_);
    if (recipe_.format == nvfp4) return nvfp4_tensors(source, names, weight);
    if (recipe_.format == w4a16) return int4_tensors(names, weight);
    std::int64_t rows = 1, columns = weight.meta.shape[1].number();
    if (recipe_.format == fp8_block) {
      rows = recipe_.block.rows;
      columns = recipe_.block.columns;
    } else if (recipe_.format == fp8) {
      rows = weight.meta.shape[0].number();
    }
    CodesAndScales result =
        quantize_blocks(weight, recipe_.format == int8 ? DType::i8 : DType::f8e4m3, rows, columns, threads_);
    if (recipe_.format == fp8) result.scales = number(fp8_scale(magnitude));
    std::vector<NamedTensor> tensors{{names.codes, result.codes}, {names.scale, result.scales}};
    if (!names.input_scale.empty()) tensors.push_back({names.input_scale, number(fp8_scale(input_magnitude(source)))});
    return tensors;
  }

  bool is_quantized(const FolderTensor& source) const {
    return source.is_linear && recipe_.format != NumberFormat::bf16;
  }

 private:
  static Tensor number(float value) { return Tensor::from_bytes(Meta::tensor(DType::f32, {1}), &value); }

  Tensor stored(const std::string& key) const {
    return factors_of_blocks(checkpoint_, key).empty() ? checkpoint_.tensor(key) : scaled_blocks(checkpoint_, key);
  }

  Tensor stored(const FolderTensor& source) const {
    if (source.keys.size() == 1)
      return source.part ? part_of(stored(source.key()), *source.part) : stored(source.key());
    std::vector<Tensor> parts;
    for (const std::string& key : source.keys) parts.push_back(converted(stored(key), DType::f32));
    if (source.join == RowJoin::latents) return joined_latents(parts[0], parts[1]);
    return source.join == RowJoin::by_key_head ? joined_by_key_head(parts[0], parts[1], *config_.recurrent)
                                               : joined_rows(parts);
  }

  // Returns the weight in f32 as the checkpoint has it, but for matrices that it stores transposed.
  Tensor stored_numbers(const FolderTensor& source) const {
    const QuantizationConfig* own = config_.quantization ? config_.quantization->of(source.key()) : nullptr;
    const bool has_codes = own != nullptr && (source.is_linear || source.shape.size() == 2);  // or is the head
    const Tensor tensor =
        has_codes ? dequantized_weight(checkpoint_, *own, source.key()) : converted(stored(source), DType::f32);
    return source.is_transposed && !has_codes ? transpose_of(tensor) : tensor;
  }

  // The same with the order of rows, the values and the shape of Hugging Face.
  Tensor numbers(const FolderTensor& source) const {
    Tensor tensor = stored_numbers(source);
    if (source.rotated_heads > 0)
      tensor = halves_from_neighbours(tensor, source.rotated_heads, config_.rope.rotary_dim);
    if (source.is_grouped) tensor = grouped_by_key_head(tensor, config_);
    if (source.tiled_heads) tensor = untiled(tensor, *source.tiled_heads, *config_.recurrent);
    const std::int64_t count = element_count(tensor.meta.shape).number();
    for (std::int64_t i = 0; source.is_less_one && i < count; ++i) tensor.as<float>()[i] -= 1;
    if (source.is_logarithm) take_logarithms(tensor, source.key());
    const Shape shape(source.shape.begin(), source.shape.end());
    USER_CHECK(element_count(shape).number() == count,
               "[{}] tensor {} is {}, but a folder has {} of {}: wanted the folder that it was made from",
               checkpoint_.path(), source.key(), tensor.meta.text(), source.name, shape_text(shape));
    return with_shape(tensor, source.shape);
  }

  void take_logarithms(Tensor& tensor, const std::string& key) const {
    for (std::int64_t i = 0; i < element_count(tensor.meta.shape).number(); ++i) {
      float& value = tensor.as<float>()[i];
      USER_CHECK(value < 0, "[{}] tensor {} must hold numbers below 0, but has {}", checkpoint_.path(), key, value);
      value = std::log(-value);
    }
  }

  // The input of each of the weights that the tensor is made of. Latents are the input of keys, but not of values
  // alone.
  std::vector<const LinearInput*> inputs_of(const FolderTensor& source) const {
    std::vector<const LinearInput*> inputs;
    for (const std::string& key : source.keys) {
      if (source.join == RowJoin::latents && key != source.key()) continue;
      const auto found = inputs_.find(key);
      USER_CHECK(found != inputs_.end(), "[{}] wanted the inputs of {} for --format {}, but nothing was seen of them",
                 checkpoint_.path(), key, number_format_text(recipe_.format));
      inputs.push_back(found->second);
    }
    return inputs;
  }

  float input_magnitude(const FolderTensor& source) const {
    float most = 0;
    for (const LinearInput* input : inputs_of(source)) most = std::max(most, input->magnitude);
    return most;
  }

  std::vector<NamedTensor> nvfp4_tensors(const FolderTensor& source, const QuantizedNames& names,
                                         const Tensor& weight) {
    float magnitude = 0;
    for (const LinearInput* input : inputs_of(source)) magnitude = std::max(magnitude, shared_magnitude(*input));
    const float global_scale = nvfp4_global_scale(magnitude);
    CodesAndScales result = quantize_nvfp4(weight, global_scale, threads_);
    return {{names.codes, result.codes},
            {names.scale, result.scales},
            {names.global_scale, number(global_scale)},
            {names.input_scale, number(nvfp4_global_scale(input_magnitude(source)))}};
  }

  std::vector<NamedTensor> int4_tensors(const QuantizedNames& names, const Tensor& weight) {
    CodesAndScales result = quantize_int4(weight, recipe_.block.columns, threads_);
    const std::int64_t shape[] = {weight.meta.shape[0].number(), weight.meta.shape[1].number()};
    return {{names.codes, result.codes},
            {names.scale, result.scales},
            {names.shape, Tensor::from_bytes(Meta::tensor(DType::i64, {2}), shape)}};
  }

  // Returns the largest magnitude of all weights that share this input. They are merged into one weight, which has one
  // global scale.
  float shared_magnitude(const LinearInput& input) {
    const auto known = magnitudes_.find(&input);
    if (known != magnitudes_.end()) return known->second;
    float most = 0;
    for (const std::string& key : input.weights) {
      FolderTensor source;
      source.keys = {key};
      source.is_linear = true;
      most = std::max(most, largest_magnitude(stored_numbers(source), key, threads_));
    }
    return magnitudes_[&input] = most;
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const QuantizeRecipe& recipe_;
  ThreadPool& threads_;
  std::optional<QuantizationConfig> written_;  // as a reader of the folder parses it; none for bf16
  std::map<std::string, const LinearInput*> inputs_;
  std::map<const LinearInput*, float> magnitudes_;
};

// Distributes the weights over the files.
std::vector<std::vector<FolderTensor>> shared_out(std::vector<FolderTensor> sources, std::int64_t file_bytes) {
  std::vector<std::vector<FolderTensor>> files(1);
  std::int64_t bytes = 0;
  for (FolderTensor& source : sources) {
    const std::int64_t own =
        Meta::tensor(DType::bf16, Shape(source.shape.begin(), source.shape.end())).bytes().number();
    if (bytes > 0 && bytes + own > file_bytes) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += own;
    files.back().push_back(std::move(source));
  }
  return files;
}

std::string file_name(std::size_t index, std::size_t count) {
  return count == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

constexpr const char* kIndex = "model.safetensors.index.json";

// Stacks of gate and up, and experts in blocks, are not made into the tensors of a folder.
void check_source(const Checkpoint& checkpoint, const ModelConfig& config, const ArchitectureFacts& facts) {
  const bool is_folder = config.format == CheckpointFormat::hugging_face;
  const bool has_folder_of_experts = facts.experts && !facts.experts->count.empty() &&
                                     !facts.experts->is_merged_in_folders &&
                                     !(config.experts && config.experts->is_merged);
  USER_CHECK(is_folder || !config.experts || has_folder_of_experts,
             "[{}] has {} experts: wanted the folder that it was made from", checkpoint.path(), config.expert_count);
  USER_CHECK(!config.experts || !config.experts->has_stacks_of_modules(),
             "[{}] has experts in stacks of gate and up: wanted a folder with a tensor for each expert",
             checkpoint.path());
  const bool has_own_stacks =
      is_folder && ((config.experts && facts.experts->is_merged_in_folders && !config.experts->is_merged) ||
                    (config.latents && !config.latents->is_joined));
  USER_CHECK(!has_own_stacks, "[{}] has tensors in mlx-lm's way: wanted the folder that it was made from",
             checkpoint.path());
  USER_CHECK(!config.quantization || config.quantization->scheme != QuantizationScheme::mxfp4,
             "[{}] has experts in MXFP4: wanted the folder with experts in plain numbers", checkpoint.path());
}

std::string index_json(const std::map<std::string, std::string>& file_of, std::int64_t bytes) {
  return json_text(Json{{"metadata", {{"total_size", bytes}}}, {"weight_map", file_of}}, 2) + "\n";
}

}  // namespace

QuantizeSummary quantize_checkpoint(const Checkpoint& checkpoint, const ModelDefinition& model,
                                    const QuantizeRecipe& recipe, const std::string& folder, ThreadPool& threads) {
  const ModelConfig config = checkpoint.config(model.facts);
  if (model.check) model.check(config);
  model.check_weights(checkpoint, config);
  check_source(checkpoint, config, model.facts);
  QuantizeSummary summary;
  const UnreadTensors unread = unread_tensors(checkpoint, model, config);
  const std::string warning = check_unread_tensors(unread.names, checkpoint.path(), recipe.ignores_unread_tensors);
  summary.notes = checkpoint.notes();
  for (const auto* sentences : {&unread.harmless, &unread.said})
    summary.notes.insert(summary.notes.end(), sentences->begin(), sentences->end());
  if (!warning.empty()) summary.notes.push_back(warning);
  USER_CHECK(
      !config.sliding_window || model.facts.window,
      "[{}] has a sliding window of {}, which config.json cannot express for {}; wanted the folder it was made from",
      checkpoint.path(), *config.sliding_window, config.architecture);
  const Json sample = parse_json(model.sample_config);
  // The folder is what a reader of its config.json takes it for.
  const ModelConfig written =
      checkpoint.is_gguf()
          ? model_config_from_json(config_json(checkpoint, config, model.facts, sample, nullptr), folder, model.facts)
          : config;
  std::vector<FolderTensor> sources = folder_tensors(checkpoint, model, config, written);
  std::string head(model.facts.head);
  for (const FolderTensor& source : sources) {
    if (source.is_linear) check_divides(source, recipe);
    if (source.is_head && source.name.ends_with(".weight")) head = source.name.substr(0, source.name.rfind('.'));
  }
  const std::vector<std::vector<FolderTensor>> files = shared_out(std::move(sources), recipe.file_bytes);
  OutputFolder output(folder);
  const Json quantization = quantization_json(recipe.format, recipe.block, !recipe.inputs.empty(), {head});
  const std::string json = config_json(checkpoint, config, model.facts, sample, quantization);
  const std::map<std::string, std::string> texts = text_files(checkpoint, config);

  Quantizer quantizer(checkpoint, config, recipe, threads);
  std::map<std::string, std::string> file_of;
  // The small files are first, so that another run with the same folder, which may start meanwhile, finds it in use.
  for (const auto& [name, text] : texts) output.write(name, text);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name = file_name(i, files.size());
    std::vector<NamedTensor> tensors;
    for (const FolderTensor& source : files[i]) {
      ++(quantizer.is_quantized(source) ? summary.quantized : summary.others);
      for (NamedTensor& tensor : quantizer.tensors_of(source)) {
        file_of[tensor.name] = name;
        summary.bytes += tensor.tensor.meta.bytes().number();
        tensors.push_back(std::move(tensor));
      }
    }
    output.write(name, encode_safetensors(tensors, {{"format", "pt"}}));
    summary.files.push_back(name);
  }
  if (files.size() > 1) output.write(kIndex, index_json(file_of, summary.bytes));
  output.write("config.json", json);
  output.keep();
  return summary;
}

}  // namespace weft
