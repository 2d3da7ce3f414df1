#include "engine/weights/adapter_slots.h"

#include <mutex>
#include <utility>

#include "base/error.h"

namespace weft {

// What loaded adapters refer to. It may live longer than the AdapterSlots.
struct AdapterSlots::State {
  struct Product {
    std::vector<std::string> keys;
    AdapterStack a, b;
  };
  std::vector<Product> products;
  std::mutex mutex;  // of the following ones
  std::vector<std::int64_t> free;
  std::vector<std::shared_ptr<const LoadedAdapter>> named;
  std::uint64_t next_id = 1;

  void release(std::int64_t choice) {
    for (const Product& product : products) {
      product.a.clear(choice);
      product.b.clear(choice);
    }
    const std::lock_guard lock(mutex);
    free.push_back(choice);
  }
};

AdapterSlots::AdapterSlots(const LoraStacks& stacks, Weights& weights, std::vector<std::vector<std::string>> products)
    : stacks_(stacks), dtype_(weights.adapter_dtype()), state_(std::make_shared<State>()) {
  for (std::vector<std::string>& keys : products) {
    read_.insert(keys.begin(), keys.end());
    if (stacks.spare() == 0) continue;
    const AdapterStack a = weights.adapter_stack(keys, WeightRole::lora_a),
                       b = weights.adapter_stack(keys, WeightRole::lora_b);
    state_->products.push_back({std::move(keys), a, b});
  }
  for (std::int64_t choice = stacks.choices() - 1; choice >= stacks.choices() - stacks.spare(); --choice)
    state_->free.push_back(choice);
  for (std::int64_t choice = 1; choice < stacks.choices() - stacks.spare(); ++choice)
    state_->named.push_back(hold(choice));
}

std::vector<std::shared_ptr<const LoadedAdapter>> AdapterSlots::take_named() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->named, {});
}

std::shared_ptr<const LoadedAdapter> AdapterSlots::hold(std::int64_t choice) {
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(state_->mutex);
    id = state_->next_id++;
  }
  return {new LoadedAdapter{choice, id}, [state = std::weak_ptr(state_)](const LoadedAdapter* adapter) {
            if (const auto still = state.lock()) still->release(adapter->choice);
            delete adapter;
          }};
}

std::shared_ptr<const LoadedAdapter> AdapterSlots::load(const LoraParts& parts) {
  CHECK(stacks_.spare() > 0, "no adapter can be loaded with these options");
  LoraStacks::check_all_read(parts, read_);
  stacks_.check_ranks(parts);
  std::int64_t choice = 0;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->free.empty()) return nullptr;
    choice = state_->free.back();
    state_->free.pop_back();
  }
  // It also gives the place back after an exception.
  std::shared_ptr<const LoadedAdapter> loaded = hold(choice);
  ThreadPool alone(1);  // steps have the other one
  for (const State::Product& product : state_->products) {
    if (!adapts_any(parts, product.keys)) continue;
    product.a.fill(choice, stacks_.of_choice(product.keys, WeightRole::lora_a, dtype_, parts), alone);
    product.b.fill(choice, stacks_.of_choice(product.keys, WeightRole::lora_b, dtype_, parts), alone);
  }
  return loaded;
}

}  // namespace weft
