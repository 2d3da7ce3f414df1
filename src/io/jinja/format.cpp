#include "io/jinja/format.h"

#include <string>

#include "base/markup.h"
#include "base/text.h"
#include "io/jinja/format_spec.h"
#include "io/jinja/number.h"
#include "io/jinja/printer.h"
#include "io/jinja/runtime.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

// Parses `%[(name)][flags][width][.precision]type` after each percent sign and formats the values that it refers to.
class PercentFormatter {
 public:
  PercentFormatter(Budget& budget, const Value& format, const Value& values)
      : budget_(budget), printer_(budget), format_(format), text_(format.text()), values_(values) {}

  Value run() {
    while (position_ < text_.size()) {
      const std::size_t mark = std::min(text_.find('%', position_), text_.size());
      printer_.append(text_.substr(position_, mark - position_));
      position_ = mark + 1;
      if (mark < text_.size()) append_field();
    }
    const bool all_used = values_.is(Kind::tuple) ? next_ == values_.items().size() : next_ == 1;
    // Like Python, reports unused values only if they cannot be indexed by a key.
    const bool indexable =
        values_.is_dict() || values_.is(Kind::list) || values_.is(Kind::range) || values_.is_undefined();
    if (!all_used && !indexable) fail_template("not all arguments converted during string formatting");
    return Value::string(printer_.take(), format_.is_markup());
  }

 private:
  char peek() const {
    if (position_ >= text_.size()) fail_template("incomplete format");
    return text_[position_];
  }

  const Value& next_value() {
    if (values_.is(Kind::tuple)) {
      if (next_ >= values_.items().size()) fail_template("not enough arguments for format string");
      return values_.items()[next_++];
    }
    if (next_ > 0) fail_template("not enough arguments for format string");
    next_ = 1;
    return values_;
  }

  const Value& named_value() {
    const std::size_t end = text_.find(')', position_);
    if (end == std::string_view::npos) fail_template("incomplete format key");
    const std::string_view name = text_.substr(position_ + 1, end - position_ - 1);
    if (!values_.is_dict()) fail_template("format requires a mapping");
    const Value* found = values_.dict().find(name);
    if (found == nullptr) fail_template("the format names {}, which is not given", quote(name));
    position_ = end + 1;
    next_ = 1;
    return *found;
  }

  std::int64_t read_size(std::int64_t largest) {
    if (peek() == '*') {
      ++position_;
      const Value& value = next_value();
      if (!value.is_integral()) fail_template("* wants int");
      if (value.integer() > largest || value.integer() < -largest)
        fail_template("a format width or precision beyond {}", largest);
      return value.integer();
    }
    std::int64_t size = 0;
    while (weft::is_digit(peek())) {
      size = size * 10 + (text_[position_++] - '0');
      if (size > largest) fail_template("a format width or precision beyond {}", largest);
    }
    return size;
  }

  FormatSpec read_spec() {
    FormatSpec spec;
    bool zero = false;
    for (;; ++position_) {
      const char flag = peek();
      if (flag == '-') spec.alignment = '<';
      if (flag == '0') zero = true;
      if (flag == '#') spec.alternate = true;
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
      if (std::string_view("-0#+ ").find(flag) == std::string_view::npos) break;
    }
    spec.width = read_size(kMaxFormatWidth);
    if (spec.width < 0) {
      spec.alignment = '<';
      spec.width = -spec.width;
    }
    if (peek() == '.') {
      ++position_;
      spec.precision = std::max<std::int64_t>(0, read_size(kMaxFormatPrecision));
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++position_;
    spec.type = text_[position_++];
    if (spec.alignment == 0) spec.alignment = '>';
    if (zero && spec.alignment == '>' && std::string_view("sracn").find(spec.type) == std::string_view::npos) {
      spec.alignment = '=';
      spec.fill = '0';
    }
    return spec;
  }

  void append_field() {
    const Value* named = peek() == '(' ? &named_value() : nullptr;
    FormatSpec spec = read_spec();
    if (spec.type == '%') {
      printer_.append("%");
      return;
    }
    const Value& value = named != nullptr ? *named : next_value();
    switch (spec.type) {
      case 's':
        append_text(spec, to_text(budget_, value));
        break;
      case 'r': {
        Printer repr(budget_);
        repr.append_repr(value);
        append_text(spec, repr.take());
        break;
      }
      case 'c':
        append_code(spec, value);
        break;
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        append_integer(spec, value);
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!value.is_number()) fail_template("must be real number, not {}", type_name(value));
        printer_.append(format_number(spec, Value::real(value.real())));
        break;
      default:
        fail_template("unsupported format character '{}'", spec.type);
    }
  }

  void append_text(const FormatSpec& spec, const std::string& text) {
    printer_.append(format_text(spec, format_.is_markup() ? escape_markup(text) : text));
  }

  void append_code(const FormatSpec& spec, const Value& value) {
    if (value.is_string() && character_count(value.text()) == 1) {
      append_text(spec, value.text());
      return;
    }
    if (!value.is_integral() || value.integer() < 0 || value.integer() > 0x10FFFF ||
        (value.integer() >= 0xD800 && value.integer() < 0xE000))
      fail_template("%c requires int or char");
    std::string character;
    append_character(character, static_cast<char32_t>(value.integer()));
    append_text(spec, character);
  }

