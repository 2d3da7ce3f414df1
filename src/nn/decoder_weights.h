#pragma once

// The table of a decoder's weights, and changes of it: an architecture's file states how its weights differ from
// Llama's.

#include <initializer_list>
#include <string>
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

// The table of learned positions, position_embd, by its name in folders without ".weight".
void add_positions(WeightTable& weights, const std::string& name);

// For models whose embeddings may have a width of their own: token_embd_proj before the layers and
// output_projection after them, by their names in folders without ".weight".
void add_embedding_projections(WeightTable& weights, const std::string& input, const std::string& output);

// Stores the matrices of all layers transposed in folders: weights [inputs, outputs].
void transpose_in_folders(WeightTable& weights);

// Removes the weights and biases of all norms, which then multiply and add nothing.
void erase_norms(WeightTable& weights);

// For checkpoints with one weight for gate and up. One for query, key and value is ModelConfig::merges_query_key_value.
void merge_gate_and_up(WeightTable& weights);

// The names of experts in folders: the module of a layer, and an expert's weights.
struct ExpertNames {
  std::string_view module = "mlp", gate = "gate_proj", up = "up_proj", down = "down_proj";
};
// The router ffn_gate_inp and the stacks ffn_gate_exps and ffn_up_exps, or ffn_gate_up_exps, and ffn_down_exps of the
// layers with experts. Folders have a tensor for each expert.
void add_experts(WeightTable& weights, const ExpertNames& names = {});
// For architectures whose folders have one stack for gate and up: the names in folders of this stack and of that for
// down.
void name_merged_experts(WeightTable& weights, const std::string& gate_up, const std::string& down);
// What is added to the scores of experts for their choice: exp_probs_b. Models with other scores have none.
void add_expert_bias(WeightTable& weights, const std::string& name, ExpertScores scores = ExpertScores::sigmoid);
// The projections of what experts read and write, ffn_latent_down and ffn_latent_up, if that has a width of its own.
void add_expert_latents(WeightTable& weights, std::string_view module);
// The expert that computes all tokens: ffn_gate_shexp, ffn_up_shexp, ffn_down_shexp.
void add_shared_expert(WeightTable& weights, std::string_view module);
// The same for folders whose module of the shared expert has input_linear, one weight for gate and up, and
// output_linear. In models without experts the module is the feed-forward. GGUF files have a weight for each.
void merge_shared_in_folders(WeightTable& weights, std::string_view module);
// A gate of its result, one number for each token: ffn_gate_inp_shexp.
void add_shared_expert_gate(WeightTable& weights, std::string_view name);

// Norms of each head of query and key, attn_q_norm and attn_k_norm; by config.has_head_norms.
void add_head_norms(WeightTable& weights);
// The same with a weight for each head of the two.
void add_own_head_norms(WeightTable& weights);
// The same of all heads of query, and of key, together.
void add_row_norms(WeightTable& weights);
// The norms before attention's output projection and before the last product of the feed-forward, attn_sub_norm and
// ffn_sub_norm.
void add_sub_norms(WeightTable& weights);
// The norms of sandwich_layers and post_norm_layers after the halves, with Gemma's names.
void add_post_norms(WeightTable& weights);
// The embeddings that each layer has of its own, nn/layer_input.h.
void add_layer_inputs(WeightTable& weights);
// Makes all norms multiply by 1 + w, where folders store w and GGUF files the sum.
void add_one_to_norms(WeightTable& weights);

}  // namespace weft::nn
