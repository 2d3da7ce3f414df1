#include "base/yaml.h"

#include <charconv>
#include <memory>
#include <string_view>

#include <yaml.h>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr int kMostNodes = 10000, kDeepest = 64;

template <typename T>
bool read_all(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Json plain_scalar(std::string_view text) {
  if (text.empty() || text == "null" || text == "~" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  std::int64_t whole = 0;
  if (read_all(text, whole)) return whole;
  // Letters begin no number here: inf and nan are words.
  double number = 0;
  const char first = text[0] == '-' && text.size() > 1 ? text[1] : text[0];
  if (((first >= '0' && first <= '9') || first == '.') && read_all(text, number)) return number;
  return std::string(text);
}

class Converter {
 public:
  Converter(yaml_document_t& document, const std::string& where) : document_(document), where_(where) {}

  Json convert(int index, int depth = 0) {
    const yaml_node_t* node = yaml_document_get_node(&document_, index);
    USER_CHECK(++nodes_ <= kMostNodes && depth <= kDeepest, "[{}] is larger or deeper than such a file may be", where_);
    CHECK(node != nullptr, "a node of YAML is missing");
    switch (node->type) {
      case YAML_SCALAR_NODE:
        return scalar(*node);
      case YAML_SEQUENCE_NODE: {
        Json list = Json::array();
        for (const int* item = node->data.sequence.items.start; item < node->data.sequence.items.top; ++item)
          list.push_back(convert(*item, depth + 1));
        return list;
      }
      default:
        return mapping(*node, depth);
    }
  }

 private:
  static Json scalar(const yaml_node_t& node) {
    const std::string_view text(reinterpret_cast<const char*>(node.data.scalar.value), node.data.scalar.length);
    return node.data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain_scalar(text) : Json(std::string(text));
  }

  Json mapping(const yaml_node_t& node, int depth) {
    Json object = Json::object();
    for (const yaml_node_pair_t* pair = node.data.mapping.pairs.start; pair < node.data.mapping.pairs.top; ++pair) {
      const yaml_node_t* key = yaml_document_get_node(&document_, pair->key);
      USER_CHECK(key != nullptr && key->type == YAML_SCALAR_NODE, "[{}] line {}: a key must be a text", where_,
                 node.start_mark.line + 1);
      const std::string name(reinterpret_cast<const char*>(key->data.scalar.value), key->data.scalar.length);
      USER_CHECK(!object.contains(name), "[{}] line {}: the key {} is there twice", where_, key->start_mark.line + 1,
                 quote(name));
      object[name] = convert(pair->value, depth + 1);
    }
    return object;
  }

  yaml_document_t& document_;
  const std::string& where_;
  int nodes_ = 0;
};

}  // namespace

Json json_of_yaml(const std::string& text, const std::string& where) {
  yaml_parser_t parser;
  CHECK(yaml_parser_initialize(&parser) == 1, "no memory for a reader of YAML");
  const std::unique_ptr<yaml_parser_t, decltype(&yaml_parser_delete)> parser_owner(&parser, yaml_parser_delete);
  yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  yaml_document_t document;
  USER_CHECK(yaml_parser_load(&parser, &document) == 1, "[{}] is not YAML: line {}: {}", where,
             parser.problem_mark.line + 1, parser.problem == nullptr ? "unknown" : parser.problem);
  const std::unique_ptr<yaml_document_t, decltype(&yaml_document_delete)> document_owner(&document,
                                                                                         yaml_document_delete);
  if (yaml_document_get_root_node(&document) == nullptr) return nullptr;
  return Converter(document, where).convert(1);
}

}  // namespace weft
