#pragma once

// Logs each field of requests that no row of the table has, once.

#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "server/api_request.h"

namespace weft {

class UnknownFields {
 public:
  explicit UnknownFields(std::function<void(const std::string& line)> log) : log_(std::move(log)) {}

  // Any thread may call it.
  void note(const ApiRequest& request);

 private:
  std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  std::set<std::string> noted_;
};

}  // namespace weft
