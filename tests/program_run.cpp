#include "tests/program_run.h"

#include <algorithm>
#include <sstream>

#include <fmt/core.h>

#include "apps/cli/verb.h"

namespace weft {

ProgramRun run_weft(const std::vector<std::string>& words, const std::string& input,
                    const std::map<std::string, std::string>& environment) {
  std::istringstream in(input);
  return run_weft(words, in, environment);
}

ProgramRun run_weft(const std::vector<std::string>& words, std::istream& in,
                    const std::map<std::string, std::string>& environment) {
  std::ostringstream out, err;
  const EnvironmentLookup lookup = [&](const std::string& name) -> std::optional<std::string> {
    if (const auto found = environment.find(name); found != environment.end()) return found->second;
    if (name == "WEFT_CACHE_ROOT") return "/nonexistent/cache";
    if (name == "WEFT_MODELS_ROOT") return "/nonexistent/models";
    if (name == "WEFT_DISABLE_COMPILE_CACHE" && environment.count("WEFT_CACHE_ROOT") == 0) return "1";
    return std::nullopt;
  };
  std::vector<std::string> names;
  for (const auto& [name, value] : environment) names.push_back(name);
  ProgramRun run;
  run.status = guarded(err, [&] { return run_program(words, {lookup, names}, in, out, err); });
  run.out = out.str();
  run.err = err.str();
  return run;
}

std::string breach_of_refusal(const ProgramRun& run, const std::string& part) {
  const bool one_line = std::count(run.err.begin(), run.err.end(), '\n') == 1 && run.err.ends_with('\n');
  const char* breach = run.status != 2                           ? "the status is not 2"
                       : !run.out.empty()                        ? "stdout is not empty"
                       : !one_line                               ? "stderr is not one line"
                       : !run.err.starts_with("weft: [")         ? "stderr does not begin with weft: ["
                       : run.err.find(part) == std::string::npos ? "the message lacks what it must name"
                                                                 : nullptr;
  if (breach == nullptr) return "";
  return fmt::format("{}: wanted [{}]; status {}, stdout {} bytes, stderr {}", breach, part, run.status, run.out.size(),
                     run.err);
}

}  // namespace weft
