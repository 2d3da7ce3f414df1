// Text to tokens and back, and chats to text.

#include <optional>

#include <fmt/core.h>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/conversation.h"
#include "io/detokenizer.h"
#include "tests/parity.h"

namespace weft::parity {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

}  // namespace

void check_tokenizer(Family& family, const Subject& subject) {
  for (const Json& one : read_cases(subject, "strings.json")) {
    const std::string name = one.at("name"), text = one.at("text");
    family.run(name, [&] {
      family.expect_ids(name, subject.tokenizer.encode(text, {.add_special = false}), ids_of(one.at("ids")));
      const Json& plain = one.contains("ids_plain") ? one.at("ids_plain") : one.at("ids");
      family.expect_ids(name + " (plain)",
                        subject.tokenizer.encode(text, {.parse_special = false, .add_special = false}), ids_of(plain));
    });
  }
}

void check_detokenizer(Family& family, const Subject& subject) {
  for (const Json& one : read_cases(subject, "detokenize.json")) {
    const std::string name = one.at("name"), text = one.at("text");
    family.run(name, [&] {
      const std::vector<int> ids = ids_of(one.at("ids"));
      family.expect_text(name, subject.tokenizer.decode(ids), text);
      family.expect_text(name + " (skip special)", subject.tokenizer.decode(ids, {.skip_special = true}),
                         one.value("text_skip_special", text));
      for (std::size_t i = 0; i < ids.size(); ++i)
        family.expect_text(fmt::format("{} (piece {})", name, i), std::string(subject.tokenizer.token_bytes(ids[i])),
                           from_hex(one.at("pieces_hex").at(i)));
      // Where the stream is cut is ours to choose, but for this: never inside a character, nothing lost.
      StreamingDetokenizer stream(subject.tokenizer);
      std::string streamed;
      for (int id : ids) {
        const std::string part = stream.push(id);
        family.check(name + " (stream cuts a character)", !first_invalid_utf8(part));
        streamed += part;
      }
      family.expect_text(name + " (stream)", streamed + stream.finish(), text);
    });
  }
}

void check_chat(Family& family, const Subject& subject) {
  const ChatTemplate chat_template(chosen_chat_template(&subject.checkpoint, "", Json::object()));
  for (const Json& one : read_cases(subject, "chat.json")) {
    const std::string name = one.at("name");
    family.run(name, [&] {
      const Json variables =
          chat_variables(subject.tokenizer.vocabulary(), one.at("messages"), one.at("add_generation_prompt"));
      const std::string text = chat_template.render(variables);
      family.expect_text(name, text, one.at("text"));
      family.expect_ids(name + " (ids)", subject.tokenizer.encode(text, {.add_special = false}), ids_of(one.at("ids")));
    });
  }
}

void check_templates(Family& family, const Subject& subject) {
  const Json file = read_json(subject, "template_cases.json");
  for (const Json& one : file.at("cases")) {
    const std::string name = one.at("name");
    std::optional<std::string> text, error;
    try {
      text = ChatTemplate(one.at("template").get<std::string>())
                 .render(one.contains("context") ? one.at("context") : file.at("context"));
    } catch (const UserError& refusal) {
      error = refusal.what();
    }
    if (one.contains("error")) {
      family.check(name, error.has_value(), "wanted a refusal, but came " + text.value_or(""));
    } else if (error) {
      family.check(name, false, *error);
    } else {
      family.expect_text(name, *text, one.at("text"));
    }
  }
}

}  // namespace weft::parity
