// attention over paged K and V. Parallel over sequences, KV heads and blocks of query rows; all query heads of a KV
// head and several tokens share each load of K and V, so a prompt of n tokens reads its K and V n / 2 times from the
// cache (three query heads a KV head), a decoded token once. Where a quantisation follows, a chunk's results wait in
// its thread's scratch and leave as codes.

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/attention_variant.h"
#include "kernels/cpu/lib/quant_tail.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/registry.h"
#include "tensor/batch.h"

namespace weft::cpu {
namespace {

enum Operand : std::size_t { kQuery, kKv, kBatch, kOfTail };

// Rows (query head and token) of one chunk: several tiles, few enough to share a short prompt among the threads.
constexpr std::int64_t kChunkRows = 8 * kAttentionRows;
// Multiply-adds below which a thread is not woken (measured: 20 a nanosecond and core).
constexpr std::int64_t kSerialWork = 100'000;

Verdict supports(const KernelRequest& request) {
  const std::optional<Meta>& query = request.operands[kQuery];
  const KvLayout& kv = request.operands[kKv]->kv;
  if (Verdict verdict = float_rows(query, "query"); !verdict) return verdict;
  if (Verdict verdict = supports_pages(kv); !verdict) return verdict;
  if (query->rank() != 3 || !query->shape[1].is_number()) return Verdict::no("query is not [tokens, heads, head_dim]");
  if (query->shape[1].number() % kv.heads != 0) {
    return Verdict::no(
        fmt::format("{} query heads do not divide among {} KV heads", query->shape[1].number(), kv.heads));
  }
  if (query->shape[1] != Dim(1) && query->full_strides()[1] != Dim(kv.head_dim)) {
    return Verdict::no("heads of query are not side by side");
  }
  return Verdict::yes();
}

// What a thread has for itself: room to attend in, and behind it, where a quantisation follows, the results of a chunk.
// They begin with the token that the chunk's first row belongs to, whose other heads may be another chunk's.
struct ThreadScratch {
  std::int64_t waiting = 0;  // offset of the results
  std::int64_t bytes = 0;
};

ThreadScratch thread_scratch(std::int64_t head_dim, std::int64_t group, DType dtype, bool quantised) {
  ThreadScratch scratch;
  scratch.waiting = scratch.bytes = whole_cache_lines(attention_scratch_bytes(head_dim));
  if (quantised) scratch.bytes += whole_cache_lines((kChunkRows + group) * head_dim * dtype_info(dtype).block_bytes);
  return scratch;
}

// What becomes of results instead of being written.
class QuantisedHeads {
 public:
  QuantisedHeads(const QuantisedRowKernels& kernels, const QuantTail& tail, const KernelCall& call)
      : codes_(call.results[0]), scales_(tail.scales(call)) {
    const TensorView& query = call.operands[kQuery];
    quantise_ = kernels.rows[static_cast<std::size_t>(element_of(query.dtype))];
    task_ = tail.task(call, kOfTail, query.size[1] * query.size[2]);
    task_.rows = 1;
  }

  // Columns [first, first + count) of a token, which `values` begins with.
  void take(const std::byte* values, std::int64_t token, std::int64_t first, std::int64_t count) const {
    QuantTask task = task_;
    task.columns = count;
    task.group = std::min(task.group, count);
    task.x = values;
    task.first_row = token;
    task.codes = reinterpret_cast<std::int8_t*>(codes_.data + bytes_of(codes_.dtype, token * codes_.stride[0] + first));
    if (task.tail == Tail::fp4_groups) {
      task.first_group = first / kFp4Group;
      if (task.scale_tiles == 0)
        task.scale_codes = scales_.as<std::uint8_t>() + token * scales_.stride[0] + task.first_group;
    }
    quantise_(task);
  }

