#pragma once

// The LoRA adapters of a model, as the graphs read them: for each adapted product a stack of A and one of B over the
// choices of a row. Choice 0 is that of rows whose request names no adapter: the sum of --lora and --lora-scaled, or
// zeros. The following ones are those of --lora-modules, in their order. Then there are spare choices, which are zeros
// until an adapter is loaded into them (adapter_slots.h).
//
// A GPU multiplies no stacks. There the choices are joined: the rows of A of all choices follow one another, and so do
// the columns of B; a mask has, for each choice, ones at its columns.
//
// Where weights are merged, the columns of B that belong to one of them are zeros in the rows of the others. Adapters
// of smaller rank, and weights that an adapter leaves alone, are zeros as well, so all rows share one pair of products.

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/weights/lora_reader.h"
#include "options/options.h"

namespace weft {

// An adapter that requests name.
struct NamedLora {
  std::string name, path;
};

// The adapters of --lora-modules, by their names. UserError if two have one name.
std::vector<NamedLora> named_loras(const Options& options);

// An adapter of all requests that name none.
struct ScaledLora {
  std::string path;
  double scale = 1;
};

// The adapters of --lora, and after them those of --lora-scaled.
std::vector<ScaledLora> scaled_loras(const Options& options);

// What does not change while the model is open. Any thread may call it.
class LoraStacks {
 public:
  // Reads the adapters that the options name. UserErrors of LoraReader. The model and the config must outlive it.
  LoraStacks(const Options& options, const ModelDefinition& model, const ModelConfig& config, DeviceType device);

  // Among how many choices a row has one: 0 without adapters, 1 if all rows have the same.
  std::int64_t choices() const { return choices_; }
  // How many of the last choices are spare.
  std::int64_t spare() const { return choices_ - static_cast<std::int64_t>(parts_.size()); }
  // Whether an adapter changes one of these weights, or may change it when it is loaded.
  bool adapts(const std::vector<std::string>& keys) const;
  // Of WeightRole::lora_a and lora_b: [rank, K] and [N, rank]; of several choices [choices, rank, K] and
  // [choices, N, rank], or joined [choices * rank, K] and [N, choices * rank]. Of lora_mask [choices, choices * rank].
  Meta meta(const std::vector<std::string>& keys, WeightRole role, DType dtype) const;
  // Whether the choices are a dim of their own. Otherwise whole() returns the tensor of all.
  bool is_stacked() const { return choices_ > 1 && !is_joined_; }
  Tensor whole(const std::vector<std::string>& keys, WeightRole role, DType dtype) const;
  // [rank, K] or [N, rank] of one choice that has these parts.
  Tensor of_choice(const std::vector<std::string>& keys, WeightRole role, DType dtype, const LoraParts& parts) const;

  // The parts of each choice that is not spare.
  const std::vector<LoraParts>& parts() const { return parts_; }
  const LoraReader& reader() const { return reader_; }
  // The sum of the adapters of choice 0 with other scales, in the order of scaled_loras().
  LoraParts scaled_parts(std::span<const double> scales) const;
  // UserError if a weight is adapted that is not among `read`: no linear layer multiplies by it.
  static void check_all_read(const LoraParts& parts, const std::set<std::string>& read);
  // The same for the adapters of the options.
  void check_all_read(const std::set<std::string>& read) const;
  // UserError if a weight has a higher rank than the stacks have room for.
  void check_ranks(const LoraParts& parts) const;
  // The adapters of the options, those of choice 0 first, and a sentence about each.
  const std::vector<LoraAdapter>& adapters() const { return adapters_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Matrix {
    std::int64_t rows = 0, columns = 0;
  };
  void read(const Options& options);
  void set_ranks();
  std::int64_t rank_in(const std::string& key) const;
  std::int64_t rank_of(const std::vector<std::string>& keys) const;

  LoraReader reader_;
  std::int64_t choices_ = 0;
  bool is_joined_ = false;
  std::map<std::string, Matrix> matrices_;     // of the model, by the checkpoint's names
  std::map<std::string, std::int64_t> ranks_;  // the room of one choice, by the same names
  std::vector<LoraParts> parts_;               // by choice
  std::vector<LoraParts> scaled_;              // of each adapter of choice 0, before its scale
  std::vector<LoraAdapter> adapters_;
  std::vector<std::string> notes_;
};

}  // namespace weft
