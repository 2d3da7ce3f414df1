#include "server/api_request.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/utf8.h"
#include "server/api_error.h"
#include "server/json_body.h"
#include "server/request_fields.h"

namespace weft {
namespace {

constexpr std::size_t kMostWrongFields = 10;
constexpr std::size_t kMostPrompts = 1024, kMostStops = 4, kMostStopIds = 1024;
constexpr std::int64_t kMostSequences = 16384;
constexpr std::size_t kLongestSalt = 128;
constexpr std::size_t kLongestFunctionName = 64, kLongestAnthropicName = 128;

// A whole number may be written as 3.0.
bool read_integer(Element value, std::int64_t& number) {
  if (value.get(number) == simdjson::SUCCESS) return true;
  double real = 0;
  if (value.get(real) != simdjson::SUCCESS || std::trunc(real) != real || std::abs(real) > 9e15) return false;
  number = static_cast<std::int64_t>(real);
  return true;
}

// Reads a value that is not null into the row's target. Returns "", or what the field must be.
std::string read_value(const FieldRow& row, Element value, ApiRequest& request) {
  return std::visit(
      [&](const auto& target) -> std::string {
        using Target = std::decay_t<decltype(target)>;
        if constexpr (std::is_same_v<Target, ReadField>) {
          return target(value, request);
        } else if constexpr (std::is_same_v<Target, std::optional<bool> ApiRequest::*>) {
          bool flag = false;
          if (value.get(flag) != simdjson::SUCCESS) return "true or false";
          request.*target = flag;
        } else if constexpr (std::is_same_v<Target, std::optional<std::int64_t> ApiRequest::*>) {
          std::int64_t number = 0;
          if (!read_integer(value, number)) return "an integer";
          request.*target = number;
        } else if constexpr (std::is_same_v<Target, std::optional<double> ApiRequest::*>) {
          double number = 0;
          if (value.get(number) != simdjson::SUCCESS) return "a number";
          request.*target = number;
        } else if constexpr (std::is_same_v<Target, std::optional<std::string> ApiRequest::*>) {
          std::string_view text;
          if (value.get(text) != simdjson::SUCCESS) return "a text";
          request.*target = std::string(text);
        } else if constexpr (std::is_same_v<Target, Json ApiRequest::*>) {
          if (!value.is_object()) return "an object";
          request.*target = to_json(value, std::string(row.name));
        } else if constexpr (std::is_same_v<Target, RepeatedField>) {
          if (!target.fits(value)) return target.wanted;
          request.repeated[std::string(row.name)] = to_json(value, std::string(row.name));
        }
        return "";
      },
      row.target);
}

// Reads a value that is not null. Returns "", or what is wrong with it.
std::string read_field(const FieldRow& row, Element value, ApiRequest& request) {
  try {
    const std::string wanted = read_value(row, value, request);
    return wanted.empty() ? "" : fmt::format("[{}] must be {}, but is {}", row.name, wanted, shown(value));
  } catch (const WrongPart& part) {
    return fmt::format("[{}] {}", row.name, part.sentence);
  }
}

// The number that the request has for the row, if the row is of a number.
std::optional<double> number_of(const FieldRow& row, const ApiRequest& request) {
  return std::visit(
      [&](const auto& target) -> std::optional<double> {
        using Target = std::decay_t<decltype(target)>;
        if constexpr (std::is_same_v<Target, std::optional<std::int64_t> ApiRequest::*> ||
                      std::is_same_v<Target, std::optional<double> ApiRequest::*>) {
          if (request.*target) return static_cast<double>(*(request.*target));
        }
        return std::nullopt;
      },
      row.target);
}

const FieldRow* find_row(std::string_view name, Endpoint endpoint) {
  for (const FieldRow& row : field_table())
    if ((row.endpoints & endpoint) != 0 && row.name == name) return &row;
  return nullptr;
}

// The fields without which an endpoint has nothing to do; none if there is a choice.
std::vector<std::string> required_fields(Endpoint endpoint) {
  switch (endpoint) {
    case completions:
    case llama_completion:
      return {"prompt"};
    case chat:
    case apply_template:
    case anthropic_count:
      return {"messages"};
    case anthropic_messages:
      return {"messages", "max_tokens"};
    case detokenize:
      return {"tokens"};
    case infill:
      return {"input_prefix", "input_suffix"};
    case responses:
    case embeddings:
    case classify:
    case raw_pooling:
      return {"input"};
    case rerank:
      return {"query", "documents"};
    default:
      return {};
  }
}

const char* stop_field(Endpoint endpoint) { return is_anthropic(endpoint) ? "stop_sequences" : "stop"; }

void require(bool holds, const std::string& field, const std::string& message) {
  if (!holds) throw wrong_value(fmt::format("[{}] {}", field, message), field);
}

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_utf8_continuation(c); }));
}

