#include "compiler/log.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include <fmt/ranges.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>

#include "base/error.h"
#include "base/text.h"
#include "compiler/pipeline.h"
#include "compiler/warnings.h"

namespace weft {
namespace {

struct Topic {
  const char* name;
  bool is_of_compilation;  // there are lines only where something is compiled
};

// In the order in which compilation reaches the topics.
constexpr Topic kTopics[] = {
    {"config", false},     {"guards", false},  {"recompiles", false}, {"graph_breaks", false},
    {"cache", false},      {"passes", true},   {"fusion", true},      {"lowering", true},
    {"output_code", true}, {"schedule", true}, {"replay", false},     {"nan", false},
};

const Topic& topic_named(const std::string& name) {
  std::vector<std::string> known;
  for (const Topic& topic : kTopics) {
    if (topic.name == name) return topic;
    known.emplace_back(topic.name);
  }
  fail_user("[logs] wanted some of {}, but is {}{}", fmt::join(known, ","), quote(name), suggestion(name, known));
}

spdlog::level::level_enum level_of(char sign) {
  switch (sign) {
    case '+':
      return spdlog::level::debug;
    case '-':
      return spdlog::level::off;
    default:
      return spdlog::level::info;
  }
}

std::string counts_text(const PassResult& result) {
  std::string text;
  for (const auto& [name, count] : result.counts)
    if (count != 0) text += fmt::format(", {} {}", count, name);
  return text;
}

std::string choice_text(const NodeChoice& node, Log::Detail detail) {
  std::string text = fmt::format("{} = {}@{}", node.node, node.op, node.choice.provider);
  if (detail != Log::Detail::more) return text;
  text += ": " + node.choice.reason;
  for (const Refusal& refusal : node.choice.refused)
    text += fmt::format("; {} was refused: {}", refusal.provider, refusal.reason);
  return text;
}

void log_fusion(const Log& log, const std::string& where, const PatternReport& report) {
  if (log.detail("fusion") == Log::Detail::none) return;
  const bool is_idle = report.matched == 0 && report.near_misses.empty();
  log.say("fusion", is_idle ? Log::Detail::more : Log::Detail::some,
          fmt::format("{}: {} {}", where, report.pattern,
                      report.off ? "is off: " + *report.off : fmt::format("matched {} times", report.matched)));
  for (const NearMiss& miss : report.near_misses)
    log.say("fusion", Log::Detail::more, fmt::format("{}: not {}: {}", where, report.pattern, miss.reason));
}

class SinkOfWarnings : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit SinkOfWarnings(WarningSink sink) : sink_(std::move(sink)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    sink_(std::string(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}

  WarningSink sink_;
};

}  // namespace

Log::Log(const std::string& topics, std::ostream& to) {
  // Warnings are no topic: no one has to ask for them, and they do not go to `to`.
  loggers_["warnings"] =
      std::make_shared<spdlog::logger>("warnings", std::make_shared<SinkOfWarnings>(current_warning_sink()));
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(to, true);
  for (const std::string& word : split_text(topics, ',')) {
    if (word.empty()) continue;
    const char sign = word[0] == '+' || word[0] == '-' ? word[0] : ' ';
    const Topic& topic = topic_named(sign == ' ' ? word : word.substr(1));
    auto logger = std::make_shared<spdlog::logger>(topic.name, sink);
    logger->set_pattern("[%n] %v");
    logger->set_level(level_of(sign));
    loggers_[topic.name] = std::move(logger);
  }
}

std::vector<std::string> Log::topics() {
  std::vector<std::string> names;
  for (const Topic& topic : kTopics) names.emplace_back(topic.name);
  return names;
}

bool Log::wants_compilation() const {
  return std::any_of(std::begin(kTopics), std::end(kTopics),
                     [&](const Topic& topic) { return topic.is_of_compilation && detail(topic.name) != Detail::none; });
}

Log::Detail Log::detail(const std::string& topic) const {
  const auto found = loggers_.find(topic);
  if (found == loggers_.end() || !found->second->should_log(spdlog::level::info)) return Detail::none;
  return found->second->should_log(spdlog::level::debug) ? Detail::more : Detail::some;
}

void Log::say(const std::string& topic, Detail wanted, const std::string& line) const {
  if (wanted > detail(topic)) return;
  loggers_.at(topic)->log(wanted == Detail::more ? spdlog::level::debug : spdlog::level::info, line);
}

void log_unknown_keys(const Log& log, const std::string& path, const std::vector<std::string>& keys) {
  if (!keys.empty())
    log.say("config", Log::Detail::some, fmt::format("{}: nothing is known of {}", path, fmt::join(keys, ", ")));
}

void log_record(const Log& log, const CompileRecord& record) {
  const Log::Detail passes = log.detail("passes"), lowering = log.detail("lowering");
  const std::string where = fmt::format("{} {}-{}", record.graph, record.range.lo, record.range.hi);
  for (const PassRecord& pass : record.passes) {
    if (passes != Log::Detail::none) {
      const std::string counts = counts_text(pass.result);
      const bool is_idle = counts.empty() && pass.nodes_before == pass.nodes_after;
      log.say("passes", is_idle ? Log::Detail::more : Log::Detail::some,
              fmt::format("{}: {} {}, {} to {} nodes{}", where, pass.name,
                          pass.skipped ? "skipped" : fmt::format("{:.3f} ms", pass.milliseconds), pass.nodes_before,
                          pass.nodes_after, counts));
    }
    for (const PatternReport& report : pass.result.patterns) log_fusion(log, where, report);
    if (lowering == Log::Detail::none) continue;
    for (const NodeChoice& node : pass.result.choices)
      log.say("lowering", lowering, fmt::format("{}: {}", where, choice_text(node, lowering)));
  }
}

}  // namespace weft
