#pragma once

// The launches of every sample of the CUDA kernels, recorded once for a test program.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/launch_recorder.h"

namespace weft {

inline const std::vector<device_check::RecordedLaunch>& sample_launches() {
  static const std::vector<device_check::RecordedLaunch> launches = record_samples();
  return launches;
}

// The launch of a kernel, the first of the samples.
inline device_check::RecordedLaunch launch_of(const std::string& kernel) {
  for (const device_check::RecordedLaunch& launch : sample_launches())
    if (launch.kernel == kernel) return launch;
  ADD_FAILURE() << "no sample launches " << kernel;
  return {};
}

}  // namespace weft
