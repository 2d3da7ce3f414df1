#include "io/mlx_stacks.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

constexpr std::string_view kPart = "{}";

// What the names of stacks have, and what those of their parts have in its place. The first that is found counts.
struct StackName {
  std::string_view stack, parts;
};
constexpr StackName kStackNames[] = {
    {".block_sparse_moe.switch_mlp.gate_proj.", ".block_sparse_moe.experts.{}.w1."},
    {".block_sparse_moe.switch_mlp.down_proj.", ".block_sparse_moe.experts.{}.w2."},
    {".block_sparse_moe.switch_mlp.up_proj.", ".block_sparse_moe.experts.{}.w3."},
    {".switch_mlp.", ".experts.{}."},
    {".experts.switch_glu.", ".experts.{}."},
    {".experts.gate_proj.", ".experts.{}.gate_proj."},
    {".experts.down_proj.", ".experts.{}.down_proj."},
    {".experts.up_proj.", ".experts.{}.up_proj."},
    {".self_attn.embed_q.", ".self_attn.embed_q.{}."},
    {".self_attn.unembed_out.", ".self_attn.unembed_out.{}."},
};

// The name of the tensors of the parts; "" if the tensor is no stack.
std::string parts_of_tensor(const std::string& name) {
  for (const auto& [stack, parts] : kStackNames)
    if (const std::size_t at = name.find(stack); at != std::string::npos)
      return std::string(name).replace(at, stack.size(), parts);
  return "";
}

std::string parts_of(const TensorEntry& entry) {
  return entry.tensor.meta.rank() > 1 ? parts_of_tensor(entry.name) : "";
}

TensorEntry part_of(const TensorEntry& stack, std::string name, std::int64_t part) {
  name.replace(name.find(kPart), kPart.size(), std::to_string(part));
  TensorEntry one{.name = std::move(name), .tensor = stack.tensor, .file = stack.file};
  Shape& shape = one.tensor.meta.shape;
  shape.erase(shape.begin());
  one.tensor.byte_offset += part * one.tensor.meta.bytes().number();
  return one;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

bool split_stacks(std::vector<TensorEntry>& tensors) {
  const auto is_stack = [](const TensorEntry& entry) { return !parts_of(entry).empty(); };
  if (std::none_of(tensors.begin(), tensors.end(), is_stack)) return false;
  for (TensorEntry& entry : std::exchange(tensors, {})) {
    const std::string parts = parts_of(entry);
    if (parts.empty()) {
      tensors.push_back(std::move(entry));
      continue;
    }
    const std::int64_t count = entry.tensor.meta.shape[0].number();
    for (std::int64_t part = 0; part < count; ++part) tensors.push_back(part_of(entry, parts, part));
  }
  return true;
}

std::string parts_of_stack(const std::string& module) {
  std::string parts = parts_of_tensor(module + ".");
  if (!parts.empty()) parts.pop_back();
  return parts;
}

// The first number of a name is the layer.
std::string parts_with(std::string_view part) {
  int numbers = 0;
  for (std::size_t begin = 0; begin < part.size();) {
    const std::size_t end = std::min(part.find('.', begin), part.size());
    if (is_number(part.substr(begin, end - begin)) && ++numbers == 2)
      return std::string(part).replace(begin, end - begin, kPart);
    begin = end + 1;
  }
  return "";
}

}  // namespace weft
