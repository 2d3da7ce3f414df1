#pragma once

// `weft bench functions` times the functions generated for a model, or for each op, against plain copies.

#include <string>
#include <vector>

#include "apps/cli/session.h"

namespace weft {

struct FunctionArguments {
  ModelArgument model;  // empty: the ops are measured
  std::vector<std::string> ops;
  std::int64_t columns = 4096;
  std::string bytes = "0";
  std::int64_t rounds = 5;
  std::string threads;  // "": the value of the option
  std::string objects;  // folder for the functions' object files; "": none are written
  std::string format = "md";
  bool json = false;

  void declare(Flags& flags);
};

int bench_functions(const FunctionArguments& arguments, VerbCall& call);

}  // namespace weft
