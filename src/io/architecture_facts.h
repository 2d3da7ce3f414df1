#pragma once

// The facts of an architecture that the reader of a model's files needs: the defaults for keys that the files omit, the
// keys that only this architecture reads, what differs between the formats of files, and what the files leave to the
// architecture. Each file of src/models defines its own facts.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct ModelConfig;

enum class CheckpointFormat : std::uint8_t { hugging_face, gguf };

// Which two elements of a head a rotary position rotates together, if the first r elements are rotated.
//   halves      i and i + r / 2 (NeoX)
//   neighbours  2 i and 2 i + 1 (GPT-J; "NORM" in llama.cpp)
enum class RotaryPairing : std::uint8_t { halves, neighbours };

// The norms of a model: rms divides by the root mean square; layer subtracts the mean before.
enum class NormKind : std::uint8_t { rms, layer };

// Whether tokens attend to later ones, too: in no model of an architecture, in those whose files ask for it, or in all,
// as in encoders. Such models compute embeddings, and no text.
enum class Bidirectional : std::uint8_t { never, if_stated, always };

struct NormFacts {
  NormKind kind = NormKind::rms;
  std::string_view epsilon = "rms_norm_eps";  // the key of config.json
  bool has_bias = false;
  std::string_view own_epsilon_in_gguf = "";  // the key of GGUF files, if it is not that of the kind

  std::string_view epsilon_in_gguf() const {
    if (!own_epsilon_in_gguf.empty()) return own_epsilon_in_gguf;
    return kind == NormKind::rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
  }
};

// The sliding window. Unless the files state the layers that have it, all layers have it, or those of one rule.
struct WindowFacts {
  // Set for architectures that enable the window by use_sliding_window. It is the first layer that has the window if
  // both layer_types and max_window_layers are absent.
  std::optional<std::int64_t> first_layer = std::nullopt;
  bool has_switch = true;  // false: without use_sliding_window, the layers from the first one on have the window
  // The layers with a window in these architectures, if layer_types is absent: from that layer on, all layers (whatever
  // layer_types says), or every second layer before it.
  enum class Rule : std::uint8_t { from_first, all, every_second } rule = Rule::from_first;
  // The last layer of each period, or the first one, has no window, if the files do not state it.
  std::optional<std::int64_t> period = std::nullopt;
  bool begins_without = false;
  // The key of config.json with words for the layers, global or local: lists of words, each with how often it is
  // repeated. "" for architectures that have layer_types.
  std::string_view types = "";
};

// Which layers have rotary positions, and which.
struct RotaryFacts {
  // Layers with a window have positions without scaling, and their theta is rope_local_base_freq of config.json and
  // rope.freq_base_swa of GGUF files, if there is one.
  bool has_sliding_positions = false;
  std::optional<double> sliding_theta = std::nullopt;  // for GGUF files without that key
  // Each layer whose number, counted from one, is a multiple of it has no positions, if the files do not state it.
  std::optional<std::int64_t> unrotated_period = std::nullopt;
  // In models with a window, layers without it have no positions.
  bool only_rotates_windows = false;
  // The key of config.json that has the width of a head's rotated part, if partial_rotary_factor is absent.
  std::string_view width = "";
  // Folders have positions only if this key is "rope", and GGUF files unless this one is false.
  std::string_view kind_in_folders = "";
  std::string_view switch_in_gguf = "";
  bool is_absent = false;    // no layer has them
  bool is_reversed = false;  // heads are rotated in the other direction
};

// How the scores of a router's logits are computed, from which the experts of a token are chosen.
//   softmax            softmax over all experts
//   sigmoid            the sigmoid of each
//   softmax_of_chosen  the logits; the weights are the softmax over the chosen ones
//   sparse_mixer       the logits; the weight of each of two chosen ones is its softmax over those that are near to it,
//                      without the ones chosen before
// To the scores of the first two a bias of each expert may be added for the choice alone.
enum class ExpertScores : std::uint8_t { softmax, sigmoid, softmax_of_chosen, sparse_mixer };

