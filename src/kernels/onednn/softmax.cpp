// softmax over the last dim by oneDNN's primitive, on blocks of rows over the threads.
//
// The primitive computes on f32. Of the 16-bit floats oneDNN supports only bf16, and only on processors with AVX-512.
// So 16-bit rows are widened, and rows that are not adjacent are copied to be so.

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include <fmt/core.h>

#include "kernels/onednn/library.h"
#include "kernels/registry.h"
#include "kernels/strided.h"
#include "tensor/convert.h"

namespace weft::onednn {
namespace {

// The largest number of elements of a block. Its floats stay in the second-level cache, and the cost of a call of
// oneDNN is small in comparison.
constexpr std::int64_t kMostBlockElements = 16 * 1024;
constexpr std::int64_t kMostBlockRows = 64;
// The largest number of primitives that are kept; making one takes 60 us. Only rows of ever new lengths need more.
constexpr std::size_t kMostPrimitives = 256;

// A power of two, so that the last rows need few primitives of other heights. It depends on the columns only, not on
// the threads.
std::int64_t block_rows(std::int64_t columns) {
  const std::int64_t rows = std::clamp<std::int64_t>(kMostBlockElements / columns, 1, kMostBlockRows);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rows)));
}

// An object of the library, and the library's function that destroys it.
template <class Object>
using Handle = std::unique_ptr<Object, dnnl_status_t (*)(Object*)>;

// oneDNN's primitive for adjacent rows of f32, and their layout.
struct Softmax {
  dnnl_memory_desc_t rows;
  Handle<dnnl_primitive> primitive;
};

// The primitives of one kernel. They are made when the kernel is first asked whether it takes such rows. Several
// threads may call these functions.
class Softmaxes {
 public:
  // Returns no if oneDNN has no code for rows of this many columns on this processor. Makes the primitives for all
  // heights of a block, so that runs make none.
  Verdict takes(std::int64_t columns) {
    const std::lock_guard lock(mutex_);
    for (std::int64_t rows = block_rows(columns); rows > 0; rows /= 2)
      if (!find(rows, columns)) return Verdict::no(fmt::format("oneDNN has no softmax of {} columns", columns));
    return Verdict::yes();
  }

  // y = softmax(x), `rows` rows; y may be x.
  void run(std::int64_t rows, std::int64_t columns, const float* x, float* y) {
    const std::shared_ptr<const Softmax> softmax = locked_find(rows, columns);
    if (softmax == nullptr) fail_device("[onednn] softmax of {} rows of {} cannot be made", rows, columns);
    const OneThread one_thread;
    const Handle<dnnl_stream> stream = make_stream();
    const Handle<dnnl_memory> from = memory(*softmax, const_cast<float*>(x)), to = memory(*softmax, y);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, from.get()}, {DNNL_ARG_DST, to.get()}};
    check_status("dnnl_primitive_execute",
                 library().primitive_execute(softmax->primitive.get(), stream.get(), 2, arguments));
  }

 private:
  std::shared_ptr<const Softmax> locked_find(std::int64_t rows, std::int64_t columns) {
    const std::lock_guard lock(mutex_);
    return find(rows, columns);
  }

  std::shared_ptr<const Softmax> find(std::int64_t rows, std::int64_t columns) {
    if (const auto kept = kept_.find({rows, columns}); kept != kept_.end()) return kept->second;
    if (kept_.size() >= kMostPrimitives) kept_.clear();  // a caller that runs one keeps it alive
    return kept_[{rows, columns}] = make(rows, columns);
  }

  // Returns null if oneDNN has no code for it, or needs its own memory to run it.
  std::shared_ptr<const Softmax> make(std::int64_t rows, std::int64_t columns) {
    const Library& dnnl = library();
    const OneThread one_thread;
    dnnl_memory_desc_t lies;
    const dnnl_dims_t shape = {rows, columns}, strides = {columns, 1};
    check_status("dnnl_memory_desc_init_by_strides",
                 dnnl.memory_desc_init_by_strides(&lies, 2, shape, dnnl_f32, strides));
    dnnl_softmax_desc_t softmax;
    check_status("dnnl_softmax_forward_desc_init",
                 dnnl.softmax_forward_desc_init(&softmax, dnnl_forward_inference, &lies, 1));
    // Otherwise the library would allocate that memory, once for all threads.
    dnnl_primitive_attr_t made_attribute;
    check_status("dnnl_primitive_attr_create", dnnl.primitive_attr_create(&made_attribute));
    const Handle<dnnl_primitive_attr> attribute(made_attribute, dnnl.primitive_attr_destroy);
    check_status("dnnl_primitive_attr_set_scratchpad_mode",
                 dnnl.primitive_attr_set_scratchpad_mode(attribute.get(), dnnl_scratchpad_mode_user));
    dnnl_primitive_desc_t made_description;
    const dnnl_status_t status =
        dnnl.primitive_desc_create(&made_description, &softmax, attribute.get(), engine(), nullptr);
    if (status == dnnl_unimplemented) return nullptr;
    check_status("dnnl_primitive_desc_create", status);
    const Handle<dnnl_primitive_desc> description(made_description, dnnl.primitive_desc_destroy);
    const dnnl_memory_desc_t* own = dnnl.primitive_desc_query_md(description.get(), dnnl_query_scratchpad_md, 0);
    if (own != nullptr && dnnl.memory_desc_get_size(own) != 0) return nullptr;
    dnnl_primitive_t primitive;
    check_status("dnnl_primitive_create", dnnl.primitive_create(&primitive, description.get()));
    return std::make_shared<const Softmax>(Softmax{lies, {primitive, dnnl.primitive_destroy}});
  }

  dnnl_engine_t engine() {
    if (engine_ == nullptr) {
      dnnl_engine_t engine;
      check_status("dnnl_engine_create", library().engine_create(&engine, dnnl_cpu, 0));
      engine_ = {engine, library().engine_destroy};
    }
    return engine_.get();
  }

  // A stream is used for one call, because oneDNN does not promise that threads can share it.
  Handle<dnnl_stream> make_stream() const {
    dnnl_stream_t stream;
    check_status("dnnl_stream_create", library().stream_create(&stream, engine_.get(), dnnl_stream_default_flags));
    return {stream, library().stream_destroy};
  }

  Handle<dnnl_memory> memory(const Softmax& softmax, float* data) const {
    dnnl_memory_t memory;
    check_status("dnnl_memory_create", library().memory_create(&memory, &softmax.rows, engine_.get(), data));
    return {memory, library().memory_destroy};
  }

  std::mutex mutex_;
  Handle<dnnl_engine> engine_{nullptr, nullptr};  // outlives all that is made with it
  std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<const Softmax>> kept_;  // by rows, columns
};

