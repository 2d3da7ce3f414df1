// attention over paged K and V. Parallel over sequences, KV heads and blocks of query rows; all query heads of a KV
// head and several tokens share each load of K and V, so a prompt of n tokens reads its K and V n / 2 times from the
// cache (three query heads a KV head), a decoded token once.

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/attention_variant.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

enum Operand : std::size_t { kQuery, kKv, kBatch };

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

std::int64_t thread_scratch_bytes(std::int64_t head_dim) { return (attention_scratch_bytes(head_dim) + 63) / 64 * 64; }

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

void check_batch(const Batch& batch, std::int64_t tokens, std::int64_t block, std::int64_t pages) {
  CHECK(batch.query_starts[0] == 0 && batch.query_starts[batch.sequences] == tokens,
        "[attention] the batch holds {} query rows, but query has {}", batch.query_starts[batch.sequences], tokens);
  for (std::int32_t i = 0; i < batch.sequences; ++i) {
    const std::int64_t count = batch.query_starts[i + 1] - batch.query_starts[i];
    if (count == 0) continue;
    const std::int64_t blocks = (batch.lengths[i] + block - 1) / block;
    CHECK(count > 0 && batch.lengths[i] >= count && blocks <= batch.max_blocks,
          "[attention] sequence {} has {} query rows, {} tokens and room for {} blocks of {}", i, count,
          batch.lengths[i], batch.max_blocks, block);
    const std::int32_t* table = batch.block_table + static_cast<std::int64_t>(i) * batch.max_blocks;
    for (std::int64_t b = 0; b < blocks; ++b) {
      CHECK(table[b] >= 0 && table[b] < pages, "[attention] page {} of sequence {} is {}, but there are {}", b, i,
            table[b], pages);
    }
  }
}

// What all chunks share, and where each finds its own part.
class Attention {
 public:
  Attention(const AttentionKernels& kernels, const KernelCall& call)
      : query_(call.operands[kQuery]),
        output_(call.results[0]),
        kv_(call.operands[kKv].meta->kv),
        batch_(*call.operands[kBatch].as<Batch>()),
        scratch_(call.scratch.data()),
        attend_(kernels.attend[static_cast<std::size_t>(element_of(kv_.dtype))]),
        group_(query_.size[1] / kv_.heads) {
    check_batch(batch_, query_.size[0], kv_.block, call.operands[kKv].size[0]);
    shared_.element = element_of(query_.dtype);
    shared_.query_token_stride = query_.stride[0];
    shared_.output_token_stride = output_.stride[0];
    shared_.group = group_;
    shared_.head_dim = kv_.head_dim;
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
    AttentionTask task = shared_;
    task.query = query_.data + (sequence.first_token * query_.stride[0] + head_offset) * bytes;
    task.output = output_.data + (sequence.first_token * output_.stride[0] + head_offset) * bytes;
    task.first_row = chunk % sequence.blocks * kChunkRows;
    task.last_row = std::min(task.first_row + kChunkRows, sequence.rows);
    task.first_length = batch_.lengths[index] - sequence.rows / group_ + 1;
    task.key_offset = kv_key_offset(kv_, 0, kv_head);
    task.block_table = batch_.block_table + static_cast<std::int64_t>(index) * batch_.max_blocks;
    task.scratch = scratch_ + thread * thread_scratch_bytes(kv_.head_dim);
    attend_(task);
  }

  const TensorView& query_;
  const TensorView& output_;
  const KvLayout& kv_;
  const Batch& batch_;
  std::byte* scratch_;
  void (*attend_)(const AttentionTask&);
  std::int64_t group_;
  AttentionTask shared_;
  std::int64_t chunks_ = 0;
  std::int64_t work_ = 0;
};

void prepare(Kernel& kernel, const DeviceDescription& device) {
  kernel.scratch_bytes = [threads = device.threads](const KernelRequest& request) {
    return Dim(threads * thread_scratch_bytes(request.operands[kKv]->kv.head_dim));
  };
  kernel.run = [&kernels = attention_kernels_for(device.features)](const KernelCall& call) {
    Attention(kernels, call).run(call.threads);
  };
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, attention) {
  registry.add({.op = "attention",
                .provider = "cpu",
                .supports = weft::cpu::supports,
                .prepare = weft::cpu::prepare,
                .note = "sequences, KV heads and blocks of rows in parallel; baseline, AVX2, AVX-512"});
}
