#include "base/json.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace weft {

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string json_ascii(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

Json parse_json(std::string_view text) { return Json::parse(text, nullptr, false); }

}  // namespace weft
