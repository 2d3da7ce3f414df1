#include "io/lora_adapter.h"

#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/gguf.h"
#include "io/mlx_adapter.h"
#include "io/peft_config.h"
#include "io/pytorch_file.h"
#include "io/safetensors.h"
#include "io/weight_file.h"

namespace weft {
namespace {

constexpr const char* kConfigName = "adapter_config.json";
constexpr const char* kSafetensorsName = "adapter_model.safetensors";
constexpr const char* kPytorchName = "adapter_model.bin";
constexpr std::string_view kPeftPrefix = "base_model.model.";
// The base model's head, which PEFT stores with an adapter of the head.
constexpr std::string_view kCopyOfHead = ".lm_head.base_layer.weight";

struct StoredHalf {
  std::string name;
  Tensor tensor;
};

// The two tensors of a weight; undefined until they are found.
struct Halves {
  StoredHalf a, b;
};

// Collects the tensors of a file by the weight that they adapt, whose name is that of the tensor without one of two
// ends.
class HalvesReader {
 public:
  HalvesReader(const std::string& file, std::string_view end_of_a, std::string_view end_of_b)
      : file_(file), end_of_a_(end_of_a), end_of_b_(end_of_b) {}

  void take(StoredHalf tensor) {
    const Meta& meta = tensor.tensor.meta;
    const std::string name = tensor.name;
    if (name.ends_with(kCopyOfHead)) return;
    const bool is_a = name.ends_with(end_of_a_);
    USER_CHECK(is_a || name.ends_with(end_of_b_), "[{}] tensor {} {}: wanted pairs of *{} and *{} alone", file_, name,
               reason_against(name), end_of_a_, end_of_b_);
    USER_CHECK(meta.rank() == 2 && is_floating(meta.dtype) && dtype_info(meta.dtype).block_bytes > 1,
               "[{}] tensor {} must be a matrix of f32, f16 or bf16, but is {}", file_, name, meta.text());
    Halves& halves = halves_[name.substr(0, name.size() - (is_a ? end_of_a_ : end_of_b_).size())];
    (is_a ? halves.a : halves.b) = std::move(tensor);
  }

  // Calls visit(weight, pair) with each pair, whose `weight` and `scale` are not set.
  template <class Visit>
  void visit(const Visit& visit) const {
    USER_CHECK(!halves_.empty(), "[{}] has no tensors", file_);
    for (const auto& [weight, halves] : halves_) {
      for (const auto& [found, other, end] :
           {std::tuple(&halves.a, &halves.b, end_of_b_), std::tuple(&halves.b, &halves.a, end_of_a_)})
        USER_CHECK(!found->tensor.defined() || other->tensor.defined(), "[{}] has {}, but no {}{}", file_, found->name,
                   weight, end);
      USER_CHECK(halves.a.tensor.meta.shape[0] == halves.b.tensor.meta.shape[1],
                 "[{}] {} and {} must have one rank, the rows of the first and the columns of the second, but are {} "
                 "and {}",
                 file_, halves.a.name, halves.b.name, halves.a.tensor.meta.text(), halves.b.tensor.meta.text());
      visit(weight, LoraPair{.weight = {}, .tensors = halves.a.name, .a = halves.a.tensor, .b = halves.b.tensor});
    }
  }

 private:
  static std::string_view reason_against(std::string_view name) {
    const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    if (has("lora_embedding_") || has(".base_layer.")) return "adapts an embedding, which is not implemented";
    if (has("lora_magnitude_vector") || name.ends_with(".m")) return "belongs to DoRA, which is not implemented";
    if (has("lora_")) return "is not implemented";
    return "replaces a weight of the model, which is not implemented";
  }

