// attention over paged K and V. Parallel over sequences, KV heads and blocks of query rows. All query heads of a KV
// head and several tokens share each load of K and V. So a prompt of n tokens reads its K and V n / 2 times from the
// cache (with three query heads per KV head), a decoded token once.
//
// If that leaves threads idle, for example with few KV heads and one long sequence, the segments of the sequence's
// tokens become chunks of their own. The thread that finishes the last segment of a block combines them.
//
// If a quantization follows, the results of a block stay in the thread's scratch, and only their codes are stored.

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/attention_variant.h"
#include "kernels/cpu/lib/quantizing_epilogue.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/registry.h"
#include "tensor/batch.h"

namespace weft::cpu {
namespace {

enum Operand : std::size_t { kQuery, kKv, kBatch, kSinks, kBias };
// attention_<quantizing op> is causal and has neither sinks nor a bias, and its next operand belongs to the
// quantization.
constexpr std::size_t kOfEpilogue = kSinks;

// A block has kAttentionBlockRows rows (query head and token). In tiles, where keys and values are packed for each
// block, it has up to kAttentionTaskRows, as long as every thread has this many blocks.
constexpr std::int64_t kBlocksOfAThread = 8;
// The segments of a sequence are shared among threads if one of its blocks is more than 1 / kBlocksOfAShare of a
// thread's share of all work.
constexpr std::int64_t kBlocksOfAShare = 4;
// Bytes per thread for partial results of segments. With three KV heads of 64, as in SmolLM2, and two threads this is
// enough for 46,000 tokens. A sequence without room is not shared.
constexpr std::int64_t kPartialBytes = 256 << 10;
// For fewer multiply-adds than these no thread is woken (measured: 20 per nanosecond and core).
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

Verdict supports_attention(const KernelRequest& request) {
  const std::optional<Meta>& sinks = request.operands[kSinks];
  if (sinks) {
    if (Verdict verdict = float_rows(sinks, "sinks"); !verdict) return verdict;
    if (!sinks->is_contiguous()) return Verdict::no("sinks are not contiguous");
  }
  if (const std::optional<Meta>& bias = request.operands[kBias]; bias && !bias->is_contiguous())
    return Verdict::no("the bias is not contiguous");
  return supports(request);
}

// The scratch of one thread: room for attention and then, if a quantization follows, the results of a block. These
// begin with the token of the block's first row. Other heads of that token may belong to another block.
struct ThreadScratch {
  std::int64_t waiting = 0;  // offset of the results
  std::int64_t bytes = 0;
};

ThreadScratch thread_scratch(std::int64_t head_dim, std::int64_t group, DType dtype, bool quantized) {
  ThreadScratch scratch;
  scratch.waiting = scratch.bytes = whole_cache_lines(attention_scratch_bytes(head_dim));
  if (quantized)
    scratch.bytes += whole_cache_lines((kAttentionTaskRows + group) * head_dim * dtype_info(dtype).block_bytes);
  return scratch;
}

// The partial results are after the scratch of all threads.
std::int64_t partial_bytes(int threads) { return threads == 1 ? 0 : threads * kPartialBytes; }

// Quantizes results instead of storing them.
class QuantizedHeads {
 public:
  QuantizedHeads(const QuantizedRowKernels& kernels, const QuantizingEpilogue& epilogue, const KernelCall& call)
      : codes_(call.results[0]), scales_(epilogue.scales(call)) {
    const TensorView& query = call.operands[kQuery];
    quantize_ = kernels.rows[static_cast<std::size_t>(element_of(query.dtype))];
    task_ = epilogue.task(call, kOfEpilogue, query.size[1] * query.size[2]);
    task_.rows = 1;
  }

  // Quantizes columns [first, first + count) of a token; `values` begins with them.
  void take(const std::byte* values, std::int64_t token, std::int64_t first, std::int64_t count) const {
    QuantTask task = task_;
    task.columns = count;
    task.group = std::min(task.group, count);
    task.x = values;
    task.first_row = token;
    task.codes = reinterpret_cast<std::int8_t*>(codes_.data + bytes_of(codes_.dtype, token * codes_.stride[0] + first));
    if (task.rule == QuantRule::fp4_groups) {
      task.first_group = first / kFp4Group;
      if (task.scale_tiles == 0)
        task.scale_codes = scales_.as<std::uint8_t>() + token * scales_.stride[0] + task.first_group;
    }
    quantize_(task);
  }

