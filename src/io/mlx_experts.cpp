#include "io/mlx_experts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::string_view kStack = ".switch_mlp.", kExperts = ".experts.", kMixtral = ".block_sparse_moe";

// mlx-lm's names, and those of Mixtral in transformers.
constexpr std::pair<std::string_view, std::string_view> kNamesOfMixtral[] = {
    {"gate_proj", "w1"}, {"down_proj", "w2"}, {"up_proj", "w3"}};

// "gate_proj.weight" with the first part replaced, if it is `from`.
std::string with_first_part(std::string_view rest, std::string_view from, std::string_view to) {
  const bool is_it = rest.starts_with(from) && (rest.size() == from.size() || rest[from.size()] == '.');
  return is_it ? std::string(to) + std::string(rest.substr(from.size())) : std::string(rest);
}

TensorEntry expert_of(const TensorEntry& stack, std::size_t at, std::int64_t expert) {
  const std::string before = stack.name.substr(0, at);
  std::string rest = stack.name.substr(at + kStack.size());
  if (before.ends_with(kMixtral))
    for (const auto& [from, to] : kNamesOfMixtral) rest = with_first_part(rest, from, to);
  TensorEntry one{
      .name = fmt::format("{}{}{}.{}", before, kExperts, expert, rest), .tensor = stack.tensor, .file = stack.file};
  Shape& shape = one.tensor.meta.shape;
  shape.erase(shape.begin());
  one.tensor.byte_offset += expert * one.tensor.meta.bytes().number();
  return one;
}

}  // namespace

bool split_expert_stacks(std::vector<TensorEntry>& tensors) {
  const auto is_stack = [](const TensorEntry& entry) {
    return entry.name.find(kStack) != std::string::npos && entry.tensor.meta.rank() > 1;
  };
  if (std::none_of(tensors.begin(), tensors.end(), is_stack)) return false;
  for (TensorEntry& entry : std::exchange(tensors, {})) {
    if (!is_stack(entry)) {
      tensors.push_back(std::move(entry));
      continue;
    }
    const std::int64_t experts = entry.tensor.meta.shape[0].number();
    for (std::int64_t expert = 0; expert < experts; ++expert)
      tensors.push_back(expert_of(entry, entry.name.find(kStack), expert));
  }
  return true;
}

std::string stack_of_expert(std::string_view module) {
  const std::size_t at = module.find(kExperts);
  if (at == std::string_view::npos) return "";
  const std::size_t dot = module.find('.', at + kExperts.size());
  if (dot == std::string_view::npos) return "";
  std::string rest(module.substr(dot + 1));
  if (module.substr(0, at).ends_with(kMixtral))
    for (const auto& [to, from] : kNamesOfMixtral) rest = with_first_part(rest, from, to);
  return std::string(module.substr(0, at)) + std::string(kStack) + rest;
}

}  // namespace weft
