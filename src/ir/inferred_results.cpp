#include "ir/inferred_results.h"

#include <algorithm>

namespace weft {
namespace {

// A model makes a few dozen; only a graph whose calls never repeat reaches this, and starts anew.
constexpr std::size_t kMostCalls = 4096;

std::size_t hash_of(const Node& node) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(node.op);
  for (const GraphValue* operand : node.operands) {
    hash = hash * 31 + 1;
    if (operand == nullptr) continue;
    for (const Dim& dim : operand->meta.shape)
      hash = (hash ^ static_cast<std::uint64_t>(dim.constant())) * 0x9E3779B97F4A7C15u;
  }
  return hash ^ (hash >> 32);
}

}  // namespace

bool InferredResults::Call::is_of(const Node& node) const {
  return op == node.op &&
         std::equal(node.operands.begin(), node.operands.end(), operands.begin(), operands.end(),
                    [](const GraphValue* operand, const std::optional<Meta>& meta) {
                      return operand == nullptr ? !meta.has_value() : meta.has_value() && operand->meta == *meta;
                    }) &&
         attributes == node.attributes;
}

const std::vector<Meta>& InferredResults::of(const Node& node, const OpTable& ops) {
  const std::size_t hash = hash_of(node);
  const auto [begin, end] = calls_.equal_range(hash);
  for (auto known = begin; known != end; ++known)
    if (known->second.is_of(node)) return known->second.results;
  Call call{.op = node.op, .operands = {}, .attributes = node.attributes, .results = {}};
  for (const GraphValue* operand : node.operands)
    call.operands.push_back(operand == nullptr ? std::nullopt : std::optional(operand->meta));
  call.results = infer_results(*node.op, ops, call.operands, node.attributes);
  if (calls_.size() >= kMostCalls) calls_.clear();
  return calls_.emplace(hash, std::move(call))->second.results;
}

}  // namespace weft
