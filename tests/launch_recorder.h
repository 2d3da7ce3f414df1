#pragma once

// What weft_device_check runs on a GPU: launches of CUDA kernels with what they read and wrote in the emulator,
// recorded while calls run on a fake device. The calls are held to their own records and meanings first.

#include <string>
#include <vector>

#include "apps/device_check/launch_file.h"
#include "compiler/context.h"

namespace weft {

class LaunchRecorder {
 public:
  // From then on the context's kernels of that provider run in the emulator here; of cuda those with house mathematics,
  // where there are two forms: what they give is the record of both. The recorder must outlive the context's last call.
  LaunchRecorder(Context& context, const std::string& provider);

  // Of the calls from now on, in messages; those behind the first get a number.
  void begin(std::string name);
  const std::vector<device_check::RecordedLaunch>& launches() const { return launches_; }
  int calls() const { return calls_; }

 private:
  std::string name_;
  int calls_ = 0;
  std::vector<device_check::RecordedLaunch> launches_;
};

// Every call of a family of recorded vectors that provider cuda, or cuda_tree, computes. InternalError where a result
// is not as the record has it.
std::vector<device_check::RecordedLaunch> record_family(const std::string& folder, const std::string& family);
// Every sample of every op of providers cuda and cuda_mma, in every dtype. InternalError where a result has not the
// meaning's bits, of attention where it is not within its tolerance.
std::vector<device_check::RecordedLaunch> record_samples();

}  // namespace weft
