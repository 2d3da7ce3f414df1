#pragma once

// What a device, or what it needs, must answer with an error.

#include <functional>
#include <string>
#include <vector>

#include "apps/device_check/target.h"

namespace weft::device_check {

struct Fault {
  const char* name;
  std::vector<std::string> says;  // parts of the message
  std::function<void(Target&)> provoke;
};

// NVRTC that is missing, another library, too old or without the architecture, by stand-ins: the same everywhere. And
// PTX that is newer than the driver.
std::vector<Fault> faults_of_nvrtc();

}  // namespace weft::device_check
