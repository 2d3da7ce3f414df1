#pragma once

// What model code is written over: where inputs and weights come from. Tracing makes inputs and params of a graph;
// eager execution hands out tensors. The model's own function is the same for both.

#include <string>
#include <vector>

#include "io/model_config.h"
#include "ir/value.h"

namespace weft {

// What a weight is used for; it settles how it may be laid out, and in which dtype it is wanted.
//   linear      rows of a linear layer's weight, in the layout that its kernels want
//   vector      in the dtype of the residual stream
//   one_plus    1 + w in f32, whether the file holds w or the sum
//   codes       rows as stored: codes of a quantized linear's weight, and NVFP4's scales of blocks
//   scale       rows of scales of blocks, in f32
//   row_scale   scales of rows, f32[1] or f32[N, 1]
//   number      one number, the same under all names, f32[1]
//   reciprocal  1 / that
enum class WeightRole : std::uint8_t { linear, vector, one_plus, codes, scale, row_scale, number, reciprocal };

// The facts of one model in one configuration.
struct ModelFacts {
  ModelConfig config;
  DType dtype = DType::f32;  // of the residual stream
  bool fast = true;          // quantized activations before quantized weights
  KvLayout kv;
  // Scales of groups of activations lie as a GPU's products read them: those of one group of all rows side by side.
  bool scales_by_group = false;
};

class Builder {
 public:
  explicit Builder(const ModelFacts& facts) : facts(facts) {}
  virtual ~Builder() = default;

  const ModelFacts& facts;

  // An input given with every step. `tokens` and `rows` are the two symbols a graph may be governed by.
  virtual Value input(const std::string& name, const Meta& meta) = 0;
  virtual Value donated_input(const std::string& name, const Meta& meta) = 0;
  // A weight by its names in the checkpoint; the rows of several are one after another.
  virtual Value weight(const std::string& name, const std::vector<std::string>& keys, WeightRole role) = 0;
  // Whether the rows of these weights may be merged: all are of one type, and their inputs are quantized alike.
  virtual bool can_merge(const std::vector<std::string>& keys) const = 0;
  // How a linear layer with these weights computes over codes; null where it computes over numbers: because the weights
  // are plain, or in exact mode.
  virtual const QuantizationConfig* quantization(const std::vector<std::string>& keys) const = 0;
  // Told of every linear layer: its weights and what it is given.
  virtual void linear_input(const std::vector<std::string>&, const Value&) {}
  // The rotary table, f32[positions, rotary_dim].
  virtual Value rotary_table() = 0;
  // What follows belongs to this layer; -1 for none.
  virtual void enter_layer(int layer) = 0;

  // The checkpoint's name of a weight, for this checkpoint's kind (GGUF or Hugging Face).
  virtual std::string key(const std::string& weight_name, int layer = -1) const = 0;
  // What the model's table says a vector is: vector or one_plus.
  virtual WeightRole vector_role(const std::string& weight_name) const = 0;
  bool has_separate_head = true;  // false: the head uses the embedding's weight
};

inline Dim tokens_symbol() { return Dim::symbol("s0"); }
inline Dim rows_symbol() { return Dim::symbol("s1"); }

}  // namespace weft
