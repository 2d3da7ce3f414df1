#include "tensor/meta_parser.h"

#include <string>

#include "tensor/dim_parser.h"
#include "tensor/kv_pages.h"
#include "tensor/text_cursor.h"

namespace weft {
namespace {

// An element of a larger page could not be addressed by one 32-bit offset inside the page; real pages have thousands of
// elements.
constexpr std::int64_t kMaxPageElements = INT32_MAX;

DType parse_dtype(TextCursor& cursor) {
  cursor.skip_blanks();
  const std::optional<DType> dtype = dtype_from_text(cursor.peek_word());
  if (!dtype) cursor.fail("a dtype");
  cursor.word();
  return *dtype;
}

std::int64_t parse_number(TextCursor& cursor) {
  const std::size_t start = cursor.position();
  const std::int64_t value = cursor.integer();
  if (value < 1 || value > kMaxPageElements) {
    cursor.move_to(start);
    cursor.fail(fmt::format("a number in [1, {}]", kMaxPageElements));
  }
  return value;
}

std::int64_t parse_field(TextCursor& cursor, std::string_view key) {
  cursor.expect(',');
  cursor.skip_blanks();
  if (cursor.peek_word() != key) cursor.fail(fmt::format("'{}='", key));
  cursor.word();
  cursor.expect('=');
  cursor.skip_blanks();
  return parse_number(cursor);
}

// Reads `, values=keys` or `, state_rows=N` before the `]`. Other text is not consumed.
void parse_kind_of_pages(TextCursor& cursor, KvLayout& layout) {
  if (!cursor.accept(',')) return;
  cursor.skip_blanks();
  const std::string_view word = cursor.peek_word();
  if (word != "values" && word != "state_rows") cursor.fail("'values=keys' or 'state_rows='");
  cursor.word();
  cursor.expect('=');
  cursor.skip_blanks();
  if (word == "state_rows") {
    layout.state_rows = parse_number(cursor);
    return;
  }
  if (cursor.peek_word() != "keys") cursor.fail("'values=keys'");
  cursor.word();
  layout.keys_are_values = true;
}

// Of one head and token, or of the state of one head.
__int128 elements_of_head(const KvLayout& layout) {
  return __int128{layout.head_dim} * (layout.state_rows != 0 ? layout.state_rows : 2 * layout.block);
}

Meta parse_pages(TextCursor& cursor) {
  const std::size_t start = cursor.position();
  KvLayout layout;
  cursor.expect('[');
  layout.dtype = parse_dtype(cursor);
  layout.block = parse_field(cursor, "block");
  layout.heads = parse_field(cursor, "heads");
  layout.head_dim = parse_field(cursor, "head_dim");
  parse_kind_of_pages(cursor, layout);
  cursor.expect(']');
  if (!kv_type_fits(layout) || layout.heads * elements_of_head(layout) > kMaxPageElements) {
    cursor.move_to(start);
    cursor.fail(
        fmt::format("pages of plain elements, or of q8_0 that fills whole blocks of a head, at most {} elements each",
                    kMaxPageElements));
  }
  return Meta::pages(layout);
}

// Reads `packed=NAME` after the type. Other text is not consumed.
std::string parse_packed(TextCursor& cursor) {
  const std::size_t start = cursor.position();
  while (cursor.peek() == ' ' || cursor.peek() == '\t') cursor.take();
  if (cursor.position() == start || !cursor.rest().starts_with("packed=")) {
    cursor.move_to(start);
    return "";
  }
  cursor.word();
  cursor.take();
  const std::string_view name = cursor.word();
  if (name.empty()) cursor.fail("the name of a packing");
  return std::string(name);
}

Meta parse_tensor(std::string_view text, std::size_t& position, DType dtype) {
  TextCursor cursor(text, position);
  Shape shape = parse_shape(text, position, '[', ']', kMaxRank);
  Meta meta;
  if (cursor.peek() == '{') {
    Shape strides = parse_shape(text, position, '{', '}', kMaxRank);
    meta = Meta::strided(dtype, std::move(shape), std::move(strides));
  } else {
    meta = Meta::tensor(dtype, std::move(shape));
  }
  meta.packed = parse_packed(cursor);
  return meta;
}

}  // namespace

Meta parse_meta(std::string_view text, std::size_t& position) {
  TextCursor cursor(text, position);
  cursor.skip_blanks();
  const std::string_view word = cursor.peek_word();
  const std::optional<DType> dtype = dtype_from_text(word);
  if (!dtype && word != "kv" && word != "batch" && word != "int" && word != "float") cursor.fail("a type");
  cursor.word();
  if (dtype) return parse_tensor(text, position, *dtype);
  if (word == "kv") return parse_pages(cursor);
  Meta meta;
  meta.kind = word == "batch" ? MetaKind::batch : word == "int" ? MetaKind::integer : MetaKind::real;
  return meta;
}

Meta parse_meta(std::string_view text) {
  std::size_t position = 0;
  Meta meta = parse_meta(text, position);
  TextCursor cursor(text, position);
  cursor.skip_blanks();
  if (!cursor.at_end()) cursor.fail("the end of the type");
  return meta;
}

}  // namespace weft
