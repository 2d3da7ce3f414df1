// Errors of a call's input are reported before anything is launched, with the call, the device and what was wanted. The
// queue and its other users continue.

#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/sample_call.h"
#include "kernels/launch_queue.h"
#include "runtime/cuda/driver_queue.h"
#include "tests/cuda/cuda_context.h"
#include "tests/cuda/emulated_device.h"
#include "tests/thrown_message.h"

namespace weft::input_errors_test {

using namespace cuda;

// A sample of an op in the memory of a device, by whose queue it is run.
class DeviceCall {
 public:
  DeviceCall(const Context& context, const std::string& op, SampleCall call)
      : context_(context),
        op_(op),
        call_(std::move(call)),
        wanted_(by_cuda(context, op, call_.operands, call_.attributes)) {
    const Module module = driver_->load_module(0, fake_image({90}));
    queue_ = std::make_unique<DriverQueue>(*driver_, stream_, std::vector{module});
    for (const Tensor& operand : call_.operands) {
      operands_.push_back(operand.view());
      if (!operand.defined()) continue;
      operands_.back().data = static_cast<std::byte*>(driver_->allocate(stream_, bytes_of(operand)));
      driver_->copy(stream_, operands_.back().data, operand.data(), bytes_of(operand));
    }
    for (const Tensor& result : wanted_) {
      results_.push_back(result.view());
      results_.back().data = static_cast<std::byte*>(driver_->allocate(stream_, bytes_of(result)));
    }
    driver_->synchronize(stream_);
  }

  using Change = std::function<void(std::vector<TensorView>& operands, std::vector<TensorView>& results)>;
  // Queues the call with the views that `change` modified.
  void run(const Change& change) {
    std::vector<TensorView> operands = operands_, results = results_;
    change(operands, results);
    queue_call(context_.kernel_for(op_, provider()), {.operands = operands,
                                                      .results = results,
                                                      .attributes = call_.attributes,
                                                      .scratch = {},
                                                      .threads = *context_.threads,
                                                      .queue = queue_.get()});
  }
  // Runs the call as it is.
  bool is_right() {
    run([](auto&, auto&) {});
    queue_->synchronize();
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      std::vector<std::byte> came(bytes_of(wanted_[i]));
      driver_->copy(stream_, came.data(), results_[i].data, came.size());
      driver_->synchronize(stream_);
      if (std::memcmp(came.data(), wanted_[i].data(), came.size()) != 0) return false;
    }
    return true;
  }
  std::string provider() const { return provider_of_form(context_, op_, Mathematics::reference); }
  std::int64_t launches() const { return queue_->launches(); }

 private:
  static std::size_t bytes_of(const Tensor& tensor) { return static_cast<std::size_t>(tensor.meta.bytes().number()); }

  const Context& context_;
  std::string op_;
  SampleCall call_;
  std::vector<Tensor> wanted_;
  std::unique_ptr<Driver> driver_ = open_emulated_device(1);
  Stream stream_ = driver_->create_stream(0);
  std::unique_ptr<DriverQueue> queue_;
  std::vector<TensorView> operands_, results_;
};

struct Fault {
  const char* says;
  DeviceCall::Change change;
};
const Fault kFaults[] = {
    {"x must have 1 to 2^31 - 1 rows and columns, but has 0 and",
     [](auto& operands, auto& results) {
       operands[0].size[0] = 0;
       for (TensorView& result : results) result.size[0] = 0;
     }},
    {"x must be at a multiple of 16 bytes, but is at", [](auto& operands, auto&) { operands[0].data += 8; }},
};

TEST(InputErrors, NameCallAndDeviceAndLaunchNothing) {
  const auto context = cuda_context();
  int checked = 0;
  for (const std::string& op : ops_of_provider(*context, "cuda")) {
    const bool is_of_rows = context->ops.at(op).schema.parameters[0].name == "x" && op != "index_select";
    if (!is_of_rows) continue;
    for (const SampleCall& call : sample_calls(context->ops.at(op))) {
      if (!supports_of_cuda(*context, op, call.operands, call.attributes)) continue;
      DeviceCall on_device(*context, op, call);
      for (const Fault& fault : kFaults) {
        const std::string message = message_of<UserError>([&] { on_device.run(fault.change); });
        EXPECT_TRUE(message.starts_with("[fake-cuda:0] " + op + "@" + on_device.provider() + ": ["))
            << op << ": " << message;
        EXPECT_NE(message.find(fault.says), std::string::npos) << op << ": " << message;
      }
      EXPECT_EQ(on_device.launches(), 0) << op;
      EXPECT_TRUE(on_device.is_right()) << op;
      ++checked;
      break;
    }
  }
  EXPECT_GE(checked, 20);
}

}  // namespace weft::input_errors_test
