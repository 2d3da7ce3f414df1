// Each dialect: what an answer consists of, whatever the pieces in which its text comes.

#include "server/tool_calls/tool_parser.h"

#include <gtest/gtest.h>

#include "server/answer_splitter.h"
#include "server/tool_calls/dialects.h"
#include "server/tool_calls/text_scanner.h"

namespace weft::tool_parser_test {

// The answer in one piece, and what a stream sent.
struct Answer {
  AnswerParts parts;
  std::string sent_content;
  std::vector<ToolCall> sent_calls;
  std::size_t ended = 0;
};

void take(Answer& answer, const AnswerEvents& events) {
  for (const AnswerEvent& event : events) {
    answer.parts.add(event);
    switch (event.kind) {
      case AnswerEvent::Kind::content:
        answer.sent_content += event.text;
        break;
      case AnswerEvent::Kind::call_begin:
        answer.sent_calls.push_back({.name = event.text, .arguments = ""});
        break;
      case AnswerEvent::Kind::call_arguments:
        answer.sent_calls.back().arguments += event.text;
        break;
      case AnswerEvent::Kind::call_end:
        ++answer.ended;
        break;
      case AnswerEvent::Kind::call_broken:
        answer.sent_content += event.unsent;
        break;
      case AnswerEvent::Kind::reasoning:
        break;
    }
  }
}

// In pieces of `sizes`: the first has sizes[0] bytes, and the last size is that of all further ones.
Answer parsed(std::unique_ptr<ToolParser> parser, const std::string& text, const std::vector<std::size_t>& sizes) {
  Answer answer;
  std::size_t piece = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = sizes[std::min(piece++, sizes.size() - 1)];
    AnswerEvents events;
    parser->push(text.substr(at, size), events);
    take(answer, events);
    at += size;
  }
  AnswerEvents events;
  parser->finish(events);
  take(answer, events);
  return answer;
}

std::string without_space(std::string text) {
  std::erase_if(text, is_json_space);
  return text;
}

// What the arguments of tagged calls are.
const Json& tools() {
  static const Json kTools = parse_json(R"([{"type":"function","function":{"name":"f","parameters":{"type":"object",
    "properties":{"s":{"type":"string"},"n":{"type":"integer"},"b":{"type":"boolean"},"o":{"type":"object"},
      "l":{"type":["array","null"]},"u":{"anyOf":[{"type":"string"},{"type":"number"}]},"e":{"enum":["x","y"]}}}}}])");
  return kTools;
}

struct Case {
  const char* dialect;
  std::string text;
  std::string content;
  std::vector<ToolCall> calls;
};

