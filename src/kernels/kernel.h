#pragma once

// What a provider offers: the code for one op. A kernel states which devices and calls it supports (a refusal is a
// reason, shown to the user, never an error), which arguments it writes over, and how to run.

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rank_group.h"
#include "base/thread_pool.h"
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

// Rows (values of the governing symbol) a choice is made for; closed.
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
  const RankGroups* groups = nullptr;  // that this rank is in; null for a process that is alone
  // Of the device that the tensors are of (kernels/launch_queue.h). Null: the kernel runs at once, on the host.
  LaunchQueue* queue = nullptr;
};

// The end of the cache line that so many bytes reach into: what one thread's part of scratch takes.
inline std::int64_t whole_cache_lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Whether a launch of this kernel may be captured and replayed. What takes a batch is captured with its metadata in
// place at most: the batch must lie where it lay when it was captured, or be pointed to anew. Of its numbers a launch
// may depend on how many sequences and pages for each it has, never on what stands in its arrays.
enum class CaptureClass : std::uint8_t { never, with_metadata_in_place, always };

struct Kernel {
  std::string op;
  std::string provider;
  // The op's schema as the kernel's author knows it; held against the op's own when the Context is made. Empty: the
  // author looked it up in this program.
  std::string schema = {};
  // Where it came from, for messages: the file that defines it, or the plugin.
  std::string origin = {};
  // The row counts it is for. The compiler ends token ranges there, so that one choice holds for all of a range.
  TokenRange rows = {1, std::numeric_limits<std::int64_t>::max()};
  // Asked once, when the Context is made.
  std::function<Verdict(const DeviceDescription&)> supported = [](const DeviceDescription&) { return Verdict::yes(); };
  // Asked once per (node, token range), at compile time.
  std::function<Verdict(const KernelRequest&)> supports = [](const KernelRequest&) { return Verdict::yes(); };
  // Calls that generated code computes as fast (bench/generated_bench). Among the defaults the kernel then stands
  // behind it, which joins what stands around; where there is no generated code it computes them all the same.
  std::function<bool(const KernelRequest&)> yields = [](const KernelRequest&) { return false; };
  // Called once after `supported` said yes, to fill in the variant for the device's instruction set.
  std::function<void(Kernel&, const DeviceDescription&)> prepare;
  // Indices of the operands whose storage it writes; the op's `donates` says which result lives there.
  std::vector<int> writes;
  // By result: the operand in whose memory it may lie if nobody reads that afterwards, -1 for none. The memory plan
  // decides; the kernel is told by where the result's data is.
  std::vector<int> may_lie_over = {};
  // A row's result does not depend on the other rows of the call.
  bool batch_invariant = true;
  CaptureClass capture = CaptureClass::always;
  // `run` gives its work to the call's queue, where there is one, and has it done later. The host runs the others.
  bool launches = false;
  // What the places of plain tensors that it reads must be multiples of, in bytes, wherever `run` is done. Views that
  // begin elsewhere are copied for it (passes/vector_places.h). 1: it reads them where they lie.
  int vector_bytes = 1;
  // Upper bound of the scratch one call needs, as a function of its metas (symbolic); nothing needed when empty.
  std::function<Dim(const KernelRequest&)> scratch_bytes;
  std::function<void(const KernelCall&)> run;
  // One line: parallel scheme and the instruction sets it has code for. Shown by `weft dump kernels`.
  std::string note;
};

}  // namespace weft
