#pragma once

// A kernel: a provider's code for one op. It states which devices and calls it supports (a refusal is a reason, shown
// to the user, never an error), which arguments it writes over, and how to run.

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallel/rank_group.h"
#include "parallel/thread_pool.h"
#include "tensor/attribute.h"
#include "tensor/device.h"
#include "tensor/meta.h"
#include "tensor/tensor_view.h"

namespace weft {

// Yes, or the reason why not.
class Verdict {
 public:
  static Verdict yes() { return Verdict(); }
  static Verdict no(std::string reason) { return Verdict(std::move(reason)); }
  explicit operator bool() const { return !reason_.has_value(); }
  const std::string& reason() const { return *reason_; }

 private:
  Verdict() = default;
  explicit Verdict(std::string reason) : reason_(std::move(reason)) {}
  std::optional<std::string> reason_;
};

// The rows (values of the governing symbol) that a choice is made for. Both ends are included.
struct TokenRange {
  std::int64_t lo = 1;
  std::int64_t hi = 1;
  bool operator==(const TokenRange&) const = default;
};

// A call as the compiler sees it: metas (dims may be symbolic), never data. An absent optional tensor is nullopt.
struct KernelRequest {
  std::span<const std::optional<Meta>> operands;  // schema order
  std::span<const Meta> results;
  const Attributes& attributes;  // defaults filled
  TokenRange range;
};

class LaunchQueue;

// A call as the kernel runs it. Results never overlap operands, except where the kernel writes over an argument: then
// that result's view is the operand's.
struct KernelCall {
  std::span<const TensorView> operands;  // schema order
  std::span<const TensorView> results;
  const Attributes& attributes;
  std::span<std::byte> scratch;  // 64-byte aligned, at least scratch_bytes; contents undefined
  ThreadPool& threads;
  const RankGroups* groups = nullptr;  // the groups this rank is in; null for a single process
  // The queue of the tensors' device (kernels/launch_queue.h). Null: the kernel runs at once, on the host.
  LaunchQueue* queue = nullptr;
};

// `bytes` rounded up to whole cache lines: the size of one thread's part of scratch.
inline std::int64_t whole_cache_lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Whether a launch of this kernel may be captured and replayed. A kernel that takes a batch is `with_metadata_in_place`
// at most: on replay the batch must be at the address it had at capture, or the launch must be given the new address.
// The launch may depend on the numbers of sequences and of pages for each, but never on the contents of the batch's
// arrays.
enum class LaunchGraphClass : std::uint8_t { never, with_metadata_in_place, always };

struct Kernel {
  std::string op;
  std::string provider;
  // The op's schema as the kernel's author knows it. It is compared with the op's own when the Context is made. Empty:
  // the author looked it up in this program.
  std::string schema = {};
  // The origin, for messages: the file that defines the kernel, or the plugin.
  std::string origin = {};
  // The row counts that the kernel is for. The compiler ends token ranges there, so that one choice is valid for a
  // whole range.
  TokenRange rows = {1, std::numeric_limits<std::int64_t>::max()};
  // Asked once, when the Context is made.
  std::function<Verdict(const DeviceDescription&)> supported = [](const DeviceDescription&) { return Verdict::yes(); };
  // Asked once per (node, token range), at compile time.
  std::function<Verdict(const KernelRequest&)> supports = [](const KernelRequest&) { return Verdict::yes(); };
  // Whether generated code computes this call as fast (bench/generated_bench). Such a kernel, if only a default chose
  // it, loses to generated code, which fuses the call with its neighbours. If there is no generated code, the kernel
  // computes the call.
  std::function<bool(const KernelRequest&)> yields = [](const KernelRequest&) { return false; };
  // Called once after `supported` said yes. Sets the variant for the device's instruction set.
  std::function<void(Kernel&, const DeviceDescription&)> prepare;
  // Indices of the operands whose storage it writes. The op's `donates` says which result is stored there.
  std::vector<int> writes;
  // By result: the operand whose memory the result may reuse if nothing reads the operand afterwards; -1 for none. The
  // memory plan decides, and the kernel sees the decision in the result's data pointer.
  std::vector<int> may_lie_over = {};
  // A row's result does not depend on the other rows of the call.
  bool batch_invariant = true;
  LaunchGraphClass launch_graph = LaunchGraphClass::always;
  // Whether `run` submits its work to the call's queue, if there is one, instead of doing it at once. The host runs the
  // other kernels.
  bool launches = false;
  // The alignment in bytes of the plain tensors that it reads, wherever `run` is executed. Views with another alignment
  // are copied for it (passes/vector_places.h). 1: it reads them without a copy.
  int vector_bytes = 1;
  // Upper bound of the scratch that one call needs, as a function of its metas (symbolic). Empty: it needs none.
  std::function<Dim(const KernelRequest&)> scratch_bytes;
  std::function<void(const KernelCall&)> run;
  // One line: parallel scheme and the instruction sets it has code for. Shown by `weft dump kernels`.
  std::string note;
};

}  // namespace weft
