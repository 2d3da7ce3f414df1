#pragma once

// Reads server-sent events as the HTML standard defines their format. Lines end with \n, \r\n or \r.

#include <functional>
#include <string>
#include <string_view>

namespace weft {

class EventStream {
 public:
  using OnData = std::function<void(std::string_view data)>;

  // Takes the next bytes, which may begin and end anywhere. Calls `on_data` with the data of each event that they end.
  void take(std::string_view bytes, const OnData& on_data);

 private:
  void take_line(std::string_view line, const OnData& on_data);

  std::string line_, data_;
  bool has_data_ = false;        // `data` is a field of the event
  bool is_first_line_ = true;    // it may begin with a byte order mark
  bool ends_in_return_ = false;  // a \n that follows belongs to the same end of a line
};

}  // namespace weft
