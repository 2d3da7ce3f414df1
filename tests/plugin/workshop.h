#pragma once

// Builds plugins while the tests run, with the system's compiler and only the one header, copied to the path that `make
// install` uses.

#include <string>

#include "tests/base/temporary_folder.h"

namespace weft {

class Workshop {
 public:
  Workshop();
  // Builds examples/NAME by its own Makefile. Returns the library's path.
  std::string example(const std::string& name) const;
  // Builds C source text (C++ if `plus_plus`) as lib<name>.so.
  std::string library(const std::string& name, const std::string& source, bool plus_plus = false) const;
  // A plugin called `name` whose registration has the body `bring`; `before` is inserted before it.
  std::string plugin(const std::string& name, const std::string& before, const std::string& bring,
                     bool plus_plus = false) const;
  // A plugin with one kernel for rms_norm over f32, called `trial`, whose `run` has this body. x, y and weight (null:
  // none) are the operands and result as floats, rows and columns their extents.
  std::string rms_norm(const std::string& name, const std::string& body, bool plus_plus = false) const;

  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

// One object for all tests of the program, so that each plugin is built once.
const Workshop& workshop();

}  // namespace weft
