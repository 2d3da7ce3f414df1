// <tool_call>f
// <arg_key>key</arg_key>
// <arg_value>value</arg_value>
// </tool_call>
// GLM 4.5 and later write it so.

#include "server/tool_calls/dialects.h"
#include "server/tool_calls/tagged_call_parser.h"

namespace weft {
namespace {

constexpr TaggedForm kGlmForm{.call_begin = "<tool_call>",
                              .call_end = "</tool_call>",
                              .name_begin = "",
                              .name_end = "",
                              .key_begin = "<arg_key>",
                              .key_end = "</arg_key>",
                              .value_begin = "<arg_value>",
                              .value_end = "</arg_value>",
                              .function_end = ""};

std::unique_ptr<ToolParser> glm45_parser(const Json& tools) { return tagged_call_parser(kGlmForm, tools); }

bool is_glm45(std::string_view chat_template, const Vocabulary&) {
  return chat_template.find(kGlmForm.key_begin) != std::string_view::npos;
}

}  // namespace

// An answer that must be a call has hermes' form, in which a grammar can say what the arguments are.
const ToolDialect& glm45_dialect() {
  static const ToolDialect kRow{.name = "glm45",
                                .other_names = "glm47",
                                .is_of = is_glm45,
                                .parser = glm45_parser,
                                .envelope_parser = hermes_dialect().envelope_parser,
                                .envelope = hermes_dialect().envelope,
                                .markers = {kGlmForm.call_begin, kGlmForm.call_end, kGlmForm.key_begin,
                                            kGlmForm.key_end, kGlmForm.value_begin, kGlmForm.value_end}};
  return kRow;
}

}  // namespace weft
