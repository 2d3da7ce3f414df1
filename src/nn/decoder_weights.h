#pragma once

// The table of a decoder's weights, and changes of it: an architecture's file states how its weights differ from
// Llama's.

#include <initializer_list>
#include <string_view>
#include <vector>

#include "nn/model_weight.h"

namespace weft::nn {

using WeightTable = std::vector<ModelWeight>;

// The weights of a decoder with a gated feed-forward, as in Llama's checkpoints. It has the biases that the config's
// switches ask for.
WeightTable decoder_weights();

// Removes weights and their biases. InternalError when one is not in the table.
void erase(WeightTable& weights, std::initializer_list<std::string_view> names);

// New names of a weight in GGUF files and in folders, without ".weight"; its bias is renamed, too. "" keeps a name.
struct Renaming {
  std::string_view name, gguf, hugging_face;
};
void rename(WeightTable& weights, std::initializer_list<Renaming> names);

// For checkpoints with one weight for query, key and value, or for gate and up.
void merge_query_key_value(WeightTable& weights);
void merge_gate_and_up(WeightTable& weights);

// Norms of each head of query and key, attn_q_norm and attn_k_norm.
void add_head_norms(WeightTable& weights);
// The norms of sandwich_layers and post_norm_layers after the halves, with Gemma's names.
void add_post_norms(WeightTable& weights);
// The embeddings that each layer has of its own, nn/layer_input.h.
void add_layer_inputs(WeightTable& weights);
// Makes all norms multiply by 1 + w, where folders store w and GGUF files the sum.
void add_one_to_norms(WeightTable& weights);

}  // namespace weft::nn
