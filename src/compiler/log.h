#pragma once

// The compiler's log, as WEFT_LOGS asks for it: a list of topics, `+topic` for more detail and `-topic` for less.
//
//   WEFT_LOGS=passes,+lowering
//   [passes] forward 1-512: lower 6.093 ms, 632 to 782 nodes, 572 kernels, 150 clones
//   [lowering] forward 1-512: rms_norm_0 = rms_norm@cpu: first in the priority list
//   [replay] forward: captured 423 steps, FULL, in 0.412 ms
//
// docs/debugging.md has all topics and what each prints.

#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spdlog {
class logger;
}

namespace weft {

struct CompileRecord;

class Log {
 public:
  Log() = default;  // silent
  // `to` must outlive it. UserError, with the nearest known name, for a topic that does not exist.
  Log(const std::string& topics, std::ostream& to);
  // The names of all topics.
  static std::vector<std::string> topics();

  // Whether a requested topic has lines only where something is compiled. Plans are then not taken from the cache.
  bool wants_compilation() const;

  enum class Detail { none, some, more };
  Detail detail(const std::string& topic) const;
  // Does nothing where the topic was not requested in this detail.
  void say(const std::string& topic, Detail detail, const std::string& line) const;

 private:
  std::map<std::string, std::shared_ptr<spdlog::logger>> loggers_;
};

// Topic config: one line on the unknown keys in a model's files; nothing where there are none.
void log_unknown_keys(const Log& log, const std::string& path, const std::vector<std::string>& keys);

// What the compiler did with one graph and token range.
//   passes    each with its time and what it did; +passes those that did nothing, too
//   lowering  the choice of each node; +lowering the reason, and the refusals before it
void log_record(const Log& log, const CompileRecord& record);

}  // namespace weft