 private:
  const TensorView& codes_;
  const TensorView& scales_;
  void (*quantise_)(const QuantTask&);
  QuantTask task_;
};

// The part of the work that belongs to one sequence.
struct Sequence {
  std::int64_t first_token = 0;
  std::int64_t rows = 0;    // tokens of this step, times `group`
  std::int64_t blocks = 0;  // of kChunkRows
};

Sequence sequence_of(const Batch& batch, std::int32_t index, std::int64_t group) {
  const std::int64_t first = batch.query_starts[index];
  const std::int64_t rows = (batch.query_starts[index + 1] - first) * group;
  return {first, rows, (rows + kChunkRows - 1) / kChunkRows};
}

// What all chunks share, and where each finds its own part.
class Attention {
 public:
  Attention(const AttentionKernels& kernels, const KernelCall& call, const QuantisedHeads* quantised = nullptr)
      : query_(call.operands[kQuery]),
        output_(call.results[0]),
        quantised_(quantised),
        kv_(call.operands[kKv].meta->kv),
        batch_(*call.operands[kBatch].as<Batch>()),
        scratch_(call.scratch.data()),
        attend_(kernels.attend[static_cast<std::size_t>(element_of(kv_.dtype))]),
        group_(query_.size[1] / kv_.heads),
        thread_(thread_scratch(kv_.head_dim, group_, query_.dtype, quantised != nullptr)) {
    check_batch(batch_, query_.size[0], kv_.block, call.operands[kKv].size[0]);
    shared_.element = element_of(query_.dtype);
    shared_.query_token_stride = query_.stride[0];
    shared_.group = group_;
    shared_.head_dim = kv_.head_dim;
    shared_.output_token_stride = quantised == nullptr ? output_.stride[0] : group_ * kv_.head_dim;
    shared_.scale = static_cast<float>(call.attributes.at("scale").real());
    shared_.pages = call.operands[kKv].data;
    shared_.page_elements = kv_page_elements(kv_);
    shared_.block = kv_.block;
    for (std::int32_t i = 0; i < batch_.sequences; ++i) {
      const Sequence sequence = sequence_of(batch_, i, group_);
      chunks_ += sequence.blocks * kv_.heads;
      work_ += 2 * sequence.rows * kv_.heads * kv_.head_dim * batch_.lengths[i];
    }
  }

  void run(ThreadPool& threads) const {
    if (work_ < kSerialWork) {
      for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) run_chunk(chunk, 0);
    } else {
      threads.run(chunks_, [&](std::int64_t chunk, int thread) { run_chunk(chunk, thread); });
    }
  }

 private:
  void run_chunk(std::int64_t chunk, int thread) const {
    std::int32_t index = 0;
    Sequence sequence = sequence_of(batch_, 0, group_);
    while (chunk >= sequence.blocks * kv_.heads) {
      chunk -= sequence.blocks * kv_.heads;
      sequence = sequence_of(batch_, ++index, group_);
    }
    const std::int64_t kv_head = chunk / sequence.blocks;
    const std::int64_t head_offset = kv_head * group_ * kv_.head_dim;
    const std::int64_t bytes = dtype_info(query_.dtype).block_bytes;
    const std::int64_t first_row = chunk % sequence.blocks * kChunkRows;
    const std::int64_t tokens_before = first_row / group_, token = sequence.first_token + tokens_before;
    AttentionTask task = shared_;
    task.query = query_.data + (token * query_.stride[0] + head_offset) * bytes;
    task.first_row = first_row % group_;
    task.last_row = std::min(first_row + kChunkRows, sequence.rows) - tokens_before * group_;
    task.first_length = batch_.lengths[index] - sequence.rows / group_ + 1 + tokens_before;
    task.key_offset = kv_key_offset(kv_, 0, kv_head);
    task.block_table = batch_.block_table + static_cast<std::int64_t>(index) * batch_.max_blocks;
    std::byte* scratch = scratch_ + thread * thread_.bytes;
    task.scratch = scratch;
    if (quantised_ == nullptr) {
      task.output = output_.data + (token * output_.stride[0] + head_offset) * bytes;
      attend_(task);
    } else {
      std::byte* waiting = scratch + thread_.waiting;
      task.output = waiting;
      attend_(task);
      quantise(task, waiting, token, head_offset);
    }
  }

