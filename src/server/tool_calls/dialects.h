#pragma once

// The table of dialects: how models write tool calls. Each has a file, which defines its row.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "io/vocabulary.h"
#include "server/tool_calls/tool_parser.h"

namespace weft {

// The text of an answer that must consist of calls, around their names and arguments. It has no special tokens, as a
// grammar allows none.
struct CallEnvelope {
  std::string_view begin;             // before the first call
  std::string_view before_name;       // of each call
  std::string_view before_arguments;  // after the name, to which nothing is escaped
  std::string_view after_arguments;
  std::string_view between;  // two calls
  std::string_view end;      // after the last call
};

struct ToolDialect {
  std::string_view name;              // of --tool-call-parser
  std::string_view other_names = "";  // vLLM's further names for the same form, with blanks between them
  // Whether a model with this chat template and this vocabulary writes this dialect.
  bool (*is_of)(std::string_view chat_template, const Vocabulary& vocabulary);
  // Of an answer that may have calls of these tools, which the parser refers to; null: it has none.
  std::unique_ptr<ToolParser> (*parser)(const Json& tools);
  // Of an answer in the envelope.
  std::unique_ptr<ToolParser> (*envelope_parser)();
  CallEnvelope envelope;
  // Texts of markers, which some vocabularies have as special tokens.
  std::vector<std::string_view> markers;
  bool has_short_ids = false;  // of 9 letters and digits
  // If an answer has reasoning and content in channels: the marker after which the content begins. `parser` reads
  // them, with tools or without. "": no channels.
  std::string_view content_marker = "";
  // With channels: a parser that has `content` read the text after that marker.
  std::unique_ptr<ToolParser> (*channel_parser)(std::unique_ptr<ToolParser> content) = nullptr;

  bool has_channels() const { return !content_marker.empty(); }
};

// The first row whose `is_of` holds is the dialect of a model; the last one's always does.
std::span<const ToolDialect* const> tool_dialects();
const ToolDialect& dialect_of(std::string_view chat_template, const Vocabulary& vocabulary);
std::string dialect_names();  // with commas between them
// What is wrong with a name of --tool-call-parser that find_dialect() does not know.
std::string wrong_dialect(std::string_view name);
// nullptr for another name.
const ToolDialect* find_dialect(std::string_view name);

const ToolDialect& hermes_dialect();
const ToolDialect& qwen3_coder_dialect();
const ToolDialect& glm45_dialect();
const ToolDialect& openai_dialect();
const ToolDialect& mistral_dialect();
const ToolDialect& llama3_json_dialect();
const ToolDialect& unknown_dialect();

// The parser of an answer that consists of the arguments of this function alone.
std::unique_ptr<ToolParser> arguments_parser(std::string function);

bool has_token(const Vocabulary& vocabulary, std::string_view text);

}  // namespace weft
