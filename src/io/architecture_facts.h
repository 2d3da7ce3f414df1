#pragma once

// The facts of an architecture that the reader of a model's files needs: the defaults for keys that the files omit, and
// the keys of config.json that only this architecture reads. Each file of src/models defines its own facts.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// The sliding window of config.json.
struct WindowFacts {
  std::int64_t length;  // used if sliding_window is absent; a null sliding_window means no window
  // Set for architectures that enable the window by use_sliding_window. It is the first layer that has the window if
  // both layer_types and max_window_layers are absent.
  std::optional<std::int64_t> first_layer = std::nullopt;
};

struct ArchitectureFacts {
  std::string hidden_act = "silu";       // the default for config.json; all GGUF files use it
  bool tie_word_embeddings = false;      // the default for config.json; in GGUF files the tensors show it
  std::optional<std::int64_t> head_dim;  // the default for config.json; nullopt: hidden size / heads
  std::optional<WindowFacts> window;     // nullopt: a sliding_window in config.json is refused
  // GGUF files store query and key rows in an order in which each element is rotated with its neighbour.
  bool rotates_neighbours_in_gguf = false;
  // Keys of config.json that src/io/known_keys.cpp lists as "changes" and that this architecture reads.
  std::vector<std::string_view> keys;
};

}  // namespace weft
