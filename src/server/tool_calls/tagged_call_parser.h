#pragma once

// Calls whose arguments are texts between tags, and not JSON:
//   <tool_call>\n<function=f>\n<parameter=key>\nvalue\n</parameter>\n</function>\n</tool_call>     Qwen 3 Coder
//   <tool_call>f\n<arg_key>key</arg_key>\n<arg_value>value</arg_value>\n</tool_call>                GLM 4.5
// They are reported as JSON: the schema of a tool says which values are texts.

#include <memory>
#include <string_view>

#include "base/json.h"
#include "server/tool_calls/tool_parser.h"

namespace weft {

struct TaggedForm {
  std::string_view call_begin, call_end;
  std::string_view name_begin;  // "": the name follows the begin of the call, up to white space or a tag
  std::string_view name_end;    // "" with it
  std::string_view key_begin, key_end;
  std::string_view value_begin;  // "": the value follows its key
  std::string_view value_end;
  std::string_view function_end;  // "": a call ends with its last tag
  bool has_line_feeds = false;    // one at each end of a value is not part of it
};

// `form` and `tools` must outlive the parser.
std::unique_ptr<ToolParser> tagged_call_parser(const TaggedForm& form, const Json& tools);

}  // namespace weft