 private:
  const TensorView& codes_;
  const TensorView& scales_;
  void (*quantize_)(const QuantTask&);
  QuantTask task_;
};

// The part of the work that belongs to one sequence.
struct Sequence {
  std::int32_t index = 0;
  std::int64_t first_token = 0;
  std::int64_t rows = 0;           // tokens of this step, times `group`
  std::int64_t blocks = 0;         // of block_rows_
  std::int64_t segments = 1;       // more than 1 if segments are chunks of their own; there is one block then
  std::int64_t first_segment = 0;  // the first one that a row attends to
  std::int64_t partials = 0;       // offset of the segments' partial results, one KV head after another
  std::int64_t partials_end = 0;
};

// The data that all chunks share. Each chunk finds its part of the work from its index.
class Attention {
 public:
  Attention(CpuFeatures features, const KernelCall& call, const QuantizedHeads* quantized = nullptr)
      : query_(call.operands[kQuery]),
        output_(call.results[0]),
        quantized_(quantized),
        kv_(call.operands[kKv].meta->kv),
        batch_(*call.operands[kBatch].as<Batch>()),
        scratch_(call.scratch.data()),
        threads_(call.threads.threads()),
        attend_(attend_for(features, query_.dtype, kv_.dtype)),
        finish_(attention_kernels_for(features).finish),
        group_(query_.size[1] / kv_.heads),
        thread_(thread_scratch(kv_.head_dim, group_, query_.dtype, quantized != nullptr)) {
    check_batch(batch_, query_.size[0], kv_.block, call.operands[kKv].size[0]);
    shared_.element = element_of(query_.dtype);
    shared_.query_token_stride = query_.stride[0];
    shared_.group = group_;
    shared_.head_dim = kv_.head_dim;
    shared_.output_token_stride = quantized == nullptr ? output_.stride[0] : group_ * kv_.head_dim;
    shared_.scale = static_cast<float>(call.attributes.at("scale").real());
    shared_.window = attention_window(call.attributes);
    if (quantized == nullptr) {
      shared_.ahead = attention_ahead(call.attributes);
      shared_.softcap = static_cast<float>(call.attributes.at("softcap").real());
      sinks_ = call.operands[kSinks].data;
      if (sinks_ != nullptr) {
        shared_.sink_element = element_of(call.operands[kSinks].dtype);
        sink_bytes_ = bytes_of(call.operands[kSinks].dtype, 1);
      }
      const TensorView& bias = call.operands[kBias];
      bias_ = bias.as<float>();
      if (bias_ != nullptr) shared_.bias_columns = bias.size[1];
    }
    shared_.pages = call.operands[kKv].data;
    shared_.page_elements = kv_page_elements(kv_);
    shared_.keys_are_values = kv_.keys_are_values;
    shared_.block = kv_.block;
    std::int64_t largest = 0;
    for (std::int32_t i = 0; i < batch_.sequences; ++i) {
      const std::int64_t work = work_of(rows_of(i), i);
      work_ += work * kv_.heads;
      largest = std::max(largest, work);
    }
    some_are_shared_ = leaves_threads_idle(largest);
    const std::int64_t rows = query_.size[0] * group_ * kv_.heads;
    const std::int64_t most =
        attends_in_tiles(features, query_.dtype, kv_.dtype) ? kAttentionTaskRows : kAttentionBlockRows;
    while (block_rows_ < most && rows >= 2 * block_rows_ * threads_ * kBlocksOfAThread) block_rows_ *= 2;
  }

  void run(ThreadPool& threads) const {
    std::int64_t chunks = 0, partials = 0;
    for (std::int32_t i = 0; i < batch_.sequences; ++i) {
      const Sequence sequence = sequence_of(i, partials);
      chunks += chunks_of(sequence);
      partials = sequence.partials_end;
      if (sequence.segments == 1) continue;
      for (std::int64_t head = 0; head < kv_.heads; ++head) segments_left(sequence, head) = sequence.segments;
    }
    if (work_ < kSerialWork) {
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) run_chunk(chunk, 0);
    } else {
      threads.run(chunks, [&](std::int64_t chunk, int thread) { run_chunk(chunk, thread); });
    }
  }

 private:
  std::int64_t rows_of(std::int32_t index) const {
    return (batch_.query_starts[index + 1] - batch_.query_starts[index]) * group_;
  }
  // The multiply-adds of this many rows of one KV head.
  std::int64_t work_of(std::int64_t rows, std::int32_t index) const {
    return 2 * rows * kv_.head_dim * std::min<std::int64_t>(batch_.lengths[index], shared_.window);
  }
  bool leaves_threads_idle(std::int64_t work_of_block) const {
    return threads_ > 1 && work_ >= kSerialWork && work_of_block * threads_ * kBlocksOfAShare > work_;
  }
  std::int64_t chunks_of(const Sequence& sequence) const { return sequence.blocks * sequence.segments * kv_.heads; }