const std::vector<Case> kCases = {
    {"hermes", "Hello <b> you & <tool", "Hello <b> you & <tool", {}},
    {"hermes", " \n ", " \n ", {}},
    {"hermes",
     "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, {\"b\": \"}{\\\"\"}], \"c\": -1.5e3}}\n</tool_call>",
     "",
     {{"f", "{\"a\": [1, {\"b\": \"}{\\\"\"}], \"c\": -1.5e3}"}}},
    {"hermes",
     "Let me see.\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>\n{\"arguments\": {\"x\":1} "
     ", "
     "\"name\": \"g\"}\n</tool_call>\n",
     "Let me see.\n",
     {{"f", "{}"}, {"g", "{\"x\":1}"}}},
    {"hermes", "\n\n<tool_call>{\"name\":\"f\"}</tool_call>", "", {{"f", "{}"}}},
    {"hermes", "<tool_call>{\"name\":\"f\",\"arguments\":null}", "", {{"f", "{}"}}},
    {"hermes",
     "<tool_call>{\"id\":7,\"name\":\"caf\\u00e9\",\"arguments\":{\"é\":\"ü\"}}</tool_call> done",
     " done",
     {{"café", "{\"é\":\"ü\"}"}}},
    {"hermes", "<tool_call>f(x)</tool_call>", "<tool_call>f(x)</tool_call>", {}},
    {"hermes", "<tool_call>{\"arguments\":{}}</tool_call>", "<tool_call>{\"arguments\":{}}</tool_call>", {}},
    {"hermes", "<tool_call>{\"name\":\"f\",\"arguments\":7}</tool_call>", "", {{"f", "7"}}},
    {"tool_call", "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>", "", {{"f", "{\"a\":1}"}}},
    {"llama3_json", "{\"name\": \"f\", \"parameters\": {\"q\": \"a;b\"}}", "", {{"f", "{\"q\": \"a;b\"}"}}},
    {"llama3_json",
     "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {\"n\": null}}",
     "",
     {{"f", "{}"}, {"g", "{\"n\": null}"}}},
    {"llama3_json", "{\"name\": \"Bob\", \"age\": 7}", "{\"name\": \"Bob\", \"age\": 7}", {}},
    {"llama3_json", "No {\"name\": \"f\", \"parameters\": {}}", "No {\"name\": \"f\", \"parameters\": {}}", {}},
    {"llama3_json", "<|python_tag|>print(1)", "<|python_tag|>print(1)", {}},
    {"mistral",
     "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": []}}, {\"name\": \"g\", \"arguments\": {}}]",
     "",
     {{"f", "{\"a\": []}"}, {"g", "{}"}}},
    {"mistral",
     "Yes.[TOOL_CALLS]get_it[ARGS]{\"a\": 1}[TOOL_CALLS]g[CALL_ID]Ab3456789[ARGS]{}",
     "Yes.",
     {{"get_it", "{\"a\": 1}"}, {"g", "{}"}}},
    {"mistral", "[TOOL_CALLS]f{\"a\": 1}", "", {{"f", "{\"a\": 1}"}}},
    {"mistral", "[TOOL_CALLS]f[ARGS]7", "[TOOL_CALLS]f[ARGS]7", {}},
    {"mistral", "[TOOL]s [TOOL_CALLS", "[TOOL]s [TOOL_CALLS", {}},
    {"qwen3_coder",
     "I look.\n<tool_call>\n<function=f>\n<parameter=s>\na "
     "\"b\"\n\té\n</parameter>\n<parameter=n>\n12\n</parameter>\n"
     "<parameter=b>\nTrue\n</parameter>\n</function>\n</tool_call>",
     "I look.\n",
     {{"f", R"({"s": "a \"b\"\n\té", "n": 12, "b": true})"}}},
    {"qwen3_coder",
     "<tool_call>\n<function=f>\n<parameter=o>\n{\"a\": [1]}\n</parameter>\n<parameter=l>\nnull\n</parameter>\n"
     "<parameter=u>\n1.5\n</parameter>\n<parameter=e>\n1\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n"
     "<function=g>\n</function>\n</tool_call>",
     "",
     {{"f", R"({"o": {"a": [1]}, "l": null, "u": 1.5, "e": "1"})"}, {"g", "{}"}}},
    {"qwen3_coder",
     "<function=f><parameter=s>\n\n</parameter><parameter=u>x</p</parameter><parameter=n>many</parameter></function> "
     ".",
     " .",
     {{"f", R"({"s": "", "u": "x</p", "n": "many"})"}}},
    {"qwen3_coder", "<tool_call>\n<function=f x>", "<tool_call>\n<function=f x>", {}},
    {"qwen3_coder", "<tool_call>\n{\"name\"", "<tool_call>\n{\"name\"", {}},
    {"qwen3_coder", "</tool_call> <functio", "</tool_call> <functio", {}},
    {"glm45",
     "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>a\n<b></arg_value>\n<arg_key>n</arg_key>\n<arg_value>-3</"
     "arg_value>\n"
     "</tool_call>\n<tool_call>g\n</tool_call>",
     "",
     {{"f", R"({"s": "a\n<b>", "n": -3})"}, {"g", "{}"}}},
    {"glm45",
     "Hm.<tool_call>g<arg_key>k</arg_key><arg_value></arg_value></tool_call> ok",
     "Hm. ok",
     {{"g", R"({"k": ""})"}}},
    {"glm45", "<tool_call>f(x)</tool_call>", "<tool_call>f(x)</tool_call>", {}},
    {"openai", "Hello", "Hello", {}},
    {"openai",
     "<|channel|>analysis<|message|>I think.<|end|><|start|>assistant<|channel|>final<|message|> Hi <|x|>",
     " Hi <|x|>",
     {}},
    {"openai",
     "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"n\": 1}<|call|>",
     "",
     {{"f", "{\"n\": 1}"}}},
    {"openai",
     "<|channel|>commentary<|message|>First.<|end|><|start|>assistant to=functions.g<|channel|>commentary "
     "json<|message|>"
     "{}<|call|><|start|>assistant<|channel|>commentary to=functions.f<|message|>{\"s\":\"\"}",
     "First.",
     {{"g", "{}"}, {"f", "{\"s\":\"\"}"}}},
};

