#include "tensor/schema.h"

#include <algorithm>
#include <array>

#include "tensor/attribute_parser.h"
#include "tensor/text_cursor.h"

namespace weft {
namespace {

struct TypeName {
  std::string_view text;
  ParameterType type;
};
// A type is printed as in its first row.
constexpr std::array kTypeNames = {
    TypeName{"Tensor", ParameterType::tensor},         TypeName{"Tensor[]", ParameterType::tensor_list},
    TypeName{"int", ParameterType::integer},           TypeName{"float", ParameterType::real},
    TypeName{"bool", ParameterType::boolean},          TypeName{"str", ParameterType::string},
    TypeName{"ScalarType", ParameterType::dtype},      TypeName{"int[]", ParameterType::integer_list},
    TypeName{"float[]", ParameterType::real_list},     TypeName{"SymInt", ParameterType::integer},
    TypeName{"SymInt[]", ParameterType::integer_list},
};

std::string_view type_text(ParameterType type) {
  return std::find_if(kTypeNames.begin(), kTypeNames.end(), [&](const TypeName& row) { return row.type == type; })
      ->text;
}

bool is_tensor_type(ParameterType type) { return type == ParameterType::tensor || type == ParameterType::tensor_list; }

// Whether the word has no other meaning in attributes. Other values of `str` keep their quotes.
bool is_plain_word(const std::string& value) {
  if (value.empty() || (value[0] >= '0' && value[0] <= '9')) return false;
  static constexpr std::array kTaken = {"true", "false", "none", "inf", "nan", "align", "ceildiv", "floordiv"};
  if (std::find(kTaken.begin(), kTaken.end(), value) != kTaken.end()) return false;
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::optional<Attribute> as_real(const Attribute& value) {
  if (std::holds_alternative<double>(value.storage())) return value;
  const Dim* dim = std::get_if<Dim>(&value.storage());
  if (dim != nullptr && dim->is_number()) return Attribute(static_cast<double>(dim->number()));
  return std::nullopt;
}

std::optional<Attribute> as_integer(const Attribute& value) {
  if (std::holds_alternative<Dim>(value.storage())) return value;
  // A symbol, whose name the parser could not distinguish from an enum word.
  if (const EnumWord* word = std::get_if<EnumWord>(&value.storage())) return Attribute(Dim::symbol(word->word));
  return std::nullopt;
}

std::optional<Attribute> as_string(const Attribute& value) {
  std::string text;
  if (const auto* dtype = std::get_if<DType>(&value.storage())) {
    text = std::string(dtype_text(*dtype));
  } else if (const auto* dim = std::get_if<Dim>(&value.storage())) {
    text = dim->symbol_name();
    if (text.empty()) return std::nullopt;
  } else if (const auto* word = std::get_if<EnumWord>(&value.storage())) {
    text = word->word;
  } else if (const auto* string = std::get_if<std::string>(&value.storage())) {
    text = *string;
  } else {
    return std::nullopt;
  }
  return is_plain_word(text) ? Attribute(EnumWord{text}) : Attribute(text);
}

std::optional<Attribute> as_list(const Attribute& value, std::optional<Attribute> (*element)(const Attribute&)) {
  const auto* list = std::get_if<AttributeList>(&value.storage());
  if (list == nullptr) return std::nullopt;
  AttributeList converted;
  for (const Attribute& item : *list) {
    std::optional<Attribute> one = element(item);
    if (!one) return std::nullopt;
    converted.push_back(std::move(*one));
  }
  return Attribute(std::move(converted));
}

std::optional<Attribute> converted(const Attribute& value, ParameterType type) {
  switch (type) {
    case ParameterType::integer:
      return as_integer(value);
    case ParameterType::real:
      return as_real(value);
    case ParameterType::string:
      return as_string(value);
    case ParameterType::integer_list:
      return as_list(value, as_integer);
    case ParameterType::real_list:
      return as_list(value, as_real);
    case ParameterType::boolean:
      if (std::holds_alternative<bool>(value.storage())) return value;
      return std::nullopt;
    case ParameterType::dtype:
      if (std::holds_alternative<DType>(value.storage())) return value;
      return std::nullopt;
    case ParameterType::tensor:
    case ParameterType::tensor_list:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string default_text(const Attribute& value) {
  if (value.is_none()) return "None";
  if (const bool* flag = std::get_if<bool>(&value.storage())) return *flag ? "True" : "False";
  return value.text();
}

class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : text_(text), cursor_(text, position_) {}

  Schema parse() {
    Schema schema;
    cursor_.skip_blanks();
    schema.name = name("the name of an op");
    cursor_.expect('(');
    if (!cursor_.accept(')')) {
      do add_parameter(schema);
      while (cursor_.accept(','));
      cursor_.expect(')');
    }
    cursor_.expect('-');
    cursor_.expect('>');
    if (cursor_.accept('(')) {
      if (!cursor_.accept(')')) {
        do schema.results.push_back(result());
        while (cursor_.accept(','));
        cursor_.expect(')');
      }
    } else {
      schema.results.push_back(result());
    }
    cursor_.skip_blanks();
    if (!cursor_.at_end()) cursor_.fail("the end of the schema");
    return schema;
  }

 private:
  std::string name(const char* expected) {
    cursor_.skip_blanks();
    const std::string_view word = cursor_.peek_word();
    if (word.empty()) cursor_.fail(expected);
    cursor_.word();
    return std::string(word);
  }

  ParameterType type() {
    cursor_.skip_blanks();
    const std::size_t start = position_;
    std::string spelled(cursor_.word());
    if (cursor_.rest().starts_with("[]")) {
      spelled += "[]";
      position_ += 2;
    }
    for (const TypeName& row : kTypeNames)
      if (row.text == spelled) return row.type;
    cursor_.move_to(start);
    cursor_.fail("one of Tensor Tensor[] int float bool str ScalarType int[] float[]");
  }

  bool liftable() {
    if (cursor_.peek() != '(') return false;
    cursor_.take();
    if (cursor_.peek_word() != "liftable") cursor_.fail("'liftable'");
    cursor_.word();
    cursor_.expect(')');
    return true;
  }

  Attribute default_value(const Parameter& parameter, const std::string& op) {
    cursor_.skip_blanks();
    const std::size_t start = position_;
    const std::string_view word = cursor_.peek_word();
    if (word == "None" || word == "True" || word == "False") {
      cursor_.word();
      if (word != "None") return conform(word == "True", parameter, op);
      if (!parameter.optional) {
        cursor_.move_to(start);
        cursor_.fail(fmt::format("a default of type {}", type_text(parameter.type)));
      }
      return Attribute();
    }
    if (is_tensor_type(parameter.type)) cursor_.fail("None as the default of a tensor");
    return conform(parse_attribute(text_, position_), parameter, op);
  }

  void add_parameter(Schema& schema) {
    Parameter parameter;
    cursor_.skip_blanks();
    const std::size_t start = position_;
    parameter.type = type();
    parameter.is_liftable = parameter.type == ParameterType::real && liftable();
    if (cursor_.peek() == '?') {
      cursor_.take();
      parameter.optional = true;
    }
    if (is_tensor_type(parameter.type) && schema.tensor_count() != schema.parameters.size()) {
      cursor_.move_to(start);
      cursor_.fail("an attribute, as tensors are first");
    }
    cursor_.skip_blanks();
    const std::size_t name_start = position_;
    parameter.name = name("the name of a parameter");
    if (schema.parameter_index(parameter.name) >= 0) {
      cursor_.move_to(name_start);
      cursor_.fail("a name that no other parameter has");
    }
    if (cursor_.accept('=')) parameter.default_value = default_value(parameter, schema.name);
    schema.parameters.push_back(std::move(parameter));
  }

  std::string result() {
    cursor_.skip_blanks();
    if (cursor_.peek_word() != "Tensor") cursor_.fail("'Tensor'");
    cursor_.word();
    cursor_.skip_blanks();
    return std::string(cursor_.word());
  }

  std::string_view text_;
  std::size_t position_ = 0;
  TextCursor cursor_;
};

}  // namespace

std::size_t Schema::tensor_count() const {
  return static_cast<std::size_t>(
      std::find_if(parameters.begin(), parameters.end(), [](const Parameter& p) { return !is_tensor_type(p.type); }) -
      parameters.begin());
}

int Schema::parameter_index(std::string_view wanted) const {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == wanted) return static_cast<int>(i);
  return -1;
}

std::string Schema::text() const {
  std::string text = name + "(";
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    text += fmt::format("{}{}{}{} {}", i == 0 ? "" : ", ", type_text(parameter.type),
                        parameter.is_liftable ? "(liftable)" : "", parameter.optional ? "?" : "", parameter.name);
    if (parameter.default_value) text += "=" + default_text(*parameter.default_value);
  }
  text += ") -> ";
  if (results.size() == 1) return text + "Tensor" + (results[0].empty() ? "" : " " + results[0]);
  text += "(";
  for (std::size_t i = 0; i < results.size(); ++i)
    text += fmt::format("{}Tensor{}{}", i == 0 ? "" : ", ", results[i].empty() ? "" : " ", results[i]);
  return text + ")";
}

Attribute conform(const Attribute& value, const Parameter& parameter, std::string_view op) {
  if (value.is_none() && parameter.optional) return value;
  std::optional<Attribute> result = converted(value, parameter.type);
  USER_CHECK(result.has_value(), "[{}] {} must be {}{}, but is {}", op, parameter.name, type_text(parameter.type),
             parameter.optional ? " or none" : "", value.text());
  return std::move(*result);
}

Schema parse_schema(std::string_view text) { return SchemaParser(text).parse(); }

}  // namespace weft
