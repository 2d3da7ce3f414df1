#include "io/jinja/json.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/jinja/comparison.h"
#include "io/jinja/iteration.h"
#include "io/jinja/printer.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

struct JsonStyle {
  bool ascii = false;
  bool sorted = false;
  bool is_indented = false;
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

class JsonWriter {
 public:
  JsonWriter(Budget& budget, const JsonStyle& style) : budget_(budget), out_(budget), style_(style) {}

  std::string take() { return out_.take(); }

  void write(const Value& value) {
    budget_.step();
    switch (value.kind()) {
      case Kind::none:
        out_.append("null");
        break;
      case Kind::boolean:
      case Kind::integer:
      case Kind::real:
        out_.append(number_text(value));
        break;
      case Kind::string:
        write_string(value.text());
        break;
      case Kind::list:
      case Kind::tuple:
        write_list(value.items());
        break;
      case Kind::dict:
        write_dict(value.dict());
        break;
      default:
        fail_template("Object of type {} is not JSON serializable", type_name(value));
    }
  }

 private:
  static std::string number_text(const Value& value) {
    if (value.is(Kind::boolean)) return value.integer() != 0 ? "true" : "false";
    if (value.is(Kind::integer)) return fmt::format("{}", value.integer());
    if (std::isnan(value.real())) return "NaN";
    if (std::isinf(value.real())) return value.real() < 0 ? "-Infinity" : "Infinity";
    return real_text(value.real());
  }

  void new_line() {
    if (!style_.is_indented) return;
    out_.append("\n");
    for (int i = 0; i < depth_; ++i) out_.append(style_.indent);
  }

  template <class Items, class Write>
  void write_items(const Items& items, std::string_view open, std::string_view close, Write&& write_item) {
    out_.append(open);
    if (!items.empty()) {
      ++depth_;
      bool first = true;
      for (const auto& item : items) {
        if (!first) out_.append(style_.item_separator);
        first = false;
        new_line();
        write_item(item);
      }
      --depth_;
      new_line();
    }
    out_.append(close);
  }

  void write_list(const std::vector<Value>& items) {
    write_items(items, "[", "]", [this](const Value& item) { write(item); });
  }

  void write_dict(const Dict& dict) {
    std::vector<const Dict::Entry*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sorted)
      std::stable_sort(entries.begin(), entries.end(), [this](const Dict::Entry* left, const Dict::Entry* right) {
        return is_less(budget_, left->key, right->key);
      });
    write_items(entries, "{", "}", [this](const Dict::Entry* entry) {
      write_key(entry->key);
      out_.append(style_.key_separator);
      write(entry->value);
    });
  }

  void write_key(const Value& key) {
    if (key.is_string()) {
      write_string(key.text());
    } else if (key.is_none()) {
      write_string("null");
    } else if (key.is_number()) {
      write_string(number_text(key));
    } else {
      fail_template("keys must be str, int, float, bool or None, not {}", type_name(key));
    }
  }

  void write_string(std::string_view text) {
    std::string quoted = "\"";
    for (std::size_t position = 0; position < text.size();) {
      const Character character = character_at(text, position);
      append_escaped(quoted, text.substr(position, character.bytes), character.code);
      position += character.bytes;
    }
    out_.append(quoted + "\"");
  }

  void append_escaped(std::string& out, std::string_view bytes, char32_t code) const {
    constexpr std::string_view kShort = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    const std::size_t place = code < 0x80 ? kShort.find(static_cast<char>(code)) : std::string_view::npos;
    if (place != std::string_view::npos) {
      out += '\\';
      out += kLetters[place];
    } else if (code < 0x20 || (style_.ascii && code > 0x7E && code < 0x10000)) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    } else if (style_.ascii && code >= 0x10000) {
      const auto rest = static_cast<unsigned>(code) - 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
    } else {
      out += bytes;
    }
  }

  Budget& budget_;
  Printer out_;
  const JsonStyle& style_;
  int depth_ = 0;
};

Value from_json_at(Budget& budget, const nlohmann::ordered_json& json, int depth) {
  if (depth > kMaxNesting) fail_template("template variables nested more than {} deep", kMaxNesting);
  switch (json.type()) {
    case nlohmann::json::value_t::null:
      return Value::none();
    case nlohmann::json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case nlohmann::json::value_t::number_integer:
      return Value::integer(json.get<std::int64_t>());
    case nlohmann::json::value_t::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        fail_template("the template variables hold the integer {}, which is beyond 64 bits with a sign", number);
      return Value::integer(static_cast<std::int64_t>(number));
    }
    case nlohmann::json::value_t::number_float:
      return Value::real(json.get<double>());
    case nlohmann::json::value_t::string:
      return make_string(budget, json.get_ref<const std::string&>());
    case nlohmann::json::value_t::array: {
      std::vector<Value> items;
      for (const auto& item : json) items.push_back(from_json_at(budget, item, depth + 1));
      return make_list(budget, std::move(items));
    }
    case nlohmann::json::value_t::object: {
      Dict dict;
      for (const auto& [key, value] : json.items())
        dict.set(make_string(budget, key), from_json_at(budget, value, depth + 1));
      return make_dict(budget, std::move(dict));
    }
    default:
      fail_template("the template variables hold a value that is not JSON");
  }
}

void set_indent(JsonStyle& style, const Value* indent) {
  if (indent == nullptr || indent->is_none()) return;
  style.is_indented = true;
  style.item_separator = ",";
  if (indent->is_string()) {
    style.indent = indent->text();
    return;
  }
  const std::int64_t width = integer_argument("tojson", indent, 0);
  constexpr std::int64_t kMaxIndent = 1000;
  if (width > kMaxIndent) fail_template("an indentation beyond {}", kMaxIndent);
  style.indent = std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, width)), ' ');
}

void set_separators(JsonStyle& style, const Value* separators) {
  if (separators == nullptr || separators->is_none()) return;
  const bool is_pair = (separators->is(Kind::list) || separators->is(Kind::tuple)) && separators->items().size() == 2 &&
                       separators->items()[0].is_string() && separators->items()[1].is_string();
  if (!is_pair) fail_template("tojson() needs two strings as its separators");
  style.item_separator = separators->items()[0].text();
  style.key_separator = separators->items()[1].text();
}

}  // namespace

Value from_json(Budget& budget, const nlohmann::ordered_json& json) { return from_json_at(budget, json, 0); }

Value json_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = values[0] != nullptr && is_true(*values[0]);
  set_indent(style, values[1]);
  set_separators(style, values[2]);
  style.sorted = values[3] != nullptr && is_true(*values[3]);
  JsonWriter writer(runtime.budget(), style);
  writer.write(input);
  return Value::string(writer.take());
}

}  // namespace weft::jinja
