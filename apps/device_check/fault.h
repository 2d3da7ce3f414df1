#pragma once

// A seeded fault: the device, or the software that it needs, must answer with an error.

#include <functional>
#include <string>
#include <vector>

#include "apps/device_check/target.h"

namespace weft::device_check {

struct Fault {
  const char* name;
  std::vector<std::string> says;  // texts that the message must contain
  std::function<void(Target&)> provoke;
};

// Faults of NVRTC: it is missing, another library, too old, or does not support the architecture. Stand-ins produce
// these, so they are the same on all machines. One more fault is PTX that is newer than the driver supports.
std::vector<Fault> faults_of_nvrtc();

}  // namespace weft::device_check
