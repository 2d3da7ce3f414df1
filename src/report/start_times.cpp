#include "report/start_times.h"

namespace weft {
namespace {

void add(StartTimes::Parts& parts, const std::string& name, double milliseconds) {
  for (auto& [known, total] : parts)
    if (known == name) {
      total += milliseconds;
      return;
    }
  parts.emplace_back(name, milliseconds);
}

StartTimes::Parts compile_parts(const std::vector<CompileRecord>& records, const StartTimes::Parts& phases) {
  StartTimes::Parts parts;
  for (const CompileRecord& record : records) {
    for (const PassRecord& pass : record.passes) {
      add(parts, "passes", pass.milliseconds);
      add(parts, "verify", pass.verify_milliseconds);
    }
    for (const auto& [step, milliseconds] : record.steps) add(parts, step, milliseconds);
  }
  double rest = 0;
  for (const auto& [phase, milliseconds] : phases)
    if (phase == "compile") rest = milliseconds;
  for (const auto& [part, milliseconds] : parts) rest -= milliseconds;
  if (!parts.empty()) parts.emplace_back("rest", rest);
  return parts;
}

Json json_of(const StartTimes::Parts& parts) {
  Json json = Json::object();
  for (const auto& [name, milliseconds] : parts) json[name] = milliseconds;
  return json;
}

}  // namespace

StartTimes start_times(Stopwatch& watch, const std::vector<CompileRecord>& records) {
  watch.lap("report");
  StartTimes times{.phases = watch.laps(), .total = watch.lapped()};
  times.compile = compile_parts(records, times.phases);
  return times;
}

Json timing_json(const StartTimes& times) {
  Json json = json_of(times.phases);
  json["total"] = times.total;
  return json;
}

Json compile_json(const StartTimes& times) { return json_of(times.compile); }

}  // namespace weft
