// Every op on every sample, compiled once for a range of rows, with generated code and without. At no rows, at one, at
// the bounds and next to them, the bits are those of the same kernels run op by op at that row count.

#include <cstdio>
#include <map>

#include <gtest/gtest.h>

#include "compiler/check/tensor_difference.h"
#include "compiler/pipeline.h"
#include "compiler/run/graph_program.h"
#include "runtime/replay.h"
#include "tests/compiled_graph.h"
#include "tests/test_context.h"

namespace weft::compiled_rows_test {

constexpr TokenRange kRange = {1, 8};
constexpr std::int64_t kCounts[] = {8, 0, 1, 2, 7, 5};

// A sample of an op as a call with any number of rows.
struct RowsOfSample {
  const Op& op;
  const OpTable& ops;
  const Sample& sample;
  DType dtype;
  std::set<std::size_t> tensors = tensors_with_rows(op, ops, sample);

  SampleCall call(std::int64_t rows) const {
    return make_sample_call(op, with_row_count(sample, tensors, rows), dtype);
  }
  std::vector<std::optional<Meta>> metas(std::int64_t rows) const {
    return sample_metas(op, with_row_count(sample, tensors, rows), dtype);
  }
};

// The call in which each extent that changes with the rows is s0; null if they change otherwise, or if a batch
// determines the number (tests/engine has those).
std::shared_ptr<Graph> graph_of_rows(const RowsOfSample& rows) {
  SampleCall most = rows.call(kRange.hi);
  const auto fewer = rows.metas(kRange.hi - 1);
  for (std::size_t i = 0; i < most.operands.size(); ++i) {
    if (!most.operands[i].defined()) continue;
    if (most.operands[i].meta.kind == MetaKind::batch) return nullptr;
    Shape& shape = most.operands[i].meta.shape;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      if (shape[dim] == fewer[i]->shape[dim]) continue;
      if (!(shape[dim] == Dim(kRange.hi)) || !most.operands[i].meta.is_contiguous()) return nullptr;
      shape[dim] = Dim::symbol("s0");
    }
  }
  auto graph = graph_of_call(rows.op, most.operands, most.attributes, rows.ops);
  graph->bounds["s0"] = {kRange.lo, kRange.hi};
  return graph;
}

class CompiledRows : public ::testing::Test {
 protected:
  // For every sample with rows, at most `most_samples` of an op.
  void hold(const Context& context, std::size_t most_samples) {
    int calls = 0;
    for (const auto& [name, op] : context.ops.all()) {
      std::size_t tried = 0;
      for (const Sample& sample : op.samples)
        for (const DType dtype : sample_dtypes(sample)) {
          const RowsOfSample rows{op, context.ops, sample, dtype};
          if (rows.tensors.empty() || tried == most_samples) continue;
          const auto graph = graph_of_rows(rows);
          if (graph == nullptr) continue;
          ++tried;
          hold_at_every_count(*graph, rows, context);
          ++calls;
        }
    }
    EXPECT_GT(calls, 100);
    std::printf("count: %d calls compiled, each at %zu counts of rows\n", calls, std::size(kCounts));
  }

  static void hold_at_every_count(const Graph& graph, const RowsOfSample& rows, const Context& context) {
    const auto lowered = graph.clone();
    Replay replay(compile(*lowered, context, kRange, {}).plan, *context.threads, &context.groups);
    for (const std::int64_t count : kCounts) {
      const SampleCall call = rows.call(count);
      std::vector<Tensor> inputs, own;
      for (const Tensor& operand : call.operands) {
        if (!operand.defined()) continue;
        inputs.push_back(operand);
        replay.bind(inputs.size() - 1, own.emplace_back(copy_of(operand)));
      }
      replay.run();
      std::vector<Tensor> came;
      for (std::size_t i = 0; i < graph.results().size(); ++i) came.push_back(copy_of(replay.result(i)));
      EXPECT_EQ(first_difference(graph, run_eagerly(graph, context, kRange, inputs), came), "")
          << call.text << " at " << count << " rows";
    }
  }
};

TEST_F(CompiledRows, GiveTheBitsOfEagerAtEveryCountInKernelsAlone) { hold(*kernel_context(), 1000); }

TEST_F(CompiledRows, GiveTheBitsOfEagerAtEveryCountWithCodeGenerated) { hold(*test_context(), 1000); }

}  // namespace weft::compiled_rows_test
