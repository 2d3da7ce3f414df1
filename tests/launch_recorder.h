#pragma once

// The launches that weft_device_check runs on a GPU: launches of CUDA kernels with the data that they read and wrote in
// the emulator, recorded while calls run on a fake device. The calls are compared with their own records and meanings
// first.

#include <string>
#include <vector>

#include "apps/device_check/launch_file.h"
#include "compiler/context.h"

namespace weft {

class LaunchRecorder {
 public:
  // From then on the context's kernels of this provider run in the emulator here. For cuda these are the forms with
  // reference math if there are two; their results are the record of both. The recorder must outlive the context's last
  // call.
  LaunchRecorder(Context& context, const std::string& provider);

  // The name of the following calls in messages; calls after the first one get a number.
  void begin(std::string name);
  const std::vector<device_check::RecordedLaunch>& launches() const { return launches_; }
  int calls() const { return calls_; }

 private:
  std::string name_;
  int calls_ = 0;
  std::vector<device_check::RecordedLaunch> launches_;
};

// Every call of a family of recorded vectors that provider cuda, or cuda_tree, computes. Throws InternalError if a
// result is not the recorded one.
std::vector<device_check::RecordedLaunch> record_family(const std::string& folder, const std::string& family);
// Every sample of every op of providers cuda and cuda_mma, in every dtype. Throws InternalError if a result does not
// have the meaning's bits, for attention if it is not within its tolerance.
std::vector<device_check::RecordedLaunch> record_samples();

}  // namespace weft
