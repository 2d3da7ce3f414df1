#pragma once

// The choices of LoRA adapters while a model runs: those that are in use, and those that may be loaded. A choice is
// written while no request has it, so no step has to wait.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/weights/lora_stacks.h"
#include "engine/weights/weights.h"

namespace weft {

// The contents of one choice. As long as this object lives they stay; then their memory is given back.
struct LoadedAdapter {
  std::int64_t choice = 0;
  std::uint64_t id = 0;  // of these contents: no others ever have it
};

class AdapterSlots {
 public:
  // `products` are the names of the weights of each adapted product, as the graphs have them.
  AdapterSlots(const LoraStacks& stacks, Weights& weights, std::vector<std::vector<std::string>> products);

  // Any thread may call these.

  // The adapters of --lora-modules, in their order. Only the first call has them: what it returns keeps them.
  std::vector<std::shared_ptr<const LoadedAdapter>> take_named();
  // Writes the parts into a choice that is free; null if none is. UserError if the stacks have no room for the parts.
  std::shared_ptr<const LoadedAdapter> load(const LoraParts& parts);
  const LoraStacks& stacks() const { return stacks_; }

 private:
  struct State;
  std::shared_ptr<const LoadedAdapter> hold(std::int64_t choice);

  const LoraStacks& stacks_;
  const DType dtype_;
  std::set<std::string> read_;  // the weights of all products
  std::shared_ptr<State> state_;
};

}  // namespace weft
