#pragma once

// The chat template of a model: a Jinja program (Jinja 3.1) that writes a conversation as the text the model was
// trained on. It is parsed and run here as `transformers` runs it: sandboxed with immutable lists and mappings,
// trim_blocks, lstrip_blocks, loop controls (break, continue), its own `tojson`, `raise_exception`, `strftime_now`
// and the `generation` block. Values behave as Python's do, integers are 64 bits wide.
//
// Refused by name: template inheritance and inclusion (extends, block, include, import, from), autoescape, and
// filters that make no sense in a prompt (random, urlize, pprint, ...).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace weft {

namespace jinja {
struct Program;
}

// Bounds on one rendering, so that no template can run or grow without end. Beyond them render() throws UserError.
struct ChatTemplateLimits {
  // Evaluated expressions, statements, loop rounds and elements looked at.
  std::uint64_t steps = 20'000'000;
  // Bytes of all strings, lists and mappings made on the way.
  std::uint64_t allocated_bytes = std::uint64_t{1} << 29;
  // Length of the result, and of any string on the way.
  std::size_t text_bytes = std::size_t{64} << 20;
};

class ChatTemplate {
 public:
  // Parses the template. Throws UserError that names what is wrong or unknown and its line, as in
  // "[chat template] line 3: unknown filter 'frobnicate'", or that it is longer than 1 MiB.
  explicit ChatTemplate(std::string source);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // Renders over an object of template variables: messages, tools, bos_token, add_generation_prompt and so on.
  // Throws UserError with the line where the template fails, or with the text that it gave to raise_exception.
  // May be called from several threads at once.
  std::string render(const nlohmann::ordered_json& variables) const;
  std::string render(const nlohmann::ordered_json& variables, const ChatTemplateLimits& limits) const;

 private:
  std::unique_ptr<const jinja::Program> program_;
};

}  // namespace weft
