#include "io/chat_template.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/jinja/json.h"
#include "io/jinja/parser.h"
#include "io/jinja/renderer.h"

namespace weft {

namespace {

constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;

}  // namespace

ChatTemplate::ChatTemplate(std::string source) {
  USER_CHECK(source.size() <= kMaxSourceBytes, "[chat template] wanted at most {} bytes, but it has {}",
             kMaxSourceBytes, source.size());
  program_ = jinja::parse_template(source);
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
