#include "server/request_id.h"

#include <algorithm>

namespace weft {
namespace {

constexpr std::size_t kLongestId = 128;

}  // namespace

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= kLongestId &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7F; });
}

std::string given_request_id(const HttpRequest& request) {
  const std::string_view given = request.field(kIdField).value_or("");
  return is_request_id(given) ? std::string(given) : "";
}

}  // namespace weft
