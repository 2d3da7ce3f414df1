#include "io/chat_template.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/jinja/json.h"
#include "io/jinja/parser.h"
#include "io/jinja/renderer.h"
#include "io/regex.h"

namespace weft {

namespace {

constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;

nlohmann::ordered_json without_null_contents(nlohmann::ordered_json variables) {
  const auto messages = variables.find("messages");
  if (messages == variables.end() || !messages->is_array()) return variables;
  for (auto& message : *messages)
    if (message.is_object() && message.contains("content") && message["content"].is_null()) message.erase("content");
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
  jinja::Runtime runtime(limits);
  jinja::Value converted;
  try {
    converted = jinja::from_json(runtime.budget(), asks_for_none_ ? variables : without_null_contents(variables));
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
