#pragma once

// The weights of a model in the form that its kernels read: the rows of merged weights are concatenated, those of
// experts are stacked, weights are packed for the device's kernels, and all are in one mapping in the order of
// execution. Each weight is loaded once, unless forget() released it; pages of the file that were packed are dropped.
// The weights of a dummy checkpoint are zeros, packed or not, and take no memory. The libraries of a GPU multiply
// matrices of one dtype. There all weights of linear layers are converted to the model's dtype, blocks too; codes are
// kept only where the GPU has a product for them and their scales.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/weights/adapter_stack.h"
#include "engine/weights/code_products.h"
#include "engine/weights/lora_stacks.h"

namespace weft {

struct TracedParam;
struct WeightRows;

class Weights {
 public:
  // `own`: the names of all tensors that the model's weights have. `adapters` may be null.
  Weights(const Context& context, Checkpoint checkpoint, const ModelFacts& facts,
          const std::vector<std::string>& own = {}, std::shared_ptr<const LoraStacks> adapters = nullptr);

  // The type of a loaded weight, by its role (nn/builder.h). UserError when a tensor is missing or has another width
  // than the others.
  Meta meta(const std::vector<std::string>& keys, WeightRole role) const;
  // The bytes of a loaded weight, which need not be loaded. UserErrors as of meta().
  std::int64_t bytes(const std::vector<std::string>& keys, WeightRole role) const;
  // Loads the tensor at the first call and returns it.
  Tensor tensor(const std::vector<std::string>& keys, WeightRole role);
  // The loaded stack of WeightRole::lora_a or lora_b, where the choices are a dim of their own. Loads it, if it is not.
  AdapterStack adapter_stack(const std::vector<std::string>& keys, WeightRole role);
  const LoraStacks* adapters() const { return adapters_.get(); }
  // The dtype of A and B.
  DType adapter_dtype() const { return facts_.dtype; }
  // Releases the copy in host memory. The next use loads it again.
  void forget(const std::vector<std::string>& keys, WeightRole role);
  // As in Builder. It also returns null for several weights that share a block with one scale, and on a GPU that has no
  // kernel for the product of the codes.
  const QuantizationConfig* quantization(const std::vector<std::string>& keys) const;
  bool can_merge(const std::vector<std::string>& keys);
  bool has_adapter(const std::vector<std::string>& keys) const {
    return adapters_ != nullptr && adapters_->adapts(keys);
  }
  // As in Builder. It returns "" on a GPU, where such weights are stored as numbers with their columns in the order of
  // the input.
  std::string order_key(const std::vector<std::string>& keys) const;
  // A sentence for each reason why quantized weights were not merged. It names the first ones and counts the others.
  // If only a config is read, one more says which weights were merged although their groups may have different orders.
  std::vector<std::string> unmerged() const;
  // In fast mode, a sentence about the params whose codes fill no blocks, so that they are stored as numbers. It names
  // the first one and the bytes that they take. A GPU has all numbers in the model's dtype, and costs_of_options() has
  // the sentences.
  std::vector<std::string> expansions(const std::vector<TracedParam>& params) const;
  // One sentence for each option that leaves the GPU without a kernel for the codes of these params, so that they are
  // stored as numbers. It names the params and the bytes that they take. Empty where the device, and not an option, is
  // the cause.
  std::vector<std::string> costs_of_options(const std::vector<TracedParam>& params) const;
  bool has(const std::string& key) const { return checkpoint_.find(key) != nullptr; }
  bool is_quantized(const std::string& key) const;

  // Bytes of everything that is loaded now, mapped parts of the file included.
  std::int64_t loaded_bytes() const;

