#include "ir/parse_call.h"

#include <charconv>

namespace weft {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

}  // namespace

std::string parse_value_name(GraphCursor& cursor) {
  cursor.skip(true);
  if (cursor.peek() != '%') cursor.fail_expected("a value such as %x");
  ++cursor.position();
  std::string name;
  for (; is_name_character(cursor.peek()); ++cursor.position()) name += cursor.peek();
  if (name.empty() || name[0] == '.') cursor.fail_expected("a name after '%'");
  return name;
}

std::int64_t parse_number(GraphCursor& cursor) {
  cursor.skip(true);
  std::int64_t value = 0;
  const char* begin = cursor.text().data() + cursor.position();
  const auto [end, error] = std::from_chars(begin, cursor.text().data() + cursor.text().size(), value);
  if (error != std::errc()) cursor.fail_expected("a number");
  cursor.position() += static_cast<std::size_t>(end - begin);
  return value;
}

void expect_end_of_node(GraphCursor& cursor) {
  cursor.skip(false);
  if (!cursor.at_end() && cursor.peek() != '\n' && cursor.peek() != '}') cursor.fail_expected("the end of the line");
}

void check_attribute_name(const GraphCursor& cursor, const Op* op, const std::string& op_name, const std::string& key,
                          const NamedAttributes& given) {
  if (op != nullptr && op->schema.parameter_index(key) < static_cast<int>(op->schema.tensor_count()))
    cursor.fail(fmt::format("[{}] has no attribute {}; its signature is {}", op_name, key, op->schema.text()));
  for (const auto& [name, unused] : given)
    if (name == key) cursor.fail("attribute " + key + " is given twice");
}

}  // namespace weft
