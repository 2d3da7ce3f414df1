// Any text is an answer in each dialect, and it does not matter in how many pieces it arrives.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "base/utf8.h"
#include "server/answer_splitter.h"
#include "server/tool_calls/dialects.h"

namespace {

using namespace weft;

// The values of calls that are written in tags have the types of the parameters.
const Json& tools() {
  static const Json kTools = parse_json(
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{)"
      R"("a":{"type":"string"},"b":{"type":"integer"},"c":{"type":"object"},"d":{"type":["null","array"]}}}}}])");
  return kTools;
}

AnswerParts parsed(const ToolDialect& dialect, std::string_view text, std::size_t at_once) {
  AnswerSplitter splitter(ReasoningParser(*find_reasoning_format("think"), false), dialect.parser(tools()), {});
  AnswerParts parts;
  for (std::size_t at = 0; at < text.size(); at += at_once)
    for (const AnswerEvent& event : splitter.push(text.substr(at, at_once))) parts.add(event);
  for (const AnswerEvent& event : splitter.finish()) parts.add(event);
  return parts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const ToolDialect* dialect : tool_dialects()) {
    const AnswerParts whole = parsed(*dialect, text, size + 1);
    for (const std::size_t at_once : {1, 2, 7}) {
      const AnswerParts parts = parsed(*dialect, text, at_once);
      if (parts.content != whole.content || parts.reasoning != whole.reasoning || parts.calls != whole.calls)
        std::abort();
    }
    // The parser of the library refuses some JSON: numbers out of its range, and halves of surrogate pairs.
    for (const ToolCall& call : whole.calls)
      if (!first_invalid_utf8(call.arguments) && call.arguments.find_first_of("0123456789\\") == std::string::npos &&
          parse_json(call.arguments).is_discarded())
        std::abort();
  }
  return 0;
}
