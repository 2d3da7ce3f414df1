#include "io/tokenizer_json.h"

#include <string>

#include <simdjson.h>

#include "base/error.h"
#include "io/byte_order_mark.h"
#include "io/tokenizer_json_parts.h"

namespace weft {
namespace tokenizer_json {
namespace {

// The tokens between A and B of a template's `pair`, which has the form of `single`.
std::vector<int> tokens_between_texts(const Member& processor) {
  std::vector<int> between;
  int texts = 0;
  const Member pair = member(processor, "pair");
  if (!pair.present) return between;
  for (const Member& item : elements_of(pair)) {
    if (member(item, "Sequence").present) {
      ++texts;
    } else if (texts == 1) {
      const std::string_view name = text_of(member(member(item, "SpecialToken"), "id"));
      for (const Member& id : elements_of(member(member(member(processor, "special_tokens"), name), "ids")))
        between.push_back(id_of(id));
    }
  }
  return between;
}

// {"single": [{"SpecialToken": {"id": NAME}}, {"Sequence": {"id": "A"}}, ...], "special_tokens": {NAME: {"ids": [..]}}}
void read_template(const Member& processor, Vocabulary& vocabulary) {
  bool after_text = false;
  for (const Member& item : elements_of(member(processor, "single"))) {
    if (member(item, "Sequence").present) {
      USER_CHECK(!after_text, "[tokenizer.json] {} must have the text once, but repeats it", item.path);
      after_text = true;
      continue;
    }
    const std::string_view name = text_of(member(member(item, "SpecialToken"), "id"));
    const Member ids = member(member(member(processor, "special_tokens"), name), "ids");
    for (const Member& id : elements_of(ids)) {
      (after_text ? vocabulary.suffix : vocabulary.prefix).push_back(id_of(id));
    }
  }
  USER_CHECK(after_text, "[tokenizer.json] {}.single must have the text, but lacks it", processor.path);
  vocabulary.between = tokens_between_texts(processor);
  if (!vocabulary.prefix.empty()) vocabulary.bos = vocabulary.prefix.front();
}

// {"cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}; between two texts is the second one, once or twice.
void read_ends(const Member& processor, int count_between, Vocabulary& vocabulary) {
  const auto id_in = [&](std::string_view key) {
    const std::vector<Member> pair = elements_of(member(processor, key));
    USER_CHECK(pair.size() == 2, "[tokenizer.json] {}.{} must be a text and an id, but has {} elements", processor.path,
               key, pair.size());
    return id_of(pair[1]);
  };
  vocabulary.prefix = {id_in("cls")};
  vocabulary.suffix = {id_in("sep")};
  vocabulary.between.assign(static_cast<std::size_t>(count_between), vocabulary.suffix.front());
  vocabulary.bos = vocabulary.prefix.front();
}

void read_post_processor(const Member& root, Vocabulary& vocabulary) {
  bool has_template = false;
  for (const Member& part : parts_of(root, "post_processor", "processors")) {
    const Member type = member(part, "type");
    if (text_of(type) == "ByteLevel") continue;
    const bool is_template = text_of(type) == "TemplateProcessing";
    if (!is_template && text_of(type) != "BertProcessing" && text_of(type) != "RobertaProcessing") refuse(type);
    USER_CHECK(!has_template, "[tokenizer.json] post_processor must add tokens once, but {} adds more", part.path);
    has_template = true;
    if (is_template) {
      read_template(part, vocabulary);
    } else {
      read_ends(part, text_of(type) == "BertProcessing" ? 1 : 2, vocabulary);
    }
  }
}

}  // namespace
}  // namespace tokenizer_json

Vocabulary read_tokenizer_json(const std::string& text) {
  const std::string_view json_text = without_byte_order_mark(text);
  simdjson::dom::parser parser;
  tokenizer_json::Member root;
  root.present = true;
  // The parser reads some bytes beyond the end, and copies a text that has no memory there.
  const bool is_copied = text.capacity() - text.size() < simdjson::SIMDJSON_PADDING;
  const simdjson::error_code error = parser.parse(json_text.data(), json_text.size(), is_copied).get(root.json);
  if (error) fail_user("[tokenizer.json] must be JSON: {}", simdjson::error_message(error));
  if (!root.json.is_object()) fail_user("[tokenizer.json] must be an object");
  Vocabulary vocabulary;
  tokenizer_json::read_pre_tokenizer(root, vocabulary);
  tokenizer_json::read_model(root, vocabulary);
  tokenizer_json::read_normalizer(root, vocabulary);
  tokenizer_json::read_post_processor(root, vocabulary);
  tokenizer_json::read_decoder(root, vocabulary);
  return vocabulary;
}

}  // namespace weft