  // Of each token that the chunk has heads of, those side by side.
  void quantise(const AttentionTask& task, const std::byte* waiting, std::int64_t token,
                std::int64_t head_offset) const {
    const std::int64_t bytes = dtype_info(query_.dtype).block_bytes;
    for (std::int64_t row = task.first_row; row < task.last_row;) {
      const std::int64_t heads = std::min(group_ - row % group_, task.last_row - row);
      quantised_->take(waiting + row * kv_.head_dim * bytes, token + row / group_,
                       head_offset + row % group_ * kv_.head_dim, heads * kv_.head_dim);
      row += heads;
    }
  }

  const TensorView& query_;
  const TensorView& output_;
  const QuantisedHeads* quantised_;
  const KvLayout& kv_;
  const Batch& batch_;
  std::byte* scratch_;
  void (*attend_)(const AttentionTask&);
  std::int64_t group_;
  ThreadScratch thread_;
  AttentionTask shared_;
  std::int64_t chunks_ = 0;
  std::int64_t work_ = 0;
};

std::function<Dim(const KernelRequest&)> scratch_of(int threads, bool quantised) {
  return [threads, quantised](const KernelRequest& request) {
    const Meta& query = *request.operands[kQuery];
    const KvLayout& kv = request.operands[kKv]->kv;
    const std::int64_t group = query.shape[1].number() / kv.heads;
    return Dim(threads * thread_scratch(kv.head_dim, group, query.dtype, quantised).bytes);
  };
}

void prepare(Kernel& kernel, const DeviceDescription& device) {
  kernel.scratch_bytes = scratch_of(device.threads, false);
  kernel.run = [&kernels = attention_kernels_for(device.features)](const KernelCall& call) {
    Attention(kernels, call).run(call.threads);
  };
}

// The tails whose groups lie within a head.
constexpr std::string_view kTailsOfHeads[] = {"static_scaled_fp8_quant", "scaled_fp4_quant"};

Kernel quantised_attention_kernel(const QuantTail& tail) {
  const auto supports_quantised = [tail](const KernelRequest& request) {
    if (Verdict verdict = supports(request); !verdict) return verdict;
    const Meta& scale = *request.operands[kOfTail];
    if (element_count(scale.shape) != Dim(1)) return Verdict::no("there is more than one scale");
    if (tail.group > 0 && request.operands[kKv]->kv.head_dim % tail.group != 0)
      return Verdict::no(
          fmt::format("groups of {} do not divide heads of {}", tail.group, request.operands[kKv]->kv.head_dim));
    return tail.supports(request, kOfTail);
  };
  const auto prepare_quantised = [tail](Kernel& kernel, const DeviceDescription& device) {
    const QuantisedRowKernels* rows =
        table_for(device, quantised_row_kernels_baseline, quantised_row_kernels_avx2, quantised_row_kernels_avx512);
    kernel.scratch_bytes = scratch_of(device.threads, true);
    kernel.run = [&kernels = attention_kernels_for(device.features), rows, tail](const KernelCall& call) {
      const QuantisedHeads quantised(*rows, tail, call);
      Attention(kernels, call, &quantised).run(call.threads);
    };
  };
  return {.op = fmt::format("attention_{}", tail.op),
          .provider = "cpu",
          .supports = supports_quantised,
          .prepare = prepare_quantised,
          .note = "attention, whose results are quantised where they lie in L1; baseline, AVX2, AVX-512"};
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, attention) {
  using namespace weft::cpu;
  registry.add({.op = "attention",
                .provider = "cpu",
                .supports = supports,
                .prepare = prepare,
                .note = "sequences, KV heads and blocks of rows in parallel; baseline, AVX2, AVX-512"});
  for (const QuantTail& tail : quant_tails())
    if (std::find(std::begin(kTailsOfHeads), std::end(kTailsOfHeads), tail.op) != std::end(kTailsOfHeads))
      registry.add(quantised_attention_kernel(tail));
}
