#include "runtime/generated_kernel.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "base/error.h"
#include "kernels/launch_queue.h"
#include "kernels/row_chunks.h"

namespace weft {
namespace {

// RowFunction of codegen/row_program.h.
using RowCode = void(void* const* buffers, std::int64_t row_begin, std::int64_t row_end, std::int64_t row_count);

constexpr std::size_t kMostFunctionBuffers = 32;

struct BufferList {
  std::array<void*, kMostFunctionBuffers> data;
  std::size_t count = 0;
  void add(void* buffer) { data[count++] = buffer; }
};

// Checks the row indices, because the generated function itself checks no bounds.
void check(const RowNumbers& numbers, const KernelCall& call) {
  const auto operand = static_cast<std::size_t>(numbers.operand);
  CHECK(operand < call.operands.size(), "operand {} numbers rows, but there are {}", operand, call.operands.size());
  const TensorView& view = call.operands[operand];
  for (std::int64_t i = 0; i < view.size[0]; ++i) {
    const std::int64_t row = index_at(view, i);
    USER_CHECK(row >= 0 && row < numbers.limit, "[index_select] index {} is outside [0, {})", row, numbers.limit);
  }
}

void run_function(const GeneratedFunction& function, RowCode* code, const KernelCall& call) {
  for (const RowNumbers& numbers : function.numbers) check(numbers, call);
  const std::int64_t rows = call.results[0].size[0] * function.parts;
  BufferList shared;
  for (const TensorView& view : call.operands) shared.add(view.data);
  for (const TensorView& view : call.results) shared.add(view.data);
  const std::int64_t scratch = whole_cache_lines(function.scratch_bytes);
  CHECK(scratch * call.threads.threads() <= static_cast<std::int64_t>(call.scratch.size()),
        "{} was planned for fewer than {} threads", function.name, call.threads.threads());
  const auto run_rows = [&](std::int64_t begin, std::int64_t end, int thread) {
    if (scratch == 0) return code(shared.data.data(), begin, end, rows);
    BufferList own = shared;
    own.add(call.scratch.data() + thread * scratch);
    code(own.data.data(), begin, end, rows);
  };
  const std::int64_t chunk = function.chunks > 0
                                 ? std::max<std::int64_t>(1, (rows + function.chunks - 1) / function.chunks)
                                 : rows_of_chunk(rows, function.row_bytes, call.threads.threads());
  if (chunk >= rows) return run_rows(0, rows, 0);
  call.threads.run((rows + chunk - 1) / chunk, [&](std::int64_t number, int thread) {
    run_rows(number * chunk, std::min(rows, (number + 1) * chunk), thread);
  });
}

void launch_function(const std::string& symbol, const GeneratedFunction& function, int block_threads,
                     const KernelCall& call) {
  BufferList arguments;
  for (const TensorView& view : call.operands) arguments.add(view.data);
  for (const TensorView& view : call.results) arguments.add(view.data);
  arguments.add(nullptr);  // the first row, 0
  const std::int64_t rows = call.results[0].size[0] * function.parts;
  CHECK(rows <= std::numeric_limits<std::int32_t>::max(), "{} has {} rows, more than a launch has blocks",
        function.name, rows);
  if (rows == 0) return;
  call.queue->launch(symbol,
                     {.blocks = static_cast<std::uint32_t>(rows), .threads = static_cast<std::uint32_t>(block_threads)},
                     std::as_bytes(std::span(arguments.data).first(arguments.count)));
}

Kernel named_kernel(const GeneratedFunction& function) {
  Kernel kernel;
  kernel.op = function.name;
  kernel.provider = "native";
  kernel.origin = "generated";
  return kernel;
}

}  // namespace

std::string symbol_of(const GeneratedFunction& function) { return function.name.substr(0, function.name.find('.')); }

Kernel generated_kernel(const GeneratedFunction& function, std::shared_ptr<const LoadedCode> code, int threads) {
  auto* entry = code->find<RowCode>(symbol_of(function));
  Kernel kernel = named_kernel(function);
  kernel.note = "parallel over rows, generated";
  kernel.may_lie_over = function.over;
  if (function.scratch_bytes > 0)
    kernel.scratch_bytes = [bytes = whole_cache_lines(function.scratch_bytes) * threads](const KernelRequest&) {
      return Dim(bytes);
    };
  kernel.run = [function, entry, code = std::move(code)](const KernelCall& call) {
    CHECK(call.operands.size() + call.results.size() < kMostFunctionBuffers, "{} has too many buffers", function.name);
    run_function(function, entry, call);
  };
  return kernel;
}

Kernel launched_kernel(const GeneratedFunction& function, int block_threads) {
  Kernel kernel = named_kernel(function);
  kernel.note = "a block for each row, generated";
  kernel.launches = true;
  kernel.run = [function, symbol = symbol_of(function), block_threads](const KernelCall& call) {
    if (call.queue == nullptr)
      fail_device("[{}] is compiled for the device alone: wanted a call with a queue that launches it, but it has none",
                  function.name);
    CHECK(call.operands.size() + call.results.size() < kMostFunctionBuffers, "{} has too many buffers", function.name);
    launch_function(symbol, function, block_threads, call);
  };
  return kernel;
}

}  // namespace weft
