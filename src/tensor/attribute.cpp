#include "tensor/attribute.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "base/error.h"

namespace weft {
namespace {

std::string quoted(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\n') {
      text += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      text += fmt::format("\\u{{{:x}}}", byte);
    } else {
      text += c;
    }
  }
  return text + "\"";
}

template <class T>
const T& get(const Attribute& attribute, const char* wanted) {
  const T* value = std::get_if<T>(&attribute.storage());
  CHECK(value != nullptr, "[attribute] wanted {}, but is {}", wanted, attribute.text());
  return *value;
}

struct Spell {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const Dim& value) const { return value.text(); }
  std::string operator()(double value) const { return float_text(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(DType value) const { return std::string(dtype_text(value)); }
  std::string operator()(const EnumWord& value) const { return value.word; }
  std::string operator()(const AttributeList& values) const {
    std::string text = "[";
    for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + values[i].text();
    return text + "]";
  }
};

}  // namespace

Attribute Attribute::shape(const Shape& shape) { return AttributeList(shape.begin(), shape.end()); }

bool Attribute::boolean() const { return get<bool>(*this, "true or false"); }
const Dim& Attribute::dim() const { return get<Dim>(*this, "an integer"); }

std::int64_t Attribute::integer() const {
  const Dim& value = dim();
  CHECK(value.is_number(), "[attribute] wanted a number, but is {}", value.text());
  return value.number();
}

double Attribute::real() const {
  if (const Dim* value = std::get_if<Dim>(&value_); value != nullptr && value->is_number())
    return static_cast<double>(value->number());
  return get<double>(*this, "a float");
}

const std::string& Attribute::string() const {
  if (const EnumWord* value = std::get_if<EnumWord>(&value_)) return value->word;
  return get<std::string>(*this, "a string");
}

const std::string& Attribute::word() const { return string(); }
DType Attribute::dtype() const { return get<DType>(*this, "a dtype"); }
const AttributeList& Attribute::list() const { return get<AttributeList>(*this, "a list"); }

Shape Attribute::as_shape() const {
  Shape shape;
  for (const Attribute& element : list()) shape.push_back(element.dim());
  return shape;
}

Attribute Attribute::substitute(const std::map<std::string, Dim>& replacements) const {
  if (const Dim* dim = std::get_if<Dim>(&value_)) return dim->substitute(replacements);
  const AttributeList* list = std::get_if<AttributeList>(&value_);
  if (list == nullptr) return *this;
  AttributeList copy;
  for (const Attribute& element : *list) copy.push_back(element.substitute(replacements));
  return copy;
}

bool Attribute::operator==(const Attribute& other) const {
  const double* a = std::get_if<double>(&value_);
  const double* b = std::get_if<double>(&other.value_);
  if (a != nullptr && b != nullptr) return std::bit_cast<std::uint64_t>(*a) == std::bit_cast<std::uint64_t>(*b);
  return value_ == other.value_;
}

Attribute AttributeView::attribute() const {
  switch (kind()) {
    case Kind::none:
      return {};
    case Kind::boolean:
      return number_ != 0;
    case Kind::integer:
      return static_cast<std::int64_t>(number_);
    case Kind::real:
      return std::bit_cast<double>(number_);
    case Kind::dtype:
      return static_cast<DType>(number_);
    case Kind::text:
      return std::string(letters());
    case Kind::word:
      return EnumWord{std::string(letters())};
    case Kind::dim:
      return at_place<Dim>();
    case Kind::shape:
      return Attribute::shape(at_place<Shape>());
    case Kind::attribute:
      return at_place<Attribute>();
  }
  CHECK(false, "[attribute] a view of kind {}", static_cast<int>(kind()));
}

AttributeView AttributeView::into(const Attribute& attribute) {
  const auto view = [&](const auto& held) -> AttributeView {
    using Held = std::decay_t<decltype(held)>;
    if constexpr (std::is_same_v<Held, std::monostate>)
      return {};
    else if constexpr (std::is_same_v<Held, AttributeList>)
      return attribute;
    else
      return held;
  };
  return std::visit(view, attribute.storage());
}

bool AttributeView::operator==(const Attribute& other) const {
  if (kind() == Kind::attribute) return at_place<Attribute>() == other;
  if (kind() != Kind::shape) return attribute() == other;
  const Shape& shape = at_place<Shape>();
  const AttributeList* list = std::get_if<AttributeList>(&other.storage());
  return list != nullptr && std::equal(list->begin(), list->end(), shape.begin(), shape.end(),
                                       [](const Attribute& a, const Dim& b) { return into(a) == AttributeView(b); });
}

bool AttributeView::is_same_value(const AttributeView& other) const {
  return other.kind() == Kind::attribute ? *this == other.at_place<Attribute>() : *this == other.attribute();
}

std::string Attribute::text() const { return std::visit(Spell(), value_); }

const Attribute* Attributes::find(const std::string& name) const {
  for (const auto& [key, value] : entries_)
    if (key == name) return &value;
  return nullptr;
}

const Attribute& Attributes::at(const std::string& name) const {
  const Attribute* value = find(name);
  CHECK(value != nullptr, "[attribute] there is no {}", name);
  return *value;
}

void Attributes::set(const std::string& name, Attribute value) {
  for (auto& [key, existing] : entries_) {
    if (key != name) continue;
    existing = std::move(value);
    return;
  }
  entries_.emplace_back(name, std::move(value));
}

std::string float_text(double value) {
  if (value != value) return "nan";
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  CHECK(error == std::errc(), "[attribute] a float is longer than {} characters", buffer.size());
  std::string text(buffer.data(), end);
  if (text.find_first_of(".ein") == std::string::npos) text += ".0";
  return text;
}

}  // namespace weft