// The mixtures of experts of an architecture. The names are keys of config.json; "" for what its files do not have.
struct ExpertFacts {
  std::string_view count = "num_experts";
  std::string_view width = "moe_intermediate_size";  // of an expert's feed-forward
  // The expert that computes all tokens: its width, or as a number of experts.
  std::string_view shared_width = "";
  std::string_view shared_count = "";
  ExpertScores scores = ExpertScores::softmax;
  bool normalizes = false;            // whether weights are divided by their sum, if the file does not state it
  bool is_merged_in_folders = false;  // folders have one stack for gate and up
  std::string_view used = "num_experts_per_tok";
  // The layers with experts: layer i has them if it is none of the `first` ones, nor after the last one, and if i is
  // the offset more than a multiple of the step. A last one of -1 is that of the model, and the usual offset is step
  // - 1.
  std::string_view first = "first_k_dense_replace";
  std::string_view last = "";
  std::string_view step = "decoder_sparse_step";
  std::string_view offset = "";
  bool shows_layers_in_gguf = false;  // GGUF files show the layers with experts by their tensors alone
  bool one_is_none = false;           // a model with one expert has the feed-forward for all tokens
  std::string_view layers = "";       // a list of all layers with experts, in place of the other keys
  std::string_view enabled_by = "";   // a switch of config.json, without which its other keys have no effect
  bool keeps_dense = false;           // layers with experts have the feed-forward for all tokens, too
  bool weighs_inputs = false;         // weights multiply what experts read, and not their results
};

// What a layer without attention has in its place: parts whose state has the same size for any number of tokens.
//   short_convolution   a convolution over the last tokens, with two gates (LFM2)
//   gated_delta         a convolution, and a state that is updated by the gated delta rule (Qwen 3.5)
//   mamba               a convolution, and the state of Mamba 1, each of whose elements decays by itself
//   mamba2              a convolution, and the state of Mamba 2
enum class RecurrentKind : std::uint8_t { short_convolution, gated_delta, mamba, mamba2 };

// What a layer has, in models whose layers have one half each.
enum class HalfKind : std::uint8_t { recurrent, attention, feed_forward, experts };

// How the files of these models state it. config.json has a list of words, or a text with a letter for each layer, by
// these keys; its layers are counted by them. "" for architectures whose layers are all recurrent. GGUF files show it
// by the tensors of a layer.
struct HalfFacts {
  std::string_view words = "layers_block_type", letters = "hybrid_override_pattern";
};

// The recurrent layers of an architecture. The keys of config.json are those of the kind (io/recurrent_config.h).
struct RecurrentFacts {
  RecurrentKind kind = RecurrentKind::gated_delta;
  std::vector<std::string_view> words = {"linear_attention"};  // of these layers in layer_types
  std::string_view word_of_others = "full_attention";          // the word that is written for the other layers
  // Without layer_types, all layers are recurrent but those in the list of this key of config.json, or else the last
  // one of each period.
  std::string_view attending = "";
  std::optional<std::int64_t> period = std::nullopt;
  // Or all layers are recurrent but those that are the offset of the second key more than a multiple of the first one.
  std::string_view attending_period = "", attending_offset = "";
  bool has_attention = false;  // recurrent layers have attention, too
  // Of Mamba 1: what is projected to steps, inputs and outputs of the state is normalized. The key of config.json for
  // the epsilon of these norms; "" for that of the others.
  bool normalizes_parts = false;
  std::string_view parts_epsilon = "";
  // Of Mamba 2: the key of config.json that has the least step in place of the two bounds, and its default.
  std::string_view least_step = "";
  double default_least_step = 0;
};

// What a layer after the pooling does with its sums.
enum class DenseActivation : std::uint8_t { none, tanh, relu, gelu };

// A layer of the head by which a model scores a text, with a bias if the files have one: its name in folders without
// ".weight", and that of the layer norm after it. GGUF files call the last layer cls.output, the one before it cls and
// its norm cls.norm.
struct ScoreLayer {
  std::string_view module;
  DenseActivation activation = DenseActivation::none;
  std::string_view norm = "";
};

// A number that only some architectures read. A file without the key leaves the field at its default.
struct NumberKey {
  double ModelConfig::*field;
  std::string_view folder;     // the key of config.json; "" if folders have none
  std::string_view gguf = "";  // the key of GGUF files after the architecture; "" if they have none
};

// A list of such numbers, one for each field. GGUF files have none.
struct NumberListKey {
  std::vector<double ModelConfig::*> fields;
  std::string_view folder;
};

// A number for each layer, which GGUF files have as a list by this key after the architecture. Folders have tensors.
struct LayerNumbersKey {
  std::vector<double> ModelConfig::*field;
  std::string_view gguf;
};

// The same for a whole number that is not negative.
struct CountKey {
  std::int64_t ModelConfig::*field;
  std::string_view folder;
  std::string_view gguf = "";
  std::string_view gguf_tensor = "";  // without a key: the number of rows of this tensor of GGUF files
};

