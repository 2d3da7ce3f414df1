// <tool_call>
// <function=f>
// <parameter=key>
// value
// </parameter>
// </function>
// </tool_call>
// Qwen 3 Coder writes it so, sometimes without <tool_call>.

#include "server/tool_calls/dialects.h"
#include "server/tool_calls/tagged_call_parser.h"

namespace weft {
namespace {

constexpr TaggedForm kQwenForm{.call_begin = "<tool_call>",
                               .call_end = "</tool_call>",
                               .name_begin = "<function=",
                               .name_end = ">",
                               .key_begin = "<parameter=",
                               .key_end = ">",
                               .value_begin = "",
                               .value_end = "</parameter>",
                               .function_end = "</function>",
                               .has_line_feeds = true};

std::unique_ptr<ToolParser> qwen3_coder_parser(const Json& tools) { return tagged_call_parser(kQwenForm, tools); }

bool is_qwen3_coder(std::string_view chat_template, const Vocabulary&) {
  return chat_template.find(kQwenForm.name_begin) != std::string_view::npos;
}

}  // namespace

// An answer that must be a call has hermes' form, in which a grammar can say what the arguments are.
const ToolDialect& qwen3_coder_dialect() {
  static const ToolDialect kRow{.name = "qwen3_coder",
                                .other_names = "qwen3_xml",
                                .is_of = is_qwen3_coder,
                                .parser = qwen3_coder_parser,
                                .envelope_parser = hermes_dialect().envelope_parser,
                                .envelope = hermes_dialect().envelope,
                                .markers = hermes_dialect().markers};
  return kRow;
}

}  // namespace weft
