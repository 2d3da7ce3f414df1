#include "passes/profit.h"

#include <set>

namespace weft {
namespace {

std::int64_t bytes_at(const Meta& meta, std::int64_t rows) {
  if (!meta.is_tensor()) return 0;
  const Dim bytes = meta.bytes();
  if (bytes.is_number()) return bytes.number();
  std::set<std::string> symbols;
  bytes.collect_symbols(symbols);
  Bindings bindings;
  for (const std::string& symbol : symbols) bindings[symbol] = rows;
  return bytes.evaluate(bindings);
}

bool moves(const Op& op) { return !op.is_view && !op.is_allocation; }

}  // namespace

std::int64_t traffic_of(std::span<Node* const> nodes, std::int64_t rows) {
  std::int64_t bytes = 0;
  for (const Node* node : nodes) {
    if (!moves(*node->op)) continue;
    for (const GraphValue* operand : node->operands)
      if (operand != nullptr) bytes += bytes_at(operand->meta, rows);
    for (const auto& result : node->results) bytes += bytes_at(result->meta, rows);
  }
  return bytes;
}

std::int64_t traffic_of(std::span<const PlannedCall> calls, std::int64_t rows) {
  std::int64_t bytes = 0;
  for (const PlannedCall& call : calls) {
    if (!moves(*call.op)) continue;
    for (const std::optional<Meta>& operand : call.operands)
      if (operand) bytes += bytes_at(*operand, rows);
    for (const Meta& result : call.results) bytes += bytes_at(result, rows);
  }
  return bytes;
}

}  // namespace weft