  void append_integer(FormatSpec spec, const Value& value) {
    if (!value.is_number() || (value.is(Kind::real) && spec.type != 'd' && spec.type != 'i' && spec.type != 'u'))
      fail_template("%{} format: an integer is required, not {}", spec.type, type_name(value));
    const std::int64_t integer = value.is(Kind::real) ? truncate_real(value.real()) : value.integer();
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    // For an integer, the precision is the minimum number of digits.
    FormatSpec digits;
    digits.type = spec.type;
    const std::int64_t missing = spec.precision -
                                 static_cast<std::int64_t>(format_number(digits, Value::integer(integer)).size()) +
                                 (integer < 0 ? 1 : 0);
    if (missing <= 0) {
      spec.precision = -1;
      printer_.append(format_number(spec, Value::integer(integer)));
      return;
    }
    digits.fill = '0';
    digits.alignment = '=';
    digits.sign = spec.sign;
    digits.alternate = spec.alternate;
    digits.width = static_cast<std::int64_t>(format_number(digits, Value::integer(integer)).size()) + missing;
    spec.precision = -1;
    if (spec.alignment == '=') spec.alignment = '>';
    printer_.append(format_text(spec, format_number(digits, Value::integer(integer))));
  }

  Budget& budget_;
  Printer printer_;
  const Value& format_;
  std::string_view text_;
  const Value& values_;
  std::size_t position_ = 0;
  std::size_t next_ = 0;
};

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Value& format, const Arguments& arguments)
      : runtime_(runtime), printer_(runtime.budget()), format_(format), arguments_(arguments) {}

  Value run() {
    const std::string_view text = format_.text();
    for (std::size_t position = 0; position < text.size();) {
      const std::size_t mark = std::min(text.find_first_of("{}", position), text.size());
      printer_.append(text.substr(position, mark - position));
      if (mark == text.size()) break;
      if (mark + 1 < text.size() && text[mark + 1] == text[mark]) {
        printer_.append(text.substr(mark, 1));
        position = mark + 2;
        continue;
      }
      if (text[mark] == '}') fail_template("Single '}}' encountered in format string");
      const std::size_t end = text.find_first_of("{}", mark + 1);
      if (end == std::string_view::npos) fail_template("Single '{{' encountered in format string");
      if (text[end] == '{') fail_template("fields inside a format field are not supported");
      append_field(text.substr(mark + 1, end - mark - 1));
      position = end + 1;
    }
    return Value::string(printer_.take(), format_.is_markup());
  }

 private:
  void append_field(std::string_view field) {
    const std::size_t colon = std::min(field.find(':'), field.size());
    const std::string_view spec = colon < field.size() ? field.substr(colon + 1) : std::string_view();
    std::string_view name = field.substr(0, colon);
    char conversion = 0;
    if (const std::size_t mark = name.find('!'); mark != std::string_view::npos) {
      if (mark + 2 != name.size() || (name[mark + 1] != 'r' && name[mark + 1] != 's'))
        fail_template("unknown conversion in the format field {}", quote(field));
      conversion = name[mark + 1];
      name = name.substr(0, mark);
    }
    Value value = find_value(name);
    if (conversion != 0) {
      Printer converted(runtime_.budget());
      conversion == 'r' ? converted.append_repr(value) : converted.append_str(value);
      value = Value::string(converted.take());
    }
    printer_.append(format_field(value, spec));
  }

  std::string format_field(const Value& value, std::string_view spec) {
    const FormatSpec parsed = parse_format_spec(spec);
    if (value.is_number() && !(value.is(Kind::boolean) && spec.empty())) return format_number(parsed, value);
    if (!spec.empty() && !value.is_string())
      fail_template("unsupported format string passed to {}.__format__", type_name(value));
    if (parsed.type != 0 && parsed.type != 's')
      fail_template("Unknown format code '{}' for object of type 'str'", parsed.type);
    const std::string text = to_text(runtime_.budget(), value);
    return format_text(parsed, format_.is_markup() ? escape_markup(text) : text);
  }

  Value find_value(std::string_view name) {
    const std::size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = find_argument(name.substr(0, end));
    name.remove_prefix(end);
    while (!name.empty()) {
      if (name.front() == '.') {
        const std::size_t stop = std::min(name.find_first_of(".[", 1), name.size());
        value = runtime_.attribute(value, name.substr(1, stop - 1));
        name.remove_prefix(stop);
      } else {
        const std::size_t close = name.find(']');
        if (name.front() != '[' || close == std::string_view::npos) fail_template("Missing ']' in format string");
        const std::string_view key = name.substr(1, close - 1);
        const auto index = weft::is_digit(key.empty() ? ' ' : key[0]) ? parse_integer(key) : std::nullopt;
        value = runtime_.item(value, index ? Value::integer(*index) : Value::string(std::string(key)));
        name.remove_prefix(close + 1);
      }
    }
    return value;
  }

  const Value& find_argument(std::string_view name) {
    const bool numbered = name.empty() || weft::is_digit(name[0]);
    if (!numbered) {
      for (const auto& [key, value] : arguments_.named)
        if (key == name) return value;
      fail_template("the format names {}, which is not given", quote(name));
    }
    const auto index = name.empty() ? next_++ : parse_integer(name).value_or(-1);
    if (index < 0 || static_cast<std::size_t>(index) >= arguments_.positional.size())
      fail_template("Replacement index {} out of range for positional args tuple", index);
    return arguments_.positional[static_cast<std::size_t>(index)];
  }

  Runtime& runtime_;
  Printer printer_;
  const Value& format_;
  const Arguments& arguments_;
  std::int64_t next_ = 0;
};

}  // namespace

Value format_percent(Budget& budget, const Value& format, const Value& values) {
  return PercentFormatter(budget, format, values).run();
}

Value format_braces(Runtime& runtime, const Value& format, const Arguments& arguments) {
  return BraceFormatter(runtime, format, arguments).run();
}

}  // namespace weft::jinja
