#pragma once

// Runs the whole program inside the test, with its own streams and environment.

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace weft {

struct ProgramRun {
  int status = 0;
  std::string out;
  std::string err;
};

// `words` are the arguments of `weft`. The environment has only the given variables, and WEFT_CACHE_ROOT and
// WEFT_MODELS_ROOT, which are paths that do not exist unless they are given. Without WEFT_CACHE_ROOT nothing is stored
// in a compile cache.
ProgramRun run_weft(const std::vector<std::string>& words, const std::string& input = "",
                    const std::map<std::string, std::string>& environment = {});
// The same with any standard input, such as one that cannot be read.
ProgramRun run_weft(const std::vector<std::string>& words, std::istream& in,
                    const std::map<std::string, std::string>& environment = {});

// "" if the run ended with a user's error: status 2, nothing on stdout, one line on stderr that begins with `weft: [`
// and contains `part`. Else the difference and the output.
std::string breach_of_refusal(const ProgramRun& run, const std::string& part = "");

}  // namespace weft