TEST(ToolParser, FindsTheCallsOfEachDialect) {
  for (const Case& one : kCases) {
    const Answer whole = parsed(find_dialect(one.dialect)->parser(tools()), one.text, {one.text.size()});
    EXPECT_EQ(whole.parts.content, one.content) << one.text;
    EXPECT_EQ(whole.parts.calls, one.calls) << one.text;
    EXPECT_EQ(whole.ended, one.calls.size()) << one.text;
    EXPECT_EQ(whole.sent_content, one.content) << one.text;
    EXPECT_EQ(whole.sent_calls, one.calls) << one.text;
  }
}

TEST(ToolParser, DoesNotDependOnThePieces) {
  const auto expect = [](const Case& one, const std::vector<std::size_t>& sizes) {
    const Answer answer = parsed(find_dialect(one.dialect)->parser(tools()), one.text, sizes);
    EXPECT_EQ(answer.parts.content, one.content) << one.text;
    EXPECT_EQ(answer.sent_calls, one.calls) << one.text;
    EXPECT_EQ(answer.sent_content, one.content) << one.text;
  };
  for (const Case& one : kCases) {
    for (std::size_t cut = 1; cut < one.text.size(); ++cut) expect(one, {cut, one.text.size()});
    for (std::size_t size = 1; size <= 5; ++size) expect(one, {size});
  }
}

// What a stream has sent stays: the whole answer has all of a cut call as content, and a stream what was not sent yet.
TEST(ToolParser, KeepsEveryCharacterOfACallThatIsCut) {
  for (const Case& one : kCases) {
    for (std::size_t end = 0; end < one.text.size(); ++end) {
      const std::string text = one.text.substr(0, end);
      const Answer answer = parsed(find_dialect(one.dialect)->parser(tools()), text, {3});
      EXPECT_EQ(answer.parts.calls.size(), answer.ended) << text;
      EXPECT_LE(answer.ended, one.calls.size()) << text;
      // White space between calls is dropped.
      const bool has_headers = std::string_view(one.dialect) == "openai";  // which are no content
      if (answer.ended == 0 && !has_headers) {
        EXPECT_EQ(without_space(answer.parts.content), without_space(text));
      }
      for (std::size_t i = 0; i < answer.ended; ++i) EXPECT_EQ(answer.parts.calls[i], one.calls[i]) << text;
    }
  }
}

TEST(ToolParser, NeverShowsAPartOfAMarker) {
  const auto parser = find_dialect("hermes")->parser(tools());
  AnswerEvents events;
  parser->push("a<tool_cal", events);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].text, "a");
  events.clear();
  parser->push("l>{\"name\":\"f\",\"arg", events);
  EXPECT_TRUE(events.empty());
  parser->push("uments\":{\"k", events);
  ASSERT_EQ(events.size(), 2U) << "arguments come as the model writes them";
  EXPECT_EQ(events[0].text, "f");
  EXPECT_EQ(events[1].text, "{\"k");
}

TEST(ToolParser, ReadsTheEnvelopesOfAnswersThatMustBeCalls) {
  for (const ToolDialect* dialect : tool_dialects()) {
    const CallEnvelope& envelope = dialect->envelope;
    std::string text(envelope.begin);
    for (const char* name : {"f", "g"}) {
      if (*name == 'g') text += envelope.between;
      text += std::string(envelope.before_name) + name + std::string(envelope.before_arguments) + "{\"a\":1}" +
              std::string(envelope.after_arguments);
    }
    text += envelope.end;
    const Answer answer = parsed(dialect->envelope_parser(), text, {2});
    EXPECT_EQ(answer.parts.calls, (std::vector<ToolCall>{{"f", "{\"a\":1}"}, {"g", "{\"a\":1}"}})) << text;
    EXPECT_EQ(answer.parts.content, "") << text;
  }
  EXPECT_EQ(parsed(arguments_parser("f"), "{\"a\":1}", {2}).parts.calls, (std::vector<ToolCall>{{"f", "{\"a\":1}"}}));
}

