#pragma once

// Templates with their expected text, and templates that must be refused.

#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/chat_template.h"

namespace weft {

struct TemplateCase {
  const char* source;
  const char* text;
};

inline nlohmann::ordered_json template_variables() {
  return nlohmann::ordered_json::parse(
      R"json({"messages": [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "Grüße"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes", "tags": ["a", "b"]}],
    "d": {"x": 1, "y": [1, 2, 3], "z": null},
    "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}],
    "bos_token": "<s>", "none_value": null})json");
}

// Each template gives its text with the variables above.
inline void expect_texts(const std::vector<TemplateCase>& cases) {
  const auto context = template_variables();
  for (const TemplateCase& one : cases) {
    SCOPED_TRACE(one.source);
    EXPECT_EQ(ChatTemplate(one.source).render(context), one.text);
  }
}

// Each template is refused, when it is parsed or when it runs.
inline void expect_errors(const std::vector<const char*>& sources) {
  const auto context = template_variables();
  for (const char* source : sources) {
    SCOPED_TRACE(source);
    EXPECT_THROW(ChatTemplate(source).render(context), UserError);
  }
}

}  // namespace weft
