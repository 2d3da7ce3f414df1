#pragma once

// The interface from which model code gets its inputs and weights. When the model is traced they are inputs and params
// of a graph; in eager execution they are tensors. The model's function is the same for both.

#include <string>
#include <vector>

#include "io/model_config.h"
#include "ir/value.h"

namespace weft {

// The use of a weight. It decides the weight's layout and dtype.
//   linear      rows of a linear layer's weight, in the layout that its kernels need
//   transposed  the same of a weight that is stored transposed
//   latent_keys, latent_values
//               the stacks [heads, latent, key] and [heads, value, latent] of a weight whose rows are, for each head,
//               those of its key and those of its value (nn/latent_attention.h)
//   vector      in the dtype of the residual stream
//   exact       a vector in f32
//   one_plus    1 + w in f32, of a stored vector w
//   minus_exp   -exp(w) in f32, of a stored vector w
//   decays      -exp(w) in f32, transposed: f32[state, channels] of a stored matrix w [channels, state]
//   taps        f32[taps, channels] of the stored weight of a convolution, [channels, taps] or [channels, 1, taps]
//   codes       rows as stored: codes of a quantized linear's weight, NVFP4's scales of blocks, tables of embeddings
//   positions   rows of the table of learned positions as stored, from that of the first position on
//   scale       rows of scales of blocks, in f32
//   row_scale   scales of rows, f32[1] or f32[N, 1]
//   inverse_lengths
//               1 over the length of each row of a matrix, f32[rows]
//   inverse_column_lengths
//               the same of each column, f32[columns]
//   number      one number, which must be equal under all names, f32[1]
//   reciprocal  the reciprocal of such a number, f32[1]
//   lora_a, lora_b
//               the products of LoRA adapters for a linear layer with these weights (engine/weights/lora_stacks.h), in
//               the dtype of the residual stream: [rank, K] and [N, rank], or stacks of them, or joined
//   lora_mask   for joined ones: for each choice, 1 at the columns of its ranks, else 0 [choices, ranks]
//   order       the columns of x in the order that the groups of a weight have, i32[K]; of each expert, i32[E, K]
//   distance_bias
//               what is added to the scores of attention, f32[heads, distances] (nn/score_bias.h), of the stored biases
//               of buckets of distances, [buckets, heads]
// The last ones have no keys, as they are computed from the config:
//   rotary          the table of rotary positions, f32[positions, rotary_dim]
//   sliding_rotary  the same for layers with a window, of config.sliding_rope
//   query_scale     a factor of queries by position, f32[positions, 1]
//   alibi           what ALiBi adds to the scores of attention, f32[heads, distances] (nn/score_bias.h)
enum class WeightRole : std::uint8_t {
  linear,
  transposed,
  latent_keys,
  latent_values,
  vector,
  exact,
  one_plus,
  minus_exp,
  decays,
  taps,
  codes,
  positions,
  scale,
  row_scale,
  inverse_lengths,
  inverse_column_lengths,
  number,
  reciprocal,
  order,
  lora_a,
  lora_b,
  lora_mask,
  distance_bias,
  rotary,
  sliding_rotary,
  query_scale,
  alibi
};

// How activations meet quantized weights.
//   int8    as 8-bit codes, for weights of block types with integer codes; for others as their scheme says
//   bf16    rounded to bf16, for weights of block types, whose values are rounded to bf16, too; for others as int8
//   exact   as they are, and weights as the numbers that they represent
enum class Activations : std::uint8_t { int8, bf16, exact };

// The product of linear layers with a weight that may be of a block type: linear_int8, linear_bf16, or linear.
enum class BlockProduct : std::uint8_t { int8, bf16, numbers };
BlockProduct block_product(DType weight, Activations activations);

// One of the paged inputs of a forward graph, of one layer: its keys and values, the last inputs of its convolution, or
// its recurrent state.
struct LayerPages {
  std::string name;  // "kv.0", "convolution.0" or "state.0"
  KvLayout layout;
  int layer = 0;
};

// The facts of one model in one configuration.
struct ModelFacts {
  ModelConfig config;
  DType dtype = DType::f32;  // of the residual stream
  Activations activations = Activations::int8;
  KvLayout kv;  // of layers with a window, if the others have another
  KvLayout kv_of(int layer) const;
  // All of them, in the order of the graph's inputs and results: by layer.
  std::vector<LayerPages> pages() const;
  // Scales of activation groups have the layout that matrix products on a GPU read: for each group, the scales of all
  // rows are contiguous.
  bool scales_by_group = false;
  // LoRA: among how many choices a row has one; 0 without adapters. With one, all rows have the same.
  std::int64_t adapter_choices = 0;

  bool is_exact() const { return activations == Activations::exact; }
};

class Builder {
 public:
  explicit Builder(const ModelFacts& facts) : facts(facts) {}
  virtual ~Builder() = default;

  const ModelFacts& facts;

  // An input that each step supplies. Dim 0 may be one of two governing symbols: tokens_symbol() or rows_symbol().
  virtual Value input(const std::string& name, const Meta& meta) = 0;
  virtual Value donated_input(const std::string& name, const Meta& meta) = 0;
  // A weight by its names in the checkpoint. With several names, their rows or elements are concatenated.
  virtual Value weight(const std::string& name, const std::vector<std::string>& keys, WeightRole role) = 0;
  // Whether the rows of these weights may be merged: all have the same type, and their inputs are quantized in the same
  // way.
  virtual bool can_merge(const std::vector<std::string>& keys) = 0;
  // How a linear layer with these weights computes with quantized codes. Null when it computes with plain numbers,
  // because the weights are plain or the mode is exact.
  virtual const QuantizationConfig* quantization(const std::vector<std::string>& keys) const = 0;
  // The name of a tensor for WeightRole::order, if these weights want the columns of their input in another order; ""
  // if not.
  virtual std::string order_key(const std::vector<std::string>& keys) const = 0;
  // Whether a LoRA adapter changes the product of a linear layer with these weights.
  virtual bool has_adapter(const std::vector<std::string>&) const { return false; }
  // Called for each linear layer, with the names of its weights and its input.
  virtual void linear_input(const std::vector<std::string>&, const Value&) {}
  // The nodes made after this call belong to this layer; -1 for none.
  virtual void enter_layer(int layer) = 0;

  // The checkpoint's name of a weight.
  virtual std::string key(const std::string& weight_name, int layer = -1) const = 0;
  // Whether the model's table has the weight and models of this config have it.
  virtual bool has(const std::string& weight_name, int layer = -1) const = 0;
  // The role of a vector in the model's table: vector, exact or one_plus.
  virtual WeightRole vector_role(const std::string& weight_name) const = 0;
  // The role of a layer's matrix in the model's table: linear or transposed.
  virtual WeightRole matrix_role(const std::string& weight_name, int layer) const = 0;
  Value adapters;                 // i64[rows]: the choice of each row; absent unless there is more than one
  bool has_separate_head = true;  // false: the head uses the embedding's weight
};

// The input of forward graphs with the choices of rows, i64[s0], and that of heads whose weight is adapted.
inline constexpr const char* kAdapters = "adapters";

// What names of params end in: ".3" in layer 3, "" outside of layers.
inline std::string layer_suffix(int layer) { return layer < 0 ? "" : "." + std::to_string(layer); }

inline Dim tokens_symbol() { return Dim::symbol("s0"); }
inline Dim rows_symbol() { return Dim::symbol("s1"); }

}  // namespace weft
