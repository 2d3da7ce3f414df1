#include "server/api_key.h"

#include "base/text.h"

namespace weft {
namespace {

// In a time that does not depend on where they differ.
bool equal_keys(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i] ^ (b.empty() ? '\1' : b[i % b.size()]));
  return difference == 0;
}

// "" if there is none.
std::string_view bearer_key(const HttpRequest& head) {
  const std::string_view given = head.field("authorization").value_or("");
  return to_lower_ascii(given.substr(0, 7)) == "bearer " ? trim(given.substr(7)) : "";
}

}  // namespace

bool has_api_key(const HttpRequest& head, const std::vector<std::string>& keys) {
  if (keys.empty()) return true;
  bool is_known = false;
  for (const std::string_view given : {bearer_key(head), head.field("x-api-key").value_or("")})
    for (const std::string& key : keys) is_known |= !given.empty() && equal_keys(given, key);
  return is_known;
}

}  // namespace weft
