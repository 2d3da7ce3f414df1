#include "ir/inferred_results.h"

#include <algorithm>

namespace weft {
namespace {

// A model has a few dozen different calls. Only a graph whose calls never repeat reaches this limit; the cache is then
// cleared.
constexpr std::size_t kMostCalls = 4096;

std::size_t hash_of(const Op& op, std::span<const Meta* const> operands) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(&op);
  for (const Meta* operand : operands) {
    hash = hash * 31 + 1;
    if (operand == nullptr) continue;
    for (const Dim& dim : operand->shape)
      hash = (hash ^ static_cast<std::uint64_t>(dim.constant())) * 0x9E3779B97F4A7C15u;
  }
  return hash ^ (hash >> 32);
}

}  // namespace

bool InferredResults::Call::is_of(const Op& called, std::span<const Meta* const> given,
                                  const Attributes& complete) const {
  return op == &called &&
         std::equal(given.begin(), given.end(), operands.begin(), operands.end(),
                    [](const Meta* operand, const std::optional<Meta>& meta) {
                      return operand == nullptr ? !meta.has_value() : meta.has_value() && *operand == *meta;
                    }) &&
         attributes == complete;
}

const std::vector<Meta>& InferredResults::of(const Op& op, std::span<const Meta* const> operands,
                                             const Attributes& attributes, const OpTable& ops) {
  const std::size_t hash = hash_of(op, operands);
  const auto [begin, end] = calls_.equal_range(hash);
  for (auto known = begin; known != end; ++known)
    if (known->second.is_of(op, operands, attributes)) return known->second.results;
  Call call{.op = &op, .operands = {}, .attributes = attributes, .results = {}};
  for (const Meta* operand : operands)
    call.operands.push_back(operand == nullptr ? std::nullopt : std::optional(*operand));
  call.results = infer_results(op, ops, call.operands, attributes);
  if (calls_.size() >= kMostCalls) calls_.clear();
  return calls_.emplace(hash, std::move(call))->second.results;
}

const std::vector<Meta>& InferredResults::of(const Node& node, const OpTable& ops) {
  metas_.clear();
  for (const GraphValue* operand : node.operands) metas_.push_back(operand == nullptr ? nullptr : &operand->meta);
  return of(*node.op, metas_, node.attributes, ops);
}

}  // namespace weft