  const std::string& file_;
  std::string_view end_of_a_, end_of_b_;
  std::map<std::string, Halves> halves_;  // sorted, so that the order of the file does not matter
};

// Of mlx-lm, whose names of modules are those of the model's folder.
LoraAdapter read_mlx_folder(const ModelFiles& files, const std::string& path, const std::string& text) {
  LoraAdapter adapter{.path = path, .file = files.path_of(kMlxAdapterName)};
  const MlxAdapterConfig config = read_mlx_adapter_config(text, files.path_of(kConfigName));
  const WeightFile mapped = weight_file(files.map(kMlxAdapterName));
  HalvesReader reader(adapter.file, ".lora_a", ".lora_b");
  for (auto& tensor : Safetensors::parse(mapped.bytes, adapter.file).tensors)
    reader.take(
        {tensor.name, transposed_matrix(tensor_in(mapped, tensor.dtype, tensor.shape, tensor.offset, tensor.bytes))});
  reader.visit([&](const std::string& module, LoraPair pair) {
    USER_CHECK(pair.rank() == config.rank, "[{}] {} must have the rank of {}, {}, but its transpose is {}",
               adapter.file, pair.tensors, kConfigName, config.rank, pair.a.meta.text());
    pair.weight = module + ".weight";
    pair.scale = config.scale;
    adapter.pairs.push_back(std::move(pair));
  });
  return adapter;
}

LoraAdapter read_folder(const std::string& path) {
  const ModelFiles files(path);
  LoraAdapter adapter{.path = path};
  const auto text = files.text(kConfigName);
  USER_CHECK(text, "[{}] wanted a folder of PEFT or mlx-lm with {}, but it has none", path, kConfigName);
  if (files.has(kMlxAdapterName)) return read_mlx_folder(files, path, *text);
  const PeftConfig config(*text, files.path_of(kConfigName));
  adapter.unknown_keys = config.unknown_keys();
  const bool is_safetensors = files.has(kSafetensorsName);
  const char* const name = is_safetensors ? kSafetensorsName : kPytorchName;
  USER_CHECK(files.has(name), "[{}] wanted {}, but there is none", path, kSafetensorsName);
  adapter.file = files.path_of(name);
  const WeightFile mapped = weight_file(files.map(name));
  HalvesReader reader(adapter.file, ".lora_A.weight", ".lora_B.weight");
  for (auto& tensor : is_safetensors ? Safetensors::parse(mapped.bytes, adapter.file).tensors
                                     : parse_pytorch_file(mapped.bytes, adapter.file))
    reader.take({tensor.name, tensor_in(mapped, tensor.dtype, tensor.shape, tensor.offset, tensor.bytes)});
  reader.visit([&](const std::string& stored, LoraPair pair) {
    USER_CHECK(stored.starts_with(kPeftPrefix), "[{}] tensor {} must begin with {}", adapter.file, pair.tensors,
               kPeftPrefix);
    const std::string module = stored.substr(kPeftPrefix.size());
    config.check_module(module);
    USER_CHECK(pair.rank() == config.rank_of(module), "[{}] {} must have the rank of {}, {}, but is {}", adapter.file,
               pair.tensors, kConfigName, config.rank_of(module), pair.a.meta.text());
    pair.weight = module + ".weight";
    pair.scale = config.scale_of(module);
    adapter.pairs.push_back(std::move(pair));
  });
  return adapter;
}

LoraAdapter read_gguf(const std::string& path) {
  const std::filesystem::path whole(path);
  const WeightFile mapped = weight_file(ModelFiles(whole.parent_path().string()).map(whole.filename().string()));
  const Gguf gguf = Gguf::parse(mapped.bytes, path);
  const auto is_text = [&](const char* key, std::string_view wanted) {
    const auto found = gguf.find_text(key);
    USER_CHECK(found == wanted, "[{}] {} must be {} in a LoRA adapter, but is {}", path, key, wanted,
               found ? quote(*found) : "missing");
  };
  is_text("general.type", "adapter");
  is_text("adapter.type", "lora");
  USER_CHECK(gguf.find("adapter.alora.invocation_tokens") == nullptr,
             "[{}] adapter.alora.invocation_tokens asks for an adapter that begins at a certain text, which is not "
             "implemented",
             path);
  LoraAdapter adapter{.path = path,
                      .file = path,
                      .format = CheckpointFormat::gguf,
                      .architecture = std::string(gguf.text("general.architecture"))};
  const double alpha = gguf.real("adapter.lora.alpha");
  HalvesReader reader(adapter.file, ".lora_a", ".lora_b");
  for (const GgufTensor& tensor : gguf.tensors())
    reader.take({std::string(tensor.name), tensor_in(mapped, tensor.dtype, tensor.shape, tensor.offset, tensor.bytes)});
  reader.visit([&](const std::string& weight, LoraPair pair) {
    pair.weight = weight;
    // llama.cpp takes an alpha of 0 for an adapter without a scale.
    pair.scale = alpha == 0 ? 1 : alpha / static_cast<double>(pair.rank());
    adapter.pairs.push_back(std::move(pair));
  });
  return adapter;
}

}  // namespace

LoraAdapter read_lora_adapter(const std::string& path) {
  const FileKind kind = file_status(path).kind;
  USER_CHECK(kind != FileKind::missing,
             "[{}] wanted a LoRA adapter, a folder of PEFT or a GGUF file, but there is nothing", path);
  return kind == FileKind::folder ? read_folder(path) : read_gguf(path);
}

}  // namespace weft