bool is_function_name(const std::string& name, std::size_t longest) {
  return !name.empty() && name.size() <= longest && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

void check_tools(const ApiRequest& request) {
  std::set<std::string> names;
  const std::size_t longest = is_anthropic(request.endpoint) ? kLongestAnthropicName : kLongestFunctionName;
  if (!request.tools.is_null()) {
    require(!request.tools.empty(), "tools", "must not be empty");
    for (const Json& tool : request.tools) {
      const auto& name = tool["function"]["name"].get_ref<const std::string&>();
      require(is_function_name(name, longest), "tools",
              fmt::format("a name must be 1 to {} letters, digits, _ and -, but is {}", longest, quote(name)));
      require(names.insert(name).second, "tools", fmt::format("the name {} must be there once", quote(name)));
    }
  }
  using Kind = ToolChoice::Kind;
  if (!request.tool_choice || request.tool_choice->kind == Kind::none) return;
  // Answers of responses always have a tool_choice, which clients send again.
  const bool is_chat = request.endpoint != responses && !is_anthropic(request.endpoint);
  if (!is_chat && request.tool_choice->kind == Kind::automatic) return;
  require(!names.empty(), "tool_choice", "is only for a request with tools");
  require(request.tool_choice->kind != Kind::named || names.contains(request.tool_choice->function),
          is_chat ? "tool_choice.function.name" : "tool_choice.name",
          fmt::format("must be the name of one of the tools, but is {}", quote(request.tool_choice->function)));
}

void check_combinations(const ApiRequest& request) {
  require(request.stream.value_or(false) || !request.has_stream_options, "stream_options", "is only for stream: true");
  const bool continues = request.continue_final_message.value_or(false);
  require(!continues || !request.add_generation_prompt.value_or(false), "continue_final_message",
          "excludes add_generation_prompt");
  require(!request.best_of || *request.best_of == request.n.value_or(1), "best_of", "must be equal to n");
  for (const std::string& text : request.stop)
    require(!text.empty(), stop_field(request.endpoint), "a text must not be empty");
  for (const std::string& text : request.bad_words) require(!text.empty(), "bad_words", "a word must not be empty");
  require(!request.allowed_token_ids || !request.allowed_token_ids->empty(), "allowed_token_ids",
          "must have at least one token");
  require(request.top_logprobs.value_or(0) == 0 || request.wants_logprobs.value_or(false), "top_logprobs",
          request.endpoint == responses ? "is only for include with message.output_text.logprobs"
                                        : "is only for logprobs: true");
  require(request.prompt_logprobs.value_or(0) == 0 || !request.stream.value_or(false), "prompt_logprobs",
          "is not for stream: true");
  if (request.cache_salt)
    require(!request.cache_salt->empty() && characters_in(*request.cache_salt) <= kLongestSalt &&
                request.cache_salt->find_first_of(std::string_view("@/\\\0", 4)) == std::string::npos,
            "cache_salt", "must be 1 to 128 characters without @, / and \\");
  require(!request.repeat_penalty ||
              request.repetition_penalty.value_or(*request.repeat_penalty) == *request.repeat_penalty,
          "repeat_penalty", "must be equal to repetition_penalty, which is the same parameter");
  require(request.json_schema.is_null() || request.grammar.value_or("").empty(), "json_schema", "excludes grammar");
  check_tools(request);
}

void check_counts(const ApiRequest& request) {
  const std::int64_t least = request.endpoint == completions && request.echo.value_or(false) ? 0 : 1;
  if (request.max_tokens)
    require(*request.max_tokens >= least, "max_tokens",
            fmt::format("must be at least {}, but is {}", least, *request.max_tokens));
  if (request.n_predict && !is_llama(request.endpoint))
    require(*request.n_predict == -1 || *request.n_predict >= least, "n_predict",
            fmt::format("must be -1, the rest of the context, or at least {}, but is {}", least, *request.n_predict));
  const auto limit = [](std::size_t count, std::size_t most, const char* field, const char* what) {
    require(count <= most, field, fmt::format("must have at most {} {}, but has {}", most, what, count));
  };
  const std::size_t prompts = std::max(request.prompts.size(), request.prompt_parts.size());
  if (request.endpoint == llama_completion) require(prompts > 0, "prompt", "must have at least one prompt");
  limit(std::max(prompts, request.second_texts.size()), kMostPrompts, prompt_field(request),
        is_pooled(request.endpoint) ? "texts" : "prompts");
  // llama.cpp and Anthropic have no such limit.
  if (!is_llama(request.endpoint) && !is_anthropic(request.endpoint))
    limit(request.stop.size(), kMostStops, "stop", "texts");
  limit(request.stop_token_ids.size(), kMostStopIds, "stop_token_ids", "tokens");
  require(static_cast<std::int64_t>(prompts) * request.n.value_or(1) <= kMostSequences, "n",
          fmt::format("times the number of prompts must be at most {}", kMostSequences));
}

}  // namespace