bool is_taken(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

Verdict supports(Softmaxes& softmaxes, const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  const std::int64_t dim = request.attributes.at("dim").integer();
  if (!is_taken(x.dtype) || !x.packed.empty())
    return Verdict::no(fmt::format("takes f32, bf16 and f16, not {}", x.text()));
  if (dim != -1 && dim != static_cast<std::int64_t>(x.rank()) - 1) return Verdict::no("dim is not the last one");
  if (!x.shape.back().is_number() || x.shape.back().number() == 0)
    return Verdict::no(fmt::format("wants rows of known length, not {}", x.text()));
  if (!has_plain_rows(x)) return Verdict::no(fmt::format("wants contiguous rows, not {}", x.text()));
  if (!request.results[0].is_contiguous()) return Verdict::no("the result is not contiguous");
  if (const Verdict there = is_there(); !there) return there;
  return softmaxes.takes(x.shape.back().number());
}

// oneDNN returns a NaN, also one caused by +infinity, only in its own column. By the op's meaning the NaN is in the sum
// and so in all columns.
void spread_nan(float* y, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row, y += columns) {
    bool has_nan = false;
    for (std::int64_t i = 0; i < columns; ++i) has_nan |= y[i] != y[i];
    if (has_nan) std::fill(y, y + columns, std::numeric_limits<float>::quiet_NaN());
  }
}

std::int64_t block_bytes(std::int64_t columns) {
  return whole_cache_lines(block_rows(columns) * columns * static_cast<std::int64_t>(sizeof(float)));
}

void run(Softmaxes& softmaxes, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& result = call.results[0];
  const std::int64_t columns = x.size[x.rank - 1], rows = x.elements() / columns;
  // The stride of a single row may be anything.
  const std::int64_t stride = x.rank == 2 && rows > 1 ? x.stride[0] : columns;
  const bool is_float = x.dtype == DType::f32, is_ready = is_float && stride == columns;
  const std::int64_t block = block_rows(columns);
  call.threads.run((rows + block - 1) / block, [&](std::int64_t chunk, int thread) {
    auto* own = reinterpret_cast<float*>(call.scratch.data() + thread * block_bytes(columns));
    const std::int64_t last = std::min((chunk + 1) * block, rows);
    for (std::int64_t row = chunk * block, height = 0; row < last; row += height) {
      height = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(last - row)));
      const float* from = is_ready ? x.as<const float>() + row * columns : own;
      float* to = is_float ? result.as<float>() + row * columns : own;
      for (std::int64_t i = 0; i < height && !is_ready; ++i)
        convert_row(x.dtype, x.data + bytes_of(x.dtype, (row + i) * stride), DType::f32,
                    reinterpret_cast<std::byte*>(own + i * columns), columns);
      softmaxes.run(height, columns, from, to);
      spread_nan(to, height, columns);
      if (!is_float)
        convert_row(DType::f32, reinterpret_cast<const std::byte*>(own), result.dtype,
                    result.data + bytes_of(result.dtype, row * columns), height * columns);
    }
  });
}

Dim scratch_bytes(int threads, const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  if (x.dtype == DType::f32 && x.is_contiguous()) return 0;
  return Dim(threads * block_bytes(x.shape.back().number()));
}

}  // namespace
}  // namespace weft::onednn

KERNELS(onednn, softmax) {
  Kernel kernel;
  kernel.op = "softmax";
  kernel.provider = "onednn";
  kernel.supported = onednn::runs_on_cpu;
  kernel.prepare = [](Kernel& prepared, const DeviceDescription& device) {
    const auto softmaxes = std::make_shared<onednn::Softmaxes>();
    prepared.supports = [softmaxes](const KernelRequest& request) { return onednn::supports(*softmaxes, request); };
    prepared.scratch_bytes = [threads = device.threads](const KernelRequest& request) {
      return onednn::scratch_bytes(threads, request);
    };
    prepared.run = [softmaxes](const KernelCall& call) { onednn::run(*softmaxes, call); };
  };
  kernel.note = "primitives on blocks of rows over the threads; the instruction set is oneDNN's choice";
  registry.add(std::move(kernel));
}
