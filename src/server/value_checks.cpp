#include "server/value_checks.h"

#include "server/json_body.h"

namespace weft {

namespace dom = simdjson::dom;

bool is_false(Element value) {
  bool flag = true;
  return value.get(flag) == simdjson::SUCCESS && !flag;
}

bool is_zero(Element value) {
  double number = 1;
  return value.get(number) == simdjson::SUCCESS && number == 0;
}

bool is_one(Element value) {
  double number = 0;
  return value.get(number) == simdjson::SUCCESS && number == 1;
}

bool is_at_most_zero(Element value) {
  double number = 1;
  return value.get(number) == simdjson::SUCCESS && number <= 0;
}

bool is_negative(Element value) {
  double number = 0;
  return value.get(number) == simdjson::SUCCESS && number < 0;
}

bool is_empty(Element value) {
  dom::array list;
  dom::object object;
  std::string_view text;
  if (value.get(list) == simdjson::SUCCESS) return list.size() == 0;
  if (value.get(object) == simdjson::SUCCESS) return object.size() == 0;
  return value.get(text) == simdjson::SUCCESS && text.empty();
}

bool is_float32(Element value) {
  std::string_view word;
  return value.get(word) == simdjson::SUCCESS && word == "float32";
}

bool is_little_endian(Element value) {
  std::string_view word;
  return value.get(word) == simdjson::SUCCESS && (word == "native" || word == "little");
}

bool is_nothing(Element) { return false; }

bool is_text(Element value) { return value.is_string(); }

bool is_truncation(Element value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS && (text == "auto" || text == "disabled");
}

bool is_metadata(Element value) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return false;
  for (const auto& [key, item] : last_members(object))
    if (!item.is_string()) return false;
  return true;
}

}  // namespace weft
