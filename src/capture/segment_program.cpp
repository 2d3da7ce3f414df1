#include "capture/segment_program.h"

#include <cstring>

#include "base/error.h"
#include "ir/alias.h"
#include "tensor/footprint.h"

namespace weft {
namespace {

// The inputs that functionalize will find to be donated.
std::vector<std::size_t> donated_inputs(const Graph& traced) {
  std::set<const GraphValue*> roots;
  for (const auto& node : traced.nodes())
    for (const Donation& donation : node->op->donates)
      if (const GraphValue* given = node->operands[static_cast<std::size_t>(donation.argument)];
          node->maybe_inplace && given != nullptr)
        roots.insert(storage_root(given));
  std::vector<std::size_t> donated;
  for (std::size_t i = 0; i < traced.inputs().size(); ++i)
    if (traced.inputs()[i]->donated || roots.contains(traced.inputs()[i].get())) donated.push_back(i);
  return donated;
}

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& input : graph.inputs()) names.push_back(input->name);
  return names;
}

}  // namespace

SegmentProgram::SegmentProgram(const Context& context, SegmentGraph built)
    : inputs_(std::move(built.inputs)),
      results_(std::move(built.results)),
      names_(input_names(*built.graph)),
      donated_(donated_inputs(*built.graph)),
      program_(context, built.graph) {}

std::vector<Tensor> SegmentProgram::run(std::span<const Tensor> tensors) {
  for (const std::size_t given : donated_)
    for (std::size_t i = 0; i < tensors.size(); ++i)
      USER_CHECK(i == given || !may_share_memory(tensors[given], tensors[i]),
                 "[compile] {} is donated, but {} shares memory with it", names_[given], names_[i]);
  return program_.run(tensors);
}

Tensor owned(const Tensor& tensor, std::span<const Tensor> given, StoragePool& pool) {
  for (const Tensor& other : given)
    if (other.storage == tensor.storage) return tensor;
  const std::int64_t bytes = tensor.meta.bytes().number();
  Tensor copy{.meta = tensor.meta, .storage = pool.allocate(bytes)};
  std::memcpy(copy.data(), tensor.data(), static_cast<std::size_t>(bytes));
  return copy;
}

}  // namespace weft
