#pragma once

// `weft bench functions`: the functions generated for a model, or for the ops one by one, against plain copies.

#include <string>
#include <vector>

#include "apps/cli/session.h"

namespace weft {

struct FunctionArguments {
  ModelArgument model;  // none: the ops
  std::vector<std::string> ops;
  std::int64_t columns = 4096;
  std::string bytes = "0";
  std::int64_t rounds = 5;
  std::string threads;  // "" for the option's own value
  std::string objects;  // a folder for the functions' object files; "" for none
  std::string format = "md";
  bool json = false;

  void declare(Flags& flags);
};

int bench_functions(const FunctionArguments& arguments, VerbCall& call);

}  // namespace weft
