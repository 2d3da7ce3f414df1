#pragma once

// The table of the fields that a request may have.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <simdjson.h>

#include "server/api_request.h"

namespace weft {

using Element = simdjson::dom::element;

// What is wrong with a part of a field's value, as "item 3 must be ...": thrown by functions that read fields.
struct WrongPart {
  std::string sentence;
};

// Reads a value that is not null. Returns "", or what the field must be; or throws WrongPart.
using ReadField = std::string (*)(Element value, ApiRequest& request);

// A field that is known but has no effect here.
struct IgnoredField {};

// A field without effect, except that the answer repeats it.
struct RepeatedField {
  bool (*fits)(Element value);
  const char* wanted;  // what it must be
};

// A field whose effect is not made here. A value that asks for nothing is accepted.
struct RefusedField {
  int status;
  bool (*asks_nothing)(Element value);
  const char* sentence = "";  // what to do instead
};

using FieldTarget = std::variant<std::optional<bool> ApiRequest::*, std::optional<std::int64_t> ApiRequest::*,
                                 std::optional<double> ApiRequest::*, std::optional<std::string> ApiRequest::*,
                                 Json ApiRequest::*,  // an object
                                 ReadField, IgnoredField, RepeatedField, RefusedField>;

struct FieldRow {
  std::string_view name;
  unsigned endpoints;
  FieldTarget target;
  // The range of a number; `above` excludes the least value.
  double least = -1e300, most = 1e300;
  bool above = false;
};

std::span<const FieldRow> field_table();

// False if the value, or the whole key, is not an integer. An id that int cannot hold is int's least or greatest value,
// which check_token() refuses.
bool read_id(Element value, int& id);
bool whole_id(std::string_view key, int& id);

}  // namespace weft
