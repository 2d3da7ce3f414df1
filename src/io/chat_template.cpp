#include "io/chat_template.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/jinja/json.h"
#include "io/jinja/parser.h"
#include "io/jinja/renderer.h"
#include "io/regex.h"

namespace weft {

namespace {

constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;

using Json = nlohmann::ordered_json;

bool has_null_content(const Json& message) {
  return message.is_object() && message.contains("content") && message["content"].is_null();
}

bool has_null_contents(const Json& variables) {
  const auto messages = variables.find("messages");
  return messages != variables.end() && messages->is_array() &&
         std::any_of(messages->begin(), messages->end(), has_null_content);
}

Json without_null_contents(Json variables) {
  for (Json& message : variables["messages"])
    if (has_null_content(message)) message.erase("content");
  return variables;
}

}  // namespace

ChatTemplate::ChatTemplate(std::string source) {
  USER_CHECK(source.size() <= kMaxSourceBytes, "[chat template] wanted at most {} bytes, but it has {}",
             kMaxSourceBytes, source.size());
  program_ = jinja::parse_template(source);
  // content is none, message['content'] is not none
  static const Regex kQuestion = Regex::compile(R"(content['"]?\]?\s+is\s+(not\s+)?none)");
  Regex::Scratch scratch;
  asks_for_none_ = kQuestion.find(source, 0, scratch).has_value();
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const nlohmann::ordered_json& variables) const { return render(variables, {}); }

std::string ChatTemplate::render(const nlohmann::ordered_json& variables, const ChatTemplateLimits& limits) const {
  USER_CHECK(variables.is_object(), "[chat template] wanted an object of template variables, but got a JSON {}",
             variables.type_name());
  if (asks_for_none_ || !has_null_contents(variables)) return render_as_given(variables, limits);
  try {
    return render_as_given(without_null_contents(variables), limits);
  } catch (const UserError&) {
    // A template may want the key, as one that writes contents other than strings as JSON.
    return render_as_given(variables, limits);
  }
}

std::string ChatTemplate::render_as_given(const Json& variables, const ChatTemplateLimits& limits) const {
  jinja::Runtime runtime(limits);
  jinja::Value converted;
  try {
    converted = jinja::from_json(runtime.budget(), variables);
  } catch (const jinja::TemplateFailure& failure) {
    fail_user("[chat template] {}", failure.what());
  }
  jinja::Renderer renderer(runtime, converted.dict());
  try {
    return renderer.run(*program_);
  } catch (const jinja::TemplateRefusal& refusal) {
    fail_user("[chat template] {}", refusal.what());
  } catch (const jinja::TemplateFailure& failure) {
    fail_user("[chat template] line {}: {}", renderer.line(), failure.what());
  }
}

}  // namespace weft