ApiRequest read_fields(simdjson::dom::object object, Endpoint endpoint) {
  ApiRequest request{.endpoint = endpoint};
  std::vector<std::string> wrong;
  std::string first;
  const FieldRow* refused = nullptr;
  std::vector<std::string> missing = required_fields(endpoint);
  for (const auto& [key, value] : last_members(object)) {
    const FieldRow* row = find_row(key, endpoint);
    if (row == nullptr) {
      if (request.unknown.size() < kMostWrongFields) request.unknown.emplace_back(key.substr(0, 100));
      continue;
    }
    if (value.is_null()) continue;
    std::erase(missing, key);
    if (const auto* refusal = std::get_if<RefusedField>(&row->target)) {
      if (!refusal->asks_nothing(value) && refused == nullptr) refused = row;
      continue;
    }
    std::string mistake = read_field(*row, value, request);
    if (mistake.empty()) continue;
    if (wrong.empty()) first = key;
    if (wrong.size() < kMostWrongFields) wrong.push_back(std::move(mistake));
  }
  for (const std::string& name : missing) {
    wrong.push_back(fmt::format("[{}] is missing", name));
    if (first.empty()) first = name;
  }
  if (!wrong.empty()) throw wrong_type(fmt::format("{}", fmt::join(wrong, "; ")), first);
  if (refused != nullptr) {
    const auto& refusal = std::get<RefusedField>(refused->target);
    const std::string message =
        fmt::format("[{}] {}", refused->name,
                    *refusal.sentence == '\0' ? "has no effect in this version, so it is refused" : refusal.sentence);
    request.refusal =
        std::make_shared<const ApiError>(refusal.status == 501 ? not_made_here(message, std::string(refused->name))
                                                               : wrong_value(message, std::string(refused->name)));
  }
  return request;
}

void check_fields(const ApiRequest& request) {
  if (request.refusal) throw *request.refusal;
  check_combinations(request);
  for (const FieldRow& row : field_table()) {
    if ((row.endpoints & request.endpoint) == 0) continue;
    const std::optional<double> number = number_of(row, request);
    if (!number) continue;
    const bool is_inside = *number <= row.most && (row.above ? *number > row.least : *number >= row.least);
    if (is_inside) continue;
    const std::string least = fmt::format("{} {}", row.above ? "above" : "at least", row.least);
    const std::string most = row.most >= 1e300 ? "" : fmt::format(" and at most {}", row.most);
    require(false, std::string(row.name), fmt::format("must be {}{}, but is {}", least, most, *number));
  }
  check_counts(request);
}

const char* prompt_field(const ApiRequest& request) {
  switch (request.endpoint) {
    case embeddings:
    case classify:
    case raw_pooling:
      return "input";
    case llama_embedding:
      return "content";
    case rerank:
      return "documents";
    case score:
      return "text_2";
    default:
      return "prompt";
  }
}

void check_token(int id, std::int64_t count, const char* field) {
  if (id >= 0 && id < count) return;
  const bool is_last = id == std::numeric_limits<int>::max(), is_first = id == std::numeric_limits<int>::min();
  throw wrong_value(fmt::format("[{}] a token must be in [0, {}), but is {}{}", field, count, id,
                                is_last    ? " or more"
                                : is_first ? " or less"
                                           : ""),
                    field);
}

std::vector<std::string> field_names(Endpoint endpoint) {
  std::vector<std::string> names;
  for (const FieldRow& row : field_table())
    if ((row.endpoints & endpoint) != 0) names.emplace_back(row.name);
  return names;
}

}  // namespace weft
