#pragma once

// What the reader of a model's files must know of its architecture: what the files mean where they are silent, and
// which keys of config.json this architecture reads and others do not. Each file of src/models has its own.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// The sliding window of config.json.
struct WindowFacts {
  std::int64_t length;  // where sliding_window is absent; null says that there is none
  // Of architectures that turn their window on by use_sliding_window: the first layer that has it where layer_types and
  // max_window_layers are absent.
  std::optional<std::int64_t> first_layer = std::nullopt;
};

struct ArchitectureFacts {
  std::string hidden_act = "silu";       // where config.json is silent, and of all GGUF files
  bool tie_word_embeddings = false;      // where config.json is silent; GGUF files show it by their tensors
  std::optional<std::int64_t> head_dim;  // where config.json is silent; nullopt: the width divided by the heads
  std::optional<WindowFacts> window;     // nullopt: a sliding_window in config.json is refused
  // GGUF files store query and key rows so that each element is rotated with its neighbour.
  bool rotates_neighbours_in_gguf = false;
  // Keys of config.json that src/io/known_keys.cpp lists as changing results, which this architecture reads.
  std::vector<std::string_view> keys;
};

}  // namespace weft