 private:
  static std::size_t joined_dim(const Meta& meta, WeightRole role);
  Meta table_meta(WeightRole role) const;
  Meta score_bias_meta() const;
  Tensor table(WeightRole role) const;
  Tensor distance_biases(const std::string& key) const;
  std::vector<float> frequency_factors(const RopeConfig& rope) const;
  // The quantization of a weight's module, for a stack that of its first expert. Null if the weight is not quantized.
  const QuantizationConfig* config_of(const std::string& key) const;
  // The same for a weight that is known to be quantized.
  const QuantizationConfig& config_of_codes(const std::string& key) const;
  bool is_mxfp4(const std::string& key) const;
  bool has_factors(const std::string& key, WeightRole role) const;
  static bool is_matrix(WeightRole role);
  bool is_grouped(const std::string& key) const;
  DType dtype_of_numbers() const;
  Meta order_meta(const std::string& key) const;
  Tensor order(const std::string& key) const;
  Meta grouped_type(const std::string& key) const;
  bool has_same_order(const std::string& key, const std::string& other) const;
  Meta stored_meta(const std::string& key, WeightRole role) const;
  Tensor stored(const std::string& key, WeightRole role) const;
  static bool is_adapter(WeightRole role);
  Tensor adapter(const std::vector<std::string>& keys, WeightRole role);
  static bool is_latent(WeightRole role);
  Meta latent_meta(DType dtype, WeightRole role) const;
  Tensor rows_of_latents(const std::string& key) const;
  Tensor latent_part(const Tensor& stored, WeightRole role) const;
  static Meta transposed_meta(Meta meta);
  Tensor transposed(const Tensor& stored) const;
  std::string stored_name(const std::string& key) const;
  std::int64_t stack_size(const std::string& key) const;
  Meta find_stack_meta(const std::string& key, WeightRole role) const;
  Meta stack_meta(const std::string& key, WeightRole role) const;
  Tensor stored_of_expert(const std::string& key, std::int64_t expert, WeightRole role) const;
  using VisitPart = std::function<void(const Tensor& part)>;
  void for_each_part(const std::vector<std::string>& keys, WeightRole role, const VisitPart& visit) const;
  bool is_made_of_rows(const std::string& key, WeightRole role) const;
  WeightRows rows_of(const std::string& key, DType dtype) const;
  Tensor all_rows(const WeightRows& rows) const;
  void drop_expert_pages(const std::string& key) const;
  void drop_pages(const std::string& key) const;
  bool is_on_gpu() const;
  CodeProduct product_over_codes(const std::vector<std::string>& keys) const;
  bool multiplies_codes(const std::vector<std::string>& keys) const;
  Meta block_scale_meta(const std::vector<std::string>& keys) const;
  Tensor block_scales(const std::vector<std::string>& keys);
  bool is_expanded(WeightRole role) const;
  // Whether a matrix of f32 gets the dtype that was asked for, as in vLLM.
  bool is_narrowed(const std::string& key, const Meta& stored, WeightRole role) const;
  Meta plain_meta(const std::vector<std::string>& keys, WeightRole role) const;
  Meta row_scale_meta(const std::vector<std::string>& keys) const;
  Tensor row_scales(const std::vector<std::string>& keys) const;
  Tensor joined_vectors(const std::vector<std::string>& keys) const;
  bool has_whole_blocks(const std::vector<std::string>& keys) const;
  std::string reason_against_merge(const std::vector<std::string>& keys) const;
  const Packing* packing_for(const Meta& plain, WeightRole role) const;
  Tensor dummy(const std::vector<std::string>& keys, WeightRole role);
  Tensor load(const std::vector<std::string>& keys, WeightRole role);
  std::shared_ptr<Storage> room(std::int64_t bytes);
  Tensor pack(const Packing& packing, const std::vector<std::string>& keys, WeightRole role);
  Tensor pack_of_rows(const Packing& packing, const std::vector<std::string>& keys, const Meta& plain);
  Tensor merge(const Meta& plain, const std::vector<std::string>& keys, WeightRole role);
  void convert(const Tensor& part, DType dtype, std::byte* to) const;

  const Context& context_;
  Checkpoint checkpoint_;
  const ModelFacts& facts_;
  std::set<std::string> own_;
  std::shared_ptr<const LoraStacks> adapters_;
  std::set<std::string> assumed_orders_;  // of a dummy checkpoint: the first weight of each group
  mutable std::map<std::pair<std::string, WeightRole>, Meta> stack_metas_;
  // Patterns are matched once for each weight: experts have tens of thousands, each asked for several times.
  mutable std::unordered_map<std::string, const QuantizationConfig*> configs_;
  std::map<std::string, Tensor> loaded_;
  std::map<std::string, std::set<std::string>> unmerged_;  // by reason: the first weight of each group
  std::shared_ptr<Storage> zeros_;                         // shared by all weights of a dummy checkpoint
  std::shared_ptr<Storage> block_;                         // holds the next small weights
  std::int64_t block_used_ = 0;                            // used bytes at the beginning of block_
};

}  // namespace weft
