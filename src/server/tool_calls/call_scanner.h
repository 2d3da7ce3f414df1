#pragma once

// Reads one tool call character by character: {"name": N, "arguments": {..}}, whose arguments may also be called
// parameters, or arguments alone after a name that was read already. The arguments are reported as they come, and as
// the model wrote them. If a call has none, or null, they are {}.

#include <cstdint>
#include <string>
#include <string_view>

#include "server/answer_events.h"
#include "server/tool_calls/json_scanner.h"

namespace weft {

class CallScanner {
 public:
  enum class Status : std::uint8_t { open, complete, broken };

  // An object follows. `written` is what the model wrote before it that belongs to the call, such as a marker.
  // `needs_arguments`: an object without them is no call.
  void begin(std::string written, bool needs_arguments = false);
  // The arguments follow.
  void begin_arguments(std::string written, std::string name);

  // Reports call_end with `complete` and call_broken with `broken`.
  Status push(char c, AnswerEvents& events);
  // The answer ends within the call: reports call_broken.
  void cut(AnswerEvents& events);

 private:
  enum class Part : std::uint8_t { none, key, name, arguments, other };

  std::size_t level() const { return has_object_ ? 1 : 0; }
  void begin_part(char c, AnswerEvents& events);
  bool end_part();
  bool end_name();
  void send_begin(AnswerEvents& events);
  void send_arguments(std::string_view text, AnswerEvents& events);
  Status end(AnswerEvents& events);
  Status fail(AnswerEvents& events);

  JsonScanner json_;
  bool has_object_ = true;
  bool needs_arguments_ = false;
  std::string written_;   // all of the call
  std::size_t sent_ = 0;  // bytes of written_, up to the last that is in an event

  Part part_ = Part::none;
  std::string value_;        // of the part, as written
  Part next_ = Part::other;  // what the key announces
  std::string name_, arguments_;
  bool has_name_ = false, has_arguments_ = false, has_begun_ = false;
  bool streams_ = false;  // the arguments are reported as they come
};

}  // namespace weft
