#pragma once

// Runs the whole program inside the test, with streams and an environment of its own.

#include <map>
#include <string>
#include <vector>

namespace weft {

struct ProgramRun {
  int status = 0;
  std::string out;
  std::string err;
};

// `words` are what stands behind `weft`. Variables of the environment are those given, and WEFT_CACHE_ROOT and
// WEFT_MODELS_ROOT, which lead nowhere unless they are given; without the first nothing is kept in a compile cache
// either.
ProgramRun run_weft(const std::vector<std::string>& words, const std::string& input = "",
                    const std::map<std::string, std::string>& environment = {});

// "" when the run ended as a user's error must: status 2, nothing on stdout, one line on stderr that begins with
// `weft: [` and holds `part`. Else what was wrong, and what came.
std::string breach_of_refusal(const ProgramRun& run, const std::string& part = "");

}  // namespace weft