// A switch that only some architectures read.
struct SwitchKey {
  bool ModelConfig::*field;
  std::string_view folder;            // the key of config.json
  std::string_view gguf = "";         // the key of GGUF files after the architecture; "" if they have none
  std::string_view gguf_tensor = "";  // without a key: GGUF files have this tensor if the switch is on
};

// A key of config.json that this architecture has in place of a usual one: `n_embd` of `hidden_size`. Files may have
// either.
struct KeyName {
  std::string_view own, usual;
};

struct ArchitectureFacts {
  // The keys of config.json with names of their own. All other facts have the usual names.
  std::vector<KeyName> key_names;
  // The key of an object in config.json whose keys are read as if they were next to it: those of `numbers` and more.
  // "": there is none.
  std::string_view inner_object = "";
  // The embedding's tensor in folders.
  std::string_view embedding = "model.embed_tokens.weight";
  // The head's module in folders. Whatever it is, the head is read as lm_head (io/text_config.h).
  std::string_view head = "lm_head";
  // JSON text of an object: the values of keys that config.json omits. GGUF files, too, leave `hidden_act` to it.
  std::string_view defaults = "{}";
  // The same where the defaults of a model_type are others: the type and the JSON text.
  std::vector<std::pair<std::string_view, std::string_view>> defaults_of_types;
  // The same for a config.json with images or sound, whose text_config states what differs from transformers' defaults.
  std::string_view text_config_defaults = "{}";
  Bidirectional bidirectional = Bidirectional::never;
  NormFacts norm;
  // The width of the feed-forward as a multiple of hidden_size, if config.json does not state it; 0: it must.
  std::int64_t default_widening = 0;
  // Folders have one weight for queries, keys and values, with the rows of each key head one after another: those of
  // its queries, of its key and of its value. GGUF files have the rows of all queries first, then all keys, all values.
  bool groups_heads_in_folders = false;
  std::optional<WindowFacts> window;  // nullopt: a sliding_window in config.json is refused
  // Words of layer_types for layers without a window, next to full_attention.
  std::vector<std::string_view> words_of_layers;
  // The key of config.json for the width of the feed-forward.
  std::string_view feed_forward_width = "intermediate_size";
  // Files of both formats state the sum of the widths of gate and up, which is twice the width of the feed-forward.
  bool counts_gate_and_up = false;
  // Unless block_auto_adjust_ff_dim is off, the width is two thirds of that, times block_ffn_dim_multiplier, and then
  // the next multiple of block_multiple_of.
  bool adjusts_feed_forward_width = false;
  // Positions are learned and not rotary: a table has a row for each position of the context, from this row on.
  std::optional<std::int64_t> first_position_row;
  // For the weights as the files of each format store them. If the two differ, GGUF files have the rows of each query
  // and key head in another order: row 2 i + b is row i + b r / 2 of a folder.
  RotaryPairing pairing_in_folders = RotaryPairing::halves;
  RotaryPairing pairing_in_gguf = RotaryPairing::halves;
  RotaryFacts rotary;
  bool has_latents = false;                 // keys and values are latents: kv_lora_rank and the keys with it
  std::optional<ExpertFacts> experts;       // nullopt: a mixture of experts is refused
  std::optional<HalfFacts> halves;          // nullopt: layers have two halves
  std::optional<RecurrentFacts> recurrent;  // nullopt: layers without attention are refused
  std::vector<NumberKey> numbers;
  std::vector<NumberListKey> number_lists;
  std::vector<LayerNumbersKey> layer_numbers;
  std::vector<CountKey> counts;
  std::vector<SwitchKey> switches;
  // Further keys of config.json and of its rotary positions that src/io/known_keys_config.h lists as "changes" and that
  // this architecture reads; and keys of GGUF files after the architecture.
  std::vector<std::string_view> keys;
  // Keys of config.json that state what all models of this architecture have: true, if they are there.
  std::vector<std::string_view> always;
  // The head of models that score texts (...ForSequenceClassification), the last layer last. Empty: that of a decoder
  // has one layer, `score`, and encoders with one are refused.
  std::vector<ScoreLayer> score_layers;
  bool scores_mean_in_gguf = false;  // GGUF files, which do not state it, pool the mean for scores, not the first token
  // Sets fields that follow from others, after all keys are read. May be null.
  void (*complete)(ModelConfig& config) = nullptr;
};

}  // namespace weft
