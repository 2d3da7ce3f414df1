#include "base/json_position.h"

#include <algorithm>
#include <string>

#include "base/json.h"

namespace weft {
namespace {

// Takes the events of the library's parser, and makes no value of them.
struct ErrorPosition {
  std::optional<std::size_t> position;

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(Json::number_integer_t) { return true; }
  bool number_unsigned(Json::number_unsigned_t) { return true; }
  bool number_float(Json::number_float_t, const std::string&) { return true; }
  bool string(std::string&) { return true; }
  bool binary(Json::binary_t&) { return true; }
  bool start_object(std::size_t) { return true; }
  bool key(std::string&) { return true; }
  bool end_object() { return true; }
  bool start_array(std::size_t) { return true; }
  bool end_array() { return true; }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) {
    position = at;
    return false;
  }
};

}  // namespace

std::optional<std::size_t> json_error_position(std::string_view text) {
  ErrorPosition errors;
  if (text.empty() || Json::sax_parse(text, &errors) || !errors.position) return std::nullopt;
  return std::min(*errors.position, text.size());
}

}  // namespace weft
