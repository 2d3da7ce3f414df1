#pragma once

// The chat template of a model: a Jinja 3.1 program that writes a conversation as the text that the model was trained
// on. This class parses and runs it as `transformers` does: sandboxed with immutable lists and mappings, trim_blocks,
// lstrip_blocks, loop controls (break, continue), its own `tojson`, `raise_exception`, `strftime_now` and the
// `generation` block. Values behave as in Python, but integers have 64 bits.
//
// These are errors that name the construct: template inheritance and inclusion (extends, block, include, import, from),
// autoescape, and filters that make no sense in a prompt (random, urlize, pprint, ...).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace weft {

namespace jinja {
struct Program;
}

// Limits on one rendering, so that each template ends and has bounded memory. Above a limit, render() throws UserError.
struct ChatTemplateLimits {
  // Evaluated expressions, statements, loop iterations and visited elements.
  std::uint64_t steps = 20'000'000;
  // Bytes of all strings, lists and mappings that the rendering creates.
  std::uint64_t allocated_bytes = std::uint64_t{1} << 29;
  // Length of the result and of each intermediate string.
  std::size_t text_bytes = std::size_t{64} << 20;
};

class ChatTemplate {
 public:
  // Parses the template. Throws UserError if the source is longer than 1 MiB, or names the error or the unknown word
  // and its line: "[chat template] line 3: unknown filter 'frobnicate'".
  explicit ChatTemplate(std::string source);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // A message whose content is null has no content for templates that do not ask whether it is none, unless they fail
  // without.
  //
  // Renders with an object of template variables: messages, tools, bos_token, add_generation_prompt and so on. Throws
  // UserError with the line at which the template fails, or with the message that the template passes to
  // raise_exception. Several threads may call it at once.
  std::string render(const nlohmann::ordered_json& variables) const;
  std::string render(const nlohmann::ordered_json& variables, const ChatTemplateLimits& limits) const;

 private:
  std::string render_as_given(const nlohmann::ordered_json& variables, const ChatTemplateLimits& limits) const;

  std::unique_ptr<const jinja::Program> program_;
  bool asks_for_none_ = false;  // whether the content of a message is none
};

}  // namespace weft
