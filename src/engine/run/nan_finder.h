#pragma once

// Finds the source of a NaN: in what a step left in memory and, with WEFT_LOGS=+nan, op by op.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "compiler/run/eager.h"
#include "engine/compile/builders.h"

namespace weft {

// The first pages in which a sequence has keys or values that are not finite.
struct BadPages {
  std::size_t pages = 0;  // their index
  std::int64_t position = 0;
  bool is_key = false;
  bool is_infinite = false;  // outside the range of the pages' type; else NaN
};

// `pages` are those of all layers (ModelFacts::pages). States are not looked at. The sequence has `tokens` tokens in
// the pages `blocks`.
std::optional<BadPages> find_bad_pages(std::span<const Tensor> pages, std::span<const std::int32_t> blocks,
                                       std::int64_t tokens);

// The first pages with an infinite key among the positions [begin, end) of a sequence. f16 pages only: keys beyond
// 65504 are stored as infinities. A score of minus infinity hides the token from attention, so logits need not show it.
std::optional<BadPages> find_infinite_key(std::span<const Tensor> pages, std::span<const std::int32_t> blocks,
                                          std::int64_t begin, std::int64_t end);

// Whether a floating-point tensor contains a NaN; false for codes and KV pages.
bool has_nan(const Tensor& tensor);

// Runs ops as EagerEvaluator does, and records the first op with a NaN among its results.
class NanFinder : public EagerEvaluator {
 public:
  using EagerEvaluator::EagerEvaluator;
  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) override;

  // Sets the location of the following ops: "in layer 3".
  void enter(std::string where) { where_ = std::move(where); }
  // "matmul in layer 3"; "" if no op had a NaN.
  const std::string& first() const { return first_; }

 private:
  std::string where_ = "outside the layers";
  int depth_ = 0;  // of composites, whose definitions call evaluate() again
  std::string first_;
};

// Runs model code over a NanFinder and reports the current layer to it.
class NanFindingBuilder : public EagerBuilder {
 public:
  NanFindingBuilder(const ModelFacts& facts, const ModelDefinition& model, Weights& weights, NanFinder& finder,
                    std::map<std::string, Tensor> inputs)
      : EagerBuilder(facts, model, weights, finder, std::move(inputs)), finder_(finder) {}
  void enter_layer(int layer) override {
    finder_.enter(layer < 0 ? "outside the layers" : "in layer " + std::to_string(layer));
  }

 private:
  NanFinder& finder_;
};

}  // namespace weft
