#pragma once

// `weft run-batch` without its command line: answers requests of a file, one JSON object on each line, by the code that
// answers a client of the server. Lines run together; their results are written in their order.

#include <cstdint>
#include <deque>
#include <functional>
#include <iosfwd>
#include <optional>
#include <random>
#include <string>

#include "base/error.h"
#include "server/generation_table.h"
#include "server/unknown_fields.h"

namespace weft {

// The results cannot be written; `reason` is that of the system.
class OutputError final : public DeviceError {
 public:
  explicit OutputError(const std::string& reason)
      : DeviceError("[output] could not be written: " + reason), reason_(reason) {}
  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

class BatchRun {
 public:
  struct Counts {
    std::int64_t lines = 0, failed = 0;
  };

  // The engine must be idle. All arguments outlive this object.
  BatchRun(Engine& engine, const ServedModel& model, std::istream& in, std::ostream& out,
           const std::function<void(const std::string& line)>& log);

  // Runs all lines on the calling thread. UserError where the input cannot be read, OutputError where the output cannot
  // be written.
  Counts run();

 private:
  class LineReply;
  // A line that was read and whose result is not written.
  struct Line {
    std::size_t number;     // in the file, from 1
    std::string custom_id;  // JSON
    std::optional<std::string> result;
  };

  void read_lines();
  void begin(std::string text);
  void begin_request(std::size_t index, std::string_view url, simdjson::dom::object body);
  void answer(std::size_t index, const HttpResponse& response);
  // An error of the line itself.
  void refuse(std::size_t index, const std::string& sentence);
  void finish(std::size_t index, int status, const std::string& body, const std::string& error);
  void write_results();
  bool is_answered(std::size_t index) const;
  bool is_over() const { return is_read_ && lines_.empty(); }
  std::string new_id();

  const ServedModel& model_;
  std::istream& in_;
  std::ostream& out_;
  std::function<void(const std::string&)> log_;
  UnknownFields unknown_;
  EngineLoop loop_;
  MetricValues values_;
  GenerationTable generations_;
  std::random_device random_;
  std::deque<Line> lines_;
  std::size_t first_ = 0;       // the index of lines_[0] among the lines with a text
  std::size_t lines_read_ = 0;  // also empty ones
  bool is_read_ = false;        // to the end of the file
  Counts counts_;
};

}  // namespace weft
