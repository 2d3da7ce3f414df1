#include "kernels/tuned_call.h"

#include <algorithm>
#include <set>

namespace weft {
namespace {

using Operands = std::span<const std::optional<Meta>>;

// `rows` replaces s0 in `pattern`.
bool agrees(const Meta& pattern, const Meta& given, const Dim& rows) {
  if (pattern.kind != given.kind || pattern.dtype != given.dtype || pattern.rank() != given.rank() ||
      !(pattern.kv == given.kv) || !(pattern.device == given.device))
    return false;
  for (std::size_t i = 0; i < pattern.rank(); ++i) {
    const Dim& dim = pattern.shape[i];
    if (!(given.shape[i] == (dim.is_number() ? dim : dim.substitute({{kRowsSymbol, rows}})))) return false;
  }
  return true;
}

// Returns the dim of the call that is where the pattern has its rows.
Dim rows_of(Operands pattern, Operands given) {
  for (std::size_t i = 0; i < std::min(pattern.size(), given.size()); ++i) {
    if (!pattern[i] || !given[i] || pattern[i]->rank() != given[i]->rank()) continue;
    for (std::size_t j = 0; j < pattern[i]->rank(); ++j)
      if (pattern[i]->shape[j].symbol_name() == kRowsSymbol) return given[i]->shape[j];
  }
  return Dim::symbol(kRowsSymbol);
}

bool all_agree(Operands pattern, Operands given, bool may_lack) {
  if (pattern.size() != given.size() && !may_lack) return false;
  const Dim rows = rows_of(pattern, given);
  for (std::size_t i = 0; i < std::min(pattern.size(), given.size()); ++i) {
    if (!pattern[i] || !given[i]) {
      if (may_lack || (!pattern[i] && !given[i])) continue;
      return false;
    }
    if (!agrees(*pattern[i], *given[i], rows)) return false;
  }
  return true;
}

std::vector<std::optional<Meta>> with_rows(Operands pattern, std::int64_t rows) {
  std::vector<std::optional<Meta>> operands(pattern.begin(), pattern.end());
  for (std::optional<Meta>& operand : operands)
    for (std::size_t i = 0; operand && i < operand->rank(); ++i)
      operand->shape[i] = operand->shape[i].substitute({{kRowsSymbol, Dim(rows)}});
  return operands;
}

}  // namespace

bool TunedCall::holds_for(const KernelRequest& request) const {
  return range == request.range && attributes == request.attributes && all_agree(operands, request.operands, false);
}

bool TunedCall::is_about(const KernelRequest& request) const {
  return attributes == request.attributes && all_agree(operands, request.operands, true);
}

bool TunedCall::overlaps(const TunedCall& other) const {
  if (!(range == other.range) || !(attributes == other.attributes)) return false;
  std::set<std::int64_t> counts{range.lo};
  for (const TunedCall* call : {this, &other})
    for (const std::optional<Meta>& operand : call->operands)
      for (std::size_t i = 0; operand && i < operand->rank(); ++i)
        if (const Dim& dim = operand->shape[i]; dim.is_number()) counts.insert(dim.number());
  return std::any_of(counts.begin(), counts.end(), [&](std::int64_t count) {
    return count >= range.lo && count <= range.hi &&
           all_agree(with_rows(operands, count), with_rows(other.operands, count), false);
  });
}

Meta plain_meta(Meta meta) {
  meta.strides.clear();
  meta.packed.clear();
  return meta;
}

}  // namespace weft