TEST(ToolParser, IsFoundByTemplateAndVocabulary) {
  Vocabulary plain, mistral, llama, channels;
  mistral.tokens = {"[TOOL_CALLS]"};
  llama.tokens = {"<|python_tag|>"};
  channels.tokens = {"<|channel|>", "<|message|>"};
  EXPECT_EQ(dialect_of("..<tool_call>..", plain).name, "hermes");
  EXPECT_EQ(dialect_of("..<tool_call>\n<function=..", plain).name, "qwen3_coder");
  EXPECT_EQ(dialect_of("..<tool_call>..<arg_key>", plain).name, "glm45");
  EXPECT_EQ(dialect_of("..", channels).name, "openai");
  EXPECT_EQ(find_dialect("qwen3_xml"), find_dialect("qwen3_coder"));
  EXPECT_EQ(find_dialect(""), nullptr);
  EXPECT_EQ(dialect_of("{{ x }}", mistral).name, "mistral");
  EXPECT_EQ(dialect_of("{{ x }}", llama).name, "llama3_json");
  EXPECT_EQ(dialect_of("{\"name\": , \"parameters\": }", plain).name, "llama3_json");
  EXPECT_EQ(dialect_of("{{ x }}", plain).name, "tool_call");
}

TEST(ToolParser, SeparatesChannels) {
  const std::string text =
      "<|channel|>analysis<|message|> I <|end|><|start|>assistant<|channel|>commentary to=functions.f <|message|>{}"
      "<|call|><|start|>assistant<|channel|>analysis<|message|>see.<|end|><|start|>assistant<|channel|>final<|message|>"
      "Yes.";
  const ToolDialect& dialect = *find_dialect("openai");
  for (std::size_t size = 1; size <= 5; ++size) {
    const Answer answer = parsed(dialect.parser(tools()), text, {size});
    EXPECT_EQ(answer.parts.reasoning, "Isee.");
    EXPECT_EQ(answer.parts.content, "Yes.");
    EXPECT_EQ(answer.parts.calls, (std::vector<ToolCall>{{"f", "{}"}}));
    // Without tools what looks like a call is content.
    EXPECT_EQ(parsed(dialect.parser(nullptr), text, {size}).parts.content, "{}Yes.");
  }
  const std::string forced =
      "<|channel|>analysis<|message|>I<|end|><|start|>assistant" + std::string(dialect.content_marker) + "{\"a\":1}";
  const Answer named = parsed(dialect.channel_parser(arguments_parser("f")), forced, {3});
  EXPECT_EQ(named.parts.reasoning, "I");
  EXPECT_EQ(named.parts.content, "");
  EXPECT_EQ(named.parts.calls, (std::vector<ToolCall>{{"f", "{\"a\":1}"}}));
}

TEST(AnswerSplitter, SeparatesReasoningFromAnswerAndCalls) {
  struct Expected {
    bool begins_inside;
    std::string text, reasoning, content;
    std::size_t calls = 0;
  };
  const ReasoningFormat& format = *find_reasoning_format("think");
  const std::string call = "<tool_call>{\"name\":\"f\"}</tool_call>";
  const Expected all[] = {
      {false, "<think>\nI see. \n\nYes\n</think>\n\nHi </think>", "I see. \n\nYes", "Hi </think>"},
      {true, "\nI <b> see\n</think>\n\nHi", "I <b> see", "Hi"},
      {true, "<think>\nI\n</think>Hi", "I", "Hi"},
      {false, " Hi <think>no</think>", "", " Hi <think>no</think>"},
      {false, "<thin", "", "<thin"},
      {true, "cut </thi", "cut </thi", ""},
      {false, "<think>a</think>\n" + call + call, "a", "", 1},
  };
  for (const Expected& one : all) {
    for (std::size_t size = 1; size <= one.text.size(); ++size) {
      AnswerSplitter splitter(ReasoningParser(format, one.begins_inside), find_dialect("hermes")->parser(tools()),
                              {.one = true});
      AnswerParts parts;
      for (std::size_t at = 0; at < one.text.size(); at += size)
        for (const AnswerEvent& event : splitter.push(one.text.substr(at, size))) parts.add(event);
      for (const AnswerEvent& event : splitter.finish()) parts.add(event);
      EXPECT_EQ(parts.reasoning, one.reasoning) << one.text << size;
      EXPECT_EQ(parts.content, one.content) << one.text << size;
      EXPECT_EQ(parts.calls.size(), one.calls) << one.text << size;
    }
  }
  EXPECT_TRUE(begins_reasoning("<|im_start|>assistant\n<think>\n", format));
  EXPECT_FALSE(begins_reasoning("<think>\n\n</think>\n\n", format));
}

}  // namespace weft::tool_parser_test