  // `partials` is the end of the partial results of the sequences before this one.
  Sequence sequence_of(std::int32_t index, std::int64_t partials) const {
    Sequence sequence{.index = index, .first_token = batch_.query_starts[index], .rows = rows_of(index)};
    sequence.blocks = (sequence.rows + block_rows_ - 1) / block_rows_;
    sequence.partials = sequence.partials_end = partials;
    if (!some_are_shared_ || sequence.blocks != 1 || !leaves_threads_idle(work_of(sequence.rows, index)))
      return sequence;
    Sequence shared = sequence;
    const std::int64_t shortest = batch_.lengths[index] - sequence.rows / group_ + 1;
    shared.first_segment = first_in_window(shortest, shared_.window) / kAttentionSegment;
    shared.segments = (batch_.lengths[index] + kAttentionSegment - 1) / kAttentionSegment - shared.first_segment;
    shared.partials_end += kv_.heads * head_bytes(shared);
    return shared.segments > 1 && shared.partials_end <= partial_bytes(threads_) ? shared : sequence;
  }

  // The segments of one KV head share memory for their partial results, followed by the number of segments that are not
  // finished. It ends at a cache line.
  std::int64_t results_bytes(const Sequence& sequence) const {
    return sequence.rows * sequence.segments * attention_partial_floats(kv_.head_dim) * 4;
  }
  std::int64_t head_bytes(const Sequence& sequence) const { return whole_cache_lines(results_bytes(sequence) + 8); }
  std::byte* partials_of(const Sequence& sequence, std::int64_t kv_head) const {
    return scratch_ + threads_ * thread_.bytes + sequence.partials + kv_head * head_bytes(sequence);
  }
  std::int64_t& segments_left(const Sequence& sequence, std::int64_t kv_head) const {
    return *reinterpret_cast<std::int64_t*>(partials_of(sequence, kv_head) + results_bytes(sequence));
  }

  void run_chunk(std::int64_t chunk, int thread) const {
    Sequence sequence = sequence_of(0, 0);
    while (chunk >= chunks_of(sequence)) {
      chunk -= chunks_of(sequence);
      sequence = sequence_of(sequence.index + 1, sequence.partials_end);
    }
    const std::int64_t parts = sequence.blocks * sequence.segments;
    const std::int64_t kv_head = chunk / parts, part = chunk % parts;
    const std::int64_t head_offset = kv_head * group_ * kv_.head_dim;
    const std::int64_t bytes = dtype_info(query_.dtype).block_bytes;
    const std::int64_t first_row = sequence.segments == 1 ? part * block_rows_ : 0;
    const std::int64_t tokens_before = first_row / group_, token = sequence.first_token + tokens_before;
    AttentionTask task = shared_;
    task.query = query_.data + (token * query_.stride[0] + head_offset) * bytes;
    task.first_row = first_row % group_;
    task.last_row = std::min(first_row + block_rows_, sequence.rows) - tokens_before * group_;
    task.first_length = batch_.lengths[sequence.index] - sequence.rows / group_ + 1 + tokens_before;
    task.all_tokens = batch_.lengths[sequence.index];
    task.key_offset = kv_key_offset(kv_, 0, kv_head);
    if (sinks_ != nullptr) task.sinks = sinks_ + kv_head * group_ * sink_bytes_;
    if (bias_ != nullptr) task.bias = bias_ + kv_head * group_ * shared_.bias_columns;
    task.block_table = batch_.block_table + static_cast<std::int64_t>(sequence.index) * batch_.max_blocks;
    std::byte* scratch = scratch_ + thread * thread_.bytes;
    task.scratch = scratch;
    if (sequence.segments > 1) {
      task.partials = reinterpret_cast<float*>(partials_of(sequence, kv_head));
      task.kept_segment = sequence.first_segment;
      task.segments = sequence.segments;
      task.first_segment = sequence.first_segment + part;
      task.last_segment = task.first_segment + 1;
      attend_(task);
      // The thread that finishes last sees the results of all others, and combines them in order.
      std::atomic_ref<std::int64_t> left(segments_left(sequence, kv_head));
      if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    }
    const auto give_results = sequence.segments == 1 ? attend_ : finish_;
    if (quantized_ == nullptr) {
      task.output = output_.data + (token * output_.stride[0] + head_offset) * bytes;
      give_results(task);
    } else {
      std::byte* waiting = scratch + thread_.waiting;
      task.output = waiting;
      give_results(task);
      quantize(task, waiting, token, head_offset);
    }
  }

