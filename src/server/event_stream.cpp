#include "server/event_stream.h"

#include <utility>

#include "io/byte_order_mark.h"

namespace weft {

void EventStream::take(std::string_view bytes, const OnData& on_data) {
  if (bytes.empty()) return;
  if (std::exchange(ends_in_return_, false) && bytes[0] == '\n') bytes.remove_prefix(1);
  for (std::size_t end = bytes.find_first_of("\r\n"); end != std::string_view::npos;
       end = bytes.find_first_of("\r\n")) {
    line_ += bytes.substr(0, end);
    const bool is_return = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    ends_in_return_ = is_return && bytes.empty();
    if (is_return && bytes.starts_with('\n')) bytes.remove_prefix(1);
    take_line(std::exchange(line_, {}), on_data);
  }
  line_ += bytes;
}

// Fields other than `data` do not matter here. A comment is a line whose field has no name.
void EventStream::take_line(std::string_view line, const OnData& on_data) {
  if (std::exchange(is_first_line_, false)) line = without_byte_order_mark(line);
  if (line.empty()) {
    if (std::exchange(has_data_, false)) on_data(std::exchange(data_, {}));
    return;
  }
  const std::size_t colon = line.find(':');
  if (line.substr(0, colon) != "data") return;
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (std::exchange(has_data_, true)) data_ += '\n';
  data_ += value;
}

}  // namespace weft
