#include "tensor/dim_parser.h"

#include "tensor/dim_terms.h"
#include "tensor/text_cursor.h"

namespace weft {
namespace {

constexpr int kMaxDimDepth = 32;
// Multiplying out can cost far more than the length of the text, so the text of one dimension is limited.
constexpr std::size_t kMaxDimBytes = 4096;

class DimParser {
 public:
  DimParser(std::string_view text, std::size_t& position) : cursor_(text, position), start_(position) {}

  Dim sum() {
    Dim total = product();
    for (;;) {
      if (cursor_.accept('+')) {
        total = total + product();
      } else if (accept_minus()) {
        total = total - product();
      } else {
        return total;
      }
    }
  }

 private:
  // `->` after a dimension is not a minus.
  bool accept_minus() {
    const std::size_t before = cursor_.position();
    if (!cursor_.accept('-')) return false;
    if (cursor_.peek() != '>') return true;
    cursor_.move_to(before);
    return false;
  }

  Dim product() {
    Dim total = factor();
    while (cursor_.accept('*')) total = total * factor();
    return total;
  }

  Dim factor() {
    cursor_.skip_blanks();
    if (cursor_.position() - start_ > kMaxDimBytes)
      cursor_.fail(fmt::format("a dimension of at most {} bytes", kMaxDimBytes));
    if (depth_ >= kMaxDimDepth) cursor_.fail(fmt::format("a dimension nested at most {} deep", kMaxDimDepth));
    ++depth_;
    Dim value = primary();
    --depth_;
    return value;
  }

  Dim primary() {
    const char c = cursor_.peek();
    const std::string_view rest = cursor_.rest();
    if ((c >= '0' && c <= '9') || (c == '-' && rest.size() > 1 && rest[1] >= '0' && rest[1] <= '9'))
      return cursor_.integer();
    if (cursor_.accept('-')) return Dim(0) - factor();
    if (cursor_.accept('(')) {
      Dim inside = sum();
      cursor_.expect(')');
      return inside;
    }
    return named();
  }

  Dim named() {
    const std::size_t start = cursor_.position();
    const bool wildcard = cursor_.peek() == '?';
    if (wildcard) cursor_.take();
    const std::string_view word = cursor_.word();
    if (!wildcard && (word == "align" || word == "ceildiv" || word == "floordiv")) return function(word);
    const std::string name = (wildcard ? "?" : "") + std::string(word);
    if (!is_symbol_name(name)) {
      cursor_.move_to(start);
      cursor_.fail("a dimension");
    }
    return Dim::symbol(name);
  }

  Dim function(std::string_view name) {
    cursor_.expect('(');
    const Dim inner = sum();
    cursor_.expect(',');
    cursor_.skip_blanks();
    const std::size_t start = cursor_.position();
    const Dim divisor = sum();
    if (!divisor.is_number() || divisor.number() < 1) {
      cursor_.move_to(start);
      cursor_.fail("a number of at least 1");
    }
    cursor_.expect(')');
    if (name == "align") return align(inner, divisor.number());
    return name == "ceildiv" ? ceildiv(inner, divisor.number()) : floordiv(inner, divisor.number());
  }

  TextCursor cursor_;
  std::size_t start_;
  int depth_ = 0;
};

}  // namespace

Dim parse_dim(std::string_view text, std::size_t& position) { return DimParser(text, position).sum(); }

Dim parse_dim(std::string_view text) {
  std::size_t position = 0;
  Dim dim = parse_dim(text, position);
  TextCursor cursor(text, position);
  cursor.skip_blanks();
  if (!cursor.at_end()) cursor.fail("the end of the dimension");
  return dim;
}

Shape parse_shape(std::string_view text, std::size_t& position, char open, char close, std::size_t max_count) {
  TextCursor cursor(text, position);
  Shape shape;
  cursor.expect(open);
  if (cursor.accept(close)) return shape;
  do {
    cursor.skip_blanks();
    if (shape.size() == max_count) cursor.fail(fmt::format("at most {} dims", max_count));
    shape.push_back(parse_dim(text, position));
  } while (cursor.accept(','));
  cursor.expect(close);
  return shape;
}

}  // namespace weft