  // Quantizes the heads of each token that are in the block; they are adjacent.
  void quantize(const AttentionTask& task, const std::byte* waiting, std::int64_t token,
                std::int64_t head_offset) const {
    const std::int64_t bytes = dtype_info(query_.dtype).block_bytes;
    for (std::int64_t row = task.first_row; row < task.last_row;) {
      const std::int64_t heads = std::min(group_ - row % group_, task.last_row - row);
      quantized_->take(waiting + row * kv_.head_dim * bytes, token + row / group_,
                       head_offset + row % group_ * kv_.head_dim, heads * kv_.head_dim);
      row += heads;
    }
  }

  const TensorView& query_;
  const TensorView& output_;
  const QuantizedHeads* quantized_;
  const KvLayout& kv_;
  const Batch& batch_;
  const std::byte* sinks_ = nullptr;
  std::int64_t sink_bytes_ = 0;  // of one
  const float* bias_ = nullptr;
  std::byte* scratch_;
  int threads_;
  void (*attend_)(const AttentionTask&);
  void (*finish_)(const AttentionTask&);
  std::int64_t group_;
  ThreadScratch thread_;
  AttentionTask shared_;
  std::int64_t block_rows_ = kAttentionBlockRows;
  std::int64_t work_ = 0;  // multiply-adds of all
  // Whether any sequence may be shared. Each chunk counts the chunks of the sequences before its own; if this is false,
  // it need not test each of them. Of many sequences of one length none is shared.
  bool some_are_shared_ = false;
};

std::function<Dim(const KernelRequest&)> scratch_of(int threads, bool quantized) {
  return [threads, quantized](const KernelRequest& request) {
    const Meta& query = *request.operands[kQuery];
    const KvLayout& kv = request.operands[kKv]->kv;
    const std::int64_t group = query.shape[1].number() / kv.heads;
    return Dim(threads * thread_scratch(kv.head_dim, group, query.dtype, quantized).bytes + partial_bytes(threads));
  };
}

void prepare(Kernel& kernel, const DeviceDescription& device) {
  kernel.scratch_bytes = scratch_of(device.threads, false);
  kernel.run = [features = device.features](const KernelCall& call) { Attention(features, call).run(call.threads); };
}

// The quantizations whose groups are within a head.
constexpr std::string_view kEpiloguesOfHeads[] = {"static_scaled_fp8_quant", "scaled_fp4_quant"};

Kernel quantized_attention_kernel(const QuantizingEpilogue& epilogue) {
  const auto supports_quantized = [epilogue](const KernelRequest& request) {
    if (Verdict verdict = supports(request); !verdict) return verdict;
    const Meta& scale = *request.operands[kOfEpilogue];
    if (element_count(scale.shape) != Dim(1)) return Verdict::no("there is more than one scale");
    if (epilogue.group > 0 && request.operands[kKv]->kv.head_dim % epilogue.group != 0)
      return Verdict::no(
          fmt::format("groups of {} do not divide heads of {}", epilogue.group, request.operands[kKv]->kv.head_dim));
    return epilogue.supports(request, kOfEpilogue);
  };
  const auto prepare_quantized = [epilogue](Kernel& kernel, const DeviceDescription& device) {
    const QuantizedRowKernels* rows =
        table_for(device, quantized_row_kernels_baseline, quantized_row_kernels_avx2, quantized_row_kernels_avx512);
    kernel.scratch_bytes = scratch_of(device.threads, true);
    kernel.run = [features = device.features, rows, epilogue](const KernelCall& call) {
      const QuantizedHeads quantized(*rows, epilogue, call);
      Attention(features, call, &quantized).run(call.threads);
    };
  };
  return {.op = fmt::format("attention_{}", epilogue.op),
          .provider = "cpu",
          .supports = supports_quantized,
          .prepare = prepare_quantized,
          .note = "attention, whose results are quantized while they are in L1; baseline, AVX2, AVX-512, AMX"};
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, attention) {
  using namespace weft::cpu;
  registry.add(
      {.op = "attention",
       .provider = "cpu",
       .supports = supports_attention,
       .prepare = prepare,
       .note = "sequences, KV heads, blocks of rows and segments of tokens in parallel; baseline, AVX2, AVX-512, AMX"});
  for (const QuantizingEpilogue& epilogue : quantizing_epilogues())
    if (std::find(std::begin(kEpiloguesOfHeads), std::end(kEpiloguesOfHeads), epilogue.op) !=
        std::end(kEpiloguesOfHeads))
      registry.add(quantized_attention_kernel(epilogue));
}
