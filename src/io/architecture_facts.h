#pragma once

// The facts of an architecture that the reader of a model's files needs: the defaults for keys that the files omit,
// what differs between the formats of files, and the keys of config.json that only this architecture reads. Each file
// of src/models defines its own facts.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class CheckpointFormat : std::uint8_t { hugging_face, gguf };

// Which two elements of a head a rotary position rotates together, if the first r elements are rotated.
//   halves      i and i + r / 2 (NeoX)
//   neighbours  2 i and 2 i + 1 (GPT-J; "NORM" in llama.cpp)
enum class RotaryPairing : std::uint8_t { halves, neighbours };

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
  // For the weights as the files of each format store them. If the two differ, GGUF files have the rows of each query
  // and key head in another order: row 2 i + b is row i + b r / 2 of a folder.
  RotaryPairing pairing_in_folders = RotaryPairing::halves;
  RotaryPairing pairing_in_gguf = RotaryPairing::halves;
  // Keys of config.json that src/io/known_keys.cpp lists as "changes" and that this architecture reads.
  std::vector<std::string_view> keys;
};

}  // namespace weft
