#include "server/field_readers.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "server/json_body.h"
#include "server/message_checks.h"
#include "server/value_checks.h"

namespace weft {
namespace {

namespace dom = simdjson::dom;

// False if the value is not a list. `of` names the list in messages.
bool read_ids(Element value, std::vector<int>& ids, const std::string& of = "") {
  dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return false;
  ids.clear();
  for (const Element item : list)
    if (!read_id(item, ids.emplace_back()))
      throw WrongPart{fmt::format("item {}{} must be a token id, but is {}", ids.size() - 1, of, shown(item))};
  return true;
}

bool read_texts(Element value, std::vector<std::string>& texts) {
  dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return false;
  for (const Element item : list) {
    std::string_view text;
    if (item.get(text) != simdjson::SUCCESS)
      throw WrongPart{fmt::format("item {} must be a text, but is {}", texts.size(), shown(item))};
    texts.emplace_back(text);
  }
  return true;
}

}  // namespace

std::string read_prompt(Element value, ApiRequest& request) {
  request.prompts.clear();
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    request.prompts.emplace_back(PromptText(text));
    return "";
  }
  dom::array list;
  if (value.get(list) != simdjson::SUCCESS)
    return "a text, a list of texts, a list of token ids, or a list of lists of token ids";
  if (list.begin() == list.end()) return "";
  PromptIds ids;
  if ((*list.begin()).is_number()) {
    read_ids(value, ids);
    request.prompts.emplace_back(std::move(ids));
    return "";
  }
  for (const Element item : list) {
    const std::size_t index = request.prompts.size();
    if (item.get(text) == simdjson::SUCCESS) {
      request.prompts.emplace_back(PromptText(text));
    } else if (read_ids(item, ids, fmt::format(" of item {}", index))) {
      request.prompts.emplace_back(std::move(ids));
    } else {
      throw WrongPart{fmt::format("item {} must be a text or a list of token ids, but is {}", index, shown(item))};
    }
  }
  return "";
}

std::string read_stop(Element value, ApiRequest& request) {
  request.stop.clear();
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    request.stop.emplace_back(text);
    return "";
  }
  return read_texts(value, request.stop) ? "" : "a text or a list of texts";
}

std::string read_stop_ids(Element value, ApiRequest& request) {
  request.stop_token_ids.clear();
  return read_ids(value, request.stop_token_ids) ? "" : "a list of token ids";
}

std::string read_truncation_side(Element value, ApiRequest& request) {
  std::string_view side;
  if (value.get(side) != simdjson::SUCCESS || (side != "left" && side != "right")) return "left or right";
  request.truncation_side = side;
  return "";
}

std::string read_logit_bias(Element value, ApiRequest& request) {
  request.logit_bias.clear();
  dom::object biases;
  if (value.get(biases) != simdjson::SUCCESS) return "an object of token ids and numbers";
  for (const auto& [key, item] : last_members(biases)) {
    int id = 0;
    double bias = 0;
    if (!whole_id(key, id)) throw WrongPart{fmt::format("must have token ids as keys, but has {}", quote(key, 100))};
    if (item.get(bias) != simdjson::SUCCESS)
      throw WrongPart{fmt::format("the bias of {} must be a number, but is {}", key, shown(item))};
    request.logit_bias[id] = bias;
  }
  return "";
}

std::string read_allowed_ids(Element value, ApiRequest& request) {
  return read_ids(value, request.allowed_token_ids.emplace()) ? "" : "a list of token ids";
}

std::string read_bad_words(Element value, ApiRequest& request) {
  request.bad_words.clear();
  return read_texts(value, request.bad_words) ? "" : "a list of texts";
}

std::string read_tokens(Element value, ApiRequest& request) {
  request.tokens.clear();
  return read_ids(value, request.tokens) ? "" : "a list of token ids";
}

std::string read_messages(Element value, ApiRequest& request) {
  if (!value.is_array()) return "a list of messages";
  request.messages = to_json(value, "messages");
  check_messages(request.messages);
  return "";
}

std::string read_documents(Element value, ApiRequest& request) {
  if (!value.is_array()) return "a list";
  request.documents = to_json(value, "documents");
  return "";
}

std::string read_stream_options(Element value, ApiRequest& request) {
  dom::object options;
  if (value.get(options) != simdjson::SUCCESS) return "an object";
  request.has_stream_options = true;
  for (const auto& [key, item] : last_members(options)) {
    bool flag = false;
    if (item.is_null()) continue;
    const bool is_usage = key == "include_usage", is_continuous = key == "continuous_usage_stats";
    if ((is_usage || is_continuous) && item.get(flag) != simdjson::SUCCESS)
      return fmt::format("an object whose {} is true or false", key);
    if (is_usage) request.include_usage = flag;
    if (is_continuous) request.continuous_usage_stats = flag;
  }
  return "";
}

}  // namespace weft
