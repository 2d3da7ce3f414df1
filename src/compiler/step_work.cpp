#include "compiler/step_work.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "tensor/kv_pages.h"

namespace weft {
namespace {

constexpr const char* kAttention = "attention";
constexpr std::int64_t kElements = 64;  // whole blocks of every dtype

std::int64_t bytes_of_token(const KvLayout& kv) { return bytes_of(kv.dtype, kv_token_elements(kv)); }

std::int64_t bytes_of_elements(const Meta& meta, const Bindings& symbols) {
  return bytes_of(meta.dtype, element_count(meta.shape).evaluate(symbols));
}

class Counter {
 public:
  Counter(const StepSizes& sizes, const ParamBytes& bytes_of_param) : sizes_(sizes), bytes_of_param_(bytes_of_param) {}

  // `params`: the params among the inputs of the graph.
  void add(const Graph& graph, std::map<const GraphValue*, const GraphValue*> params) {
    for (const auto& node : graph.nodes()) {
      const auto param_of = [&](const GraphValue* value) {
        const auto found = params.find(value);
        return found == params.end() ? nullptr : found->second;
      };
      if (node->kind == NodeKind::call) {
        const Graph* piece = graph.find_piece(node->name);
        CHECK(piece != nullptr, "there is no piece named {}", node->name);
        std::map<const GraphValue*, const GraphValue*> inner;
        for (std::size_t i = 0; i < node->operands.size(); ++i)
          if (const GraphValue* param = param_of(node->operands[i])) inner[piece->inputs()[i].get()] = param;
        add(*piece, std::move(inner));
      } else if (node->op->is_view) {
        if (const GraphValue* param = param_of(node->operands[0])) params[node->result()] = param;
      } else {
        add(*node, param_of);
      }
    }
  }

  StepWork work;

 private:
  template <typename ParamOf>
  void add(const Node& node, const ParamOf& param_of) {
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (const GraphValue* param = node.operands[i] == nullptr ? nullptr : param_of(node.operands[i]))
        add_param(*param, node.op->gathers && node.op->gathers->table == static_cast<int>(i) ? elements_of(node) : -1);
    add_products(node);
    add_pages(node);
  }

  // The elements that the node gathers of its table.
  std::int64_t elements_of(const Node& node) const {
    const Gather& gather = *node.op->gathers;
    return gathered_elements(node.operands[static_cast<std::size_t>(gather.table)]->meta,
                             node.operands[static_cast<std::size_t>(gather.indices)]->meta, node.attributes)
        .evaluate(sizes_.symbols);
  }

  // `gathered`: the elements that are gathered of it; -1 where all of it is read.
  void add_param(const GraphValue& param, std::int64_t gathered) {
    if (gathered < 0) {
      if (whole_.insert(&param).second) work.weight_bytes += bytes_of_param_(param);
      return;
    }
    // Every layer gathers, but the layers' rows are the same ones.
    if (!gathered_.insert(&param).second) return;
    work.weight_bytes += bytes_of(param.meta.dtype, std::min(gathered, element_count(param.meta.shape).number()));
  }

  void add_products(const Node& node) {
    const int weight = node.op->schema.parameter_index("weight");
    if (node.name.find("linear") == std::string::npos || weight < 0) return;
    const Meta& x = node.operands[0]->meta;
    const Shape& shape = node.operands[static_cast<std::size_t>(weight)]->meta.shape;
    const Dim& columns = shape[shape.size() - 2];  // also in a stack of weights, of which each row uses one
    const std::int64_t elements = element_count(x.shape).evaluate(sizes_.symbols);
    const std::int64_t operations = 2 * elements * columns.number();
    work.product_operations += operations;
    add_by_bits(x.dtype, operations);
  }

  void add_by_bits(DType dtype, std::int64_t operations) {
    const std::int64_t bytes = bytes_of(dtype, kElements);
    if (bytes == 2 * kElements) work.operations_of_16_bits += operations;
    if (bytes <= kElements) work.operations_of_8_bits += operations;
  }

  void add_pages(const Node& node) {
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const GraphValue* pages = node.operands[i];
      if (pages == nullptr || pages->meta.kind != MetaKind::kv) continue;
      const bool is_written = std::any_of(node.op->donates.begin(), node.op->donates.end(), [&](const auto& donation) {
        return donation.argument == static_cast<int>(i);
      });
      const KvLayout& kv = pages->meta.kv;
      if (kv.state_rows != 0) {
        const std::int64_t bytes = sizes_.sequences * kv_page_bytes(kv);
        work.kv_written_bytes += bytes;
        if (sizes_.cached > 0) work.kv_read_bytes += bytes;
      } else if (is_written) {
        work.kv_written_bytes += sizes_.rows * bytes_of_token(kv);
      } else if (node.name == kAttention || node.op->splits_as == kAttention) {
        add_attention(node, kv);
      }
    }
  }

  void add_attention(const Node& node, const KvLayout& kv) {
    const Attribute& window = node.attributes.at("window");
    const std::int64_t rows = sizes_.rows / sizes_.sequences;  // of a sequence
    const std::int64_t most = window.is_none() ? sizes_.cached + rows : window.integer();
    std::int64_t pairs = 0;  // of a row and a token that it sees
    for (std::int64_t row = 0; row < rows; ++row) pairs += sizes_.sequences * std::min(most, sizes_.cached + row + 1);
    const Meta& query = node.operands[0]->meta;  // [rows, heads, head_dim]
    const std::int64_t operations = 2 * 2 * pairs * query.shape[1].number() * query.shape[2].number();
    work.attention_operations += operations;
    add_by_bits(query.dtype, operations);
    work.kv_read_bytes += sizes_.sequences * std::min(sizes_.cached, most - 1) * bytes_of_token(kv);
  }

  const StepSizes& sizes_;
  const ParamBytes& bytes_of_param_;
  std::set<const GraphValue*> whole_, gathered_;
};

}  // namespace

StepWork& StepWork::operator+=(const StepWork& more) {
  weight_bytes += more.weight_bytes;
  kv_read_bytes += more.kv_read_bytes;
  kv_written_bytes += more.kv_written_bytes;
  activation_bytes += more.activation_bytes;
  product_operations += more.product_operations;
  attention_operations += more.attention_operations;
  operations_of_16_bits += more.operations_of_16_bits;
  operations_of_8_bits += more.operations_of_8_bits;
  return *this;
}

StepWork work_of(const Graph& graph, const StepSizes& sizes, const ParamBytes& bytes_of_param) {
  Counter counter(sizes, bytes_of_param);
  std::map<const GraphValue*, const GraphValue*> params;
  for (const auto& input : graph.inputs())
    if (input->param) params[input.get()] = input.get();
  counter.add(graph, std::move(params));
  return counter.work;
}

std::int64_t activation_bytes(const Plan& plan, const Bindings& symbols) {
  std::int64_t bytes = 0;
  const auto add = [&](const PlanView& view) {
    if (view.slot < 0 || !view.meta.is_tensor()) return;
    const SlotKind kind = plan.slots[static_cast<std::size_t>(view.slot)].kind;
    if (kind == SlotKind::arena || kind == SlotKind::input) bytes += bytes_of_elements(view.meta, symbols);
  };
  for (const PlanStep& step : plan.steps) {
    for (const PlanView& operand : step.operands) add(operand);
    for (const PlanView& result : step.results) add(result);
  }
  return bytes;
}

}  // namespace weft
