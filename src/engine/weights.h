#pragma once

// The weights of a model as its kernels read them: rows of merged weights one after another, packed as the device's
// kernels want, in one mapping in the order of execution. Each is loaded once, unless it was forgotten; pages of the
// file that were packed are dropped. Those of a dummy checkpoint are zeros, packed or not, and take no memory. For a
// GPU, whose libraries multiply matrices of one dtype, weights of linear layers become numbers of the model's dtype,
// blocks among them, and codes where the GPU has no product for them and their scales.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/code_products.h"

namespace weft {

struct TracedParam;

class Weights {
 public:
  Weights(const Context& context, Checkpoint checkpoint, const ModelFacts& facts);

  // The type a weight has once loaded, as its role says (nn/builder.h). UserError when a tensor is missing or of
  // another width than the others, and where rows of blocks that are to be merged are not whole blocks.
  Meta meta(const std::vector<std::string>& keys, WeightRole role) const;
  // Loads (at the first call) and gives the tensor.
  Tensor tensor(const std::vector<std::string>& keys, WeightRole role);
  // The copy in the host's memory is of no use any more, of no names that of the rotary table. It is loaded again where
  // it is asked for again.
  void forget(const std::vector<std::string>& keys);
  // As Builder has them. On a GPU linear layers are over codes only where it has a kernel for their product.
  const QuantizationConfig* quantization(const std::vector<std::string>& keys) const;
  bool can_merge(const std::vector<std::string>& keys) const;
  // One sentence for each option that leaves a GPU no kernel for codes of these params, which are numbers for that:
  // which they are and how many bytes they take. Empty where the device, and not an option, decides.
  std::vector<std::string> costs_of_options(const std::vector<TracedParam>& params) const;
  bool has(const std::string& key) const { return checkpoint_.find(key) != nullptr; }
  // f32[positions, rotary_dim].
  const Tensor& rotary_table();

  // Of everything that is loaded now, mapped parts of the file included.
  std::int64_t loaded_bytes() const;

 private:
  bool is_quantized(const std::string& key) const;
  Meta stored_meta(const std::string& key, WeightRole role) const;
  Tensor stored(const std::string& key, WeightRole role) const;
  void drop_pages(const std::string& key) const;
  bool is_on_gpu() const;
  CodeProduct product_over_codes(const std::vector<std::string>& keys) const;
  bool multiplies_codes(const std::vector<std::string>& keys) const;
  Meta block_scale_meta(const std::vector<std::string>& keys) const;
  Tensor block_scales(const std::vector<std::string>& keys);
  bool is_expanded(WeightRole role) const;
  Meta plain_meta(const std::vector<std::string>& keys, WeightRole role) const;
  Meta row_scale_meta(const std::vector<std::string>& keys) const;
  Tensor row_scales(const std::vector<std::string>& keys) const;
  Tensor sum_with_one(const std::string& key) const;
  void check_whole_blocks(const std::vector<std::string>& keys) const;
  const Packing* packing_for(const Meta& plain, WeightRole role) const;
  Tensor dummy(const std::vector<std::string>& keys, WeightRole role);
  Tensor load(const std::vector<std::string>& keys, WeightRole role);
  std::shared_ptr<Storage> room(std::int64_t bytes);
  Tensor pack(const Packing& packing, const std::vector<std::string>& keys, WeightRole role);
  Tensor merge(const Meta& plain, const std::vector<std::string>& keys, WeightRole role);
  void convert(const Tensor& part, DType dtype, std::byte* to) const;

  const Context& context_;
  Checkpoint checkpoint_;
  const ModelFacts& facts_;
  std::map<std::string, Tensor> loaded_;
  Tensor rotary_table_;
  std::shared_ptr<Storage> zeros_;  // what all weights of a dummy checkpoint look into
  std::shared_ptr<Storage> block_;  // what the next small weights lie in
  std::int64_t block_used_ = 0;     // bytes of its beginning
};

}  // namespace weft
