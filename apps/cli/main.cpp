#include <iostream>

#include "apps/cli/process_setup.h"
#include "apps/cli/verb.h"
#include "base/error.h"
#include "base/process_clock.h"

int main(int argc, char** argv) {
  weft::Stopwatch watch = weft::watch_from_process_start();
  watch.lap("process");
  weft::set_up_process();
  std::ios::sync_with_stdio(false);
  return weft::guarded(std::cerr, [&] {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const weft::ProgramEnvironment environment{weft::process_environment(),
                                               weft::process_environment_names("WEFT_ARG_")};
    const int status = weft::run_program(words, environment, std::cin, std::cout, std::cerr, std::move(watch));
    std::cout.flush();
    if (!std::cout) weft::fail_device("[output] could not be written");
    return status;
  });
}
