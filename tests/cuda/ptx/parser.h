#pragma once

// Parses PTX. It accepts only what nvcc and NVRTC write for this project's kernels. Anything else is an error with file
// and line, and is never ignored.

#include <map>
#include <memory>

#include "tests/cuda/ptx/kernel_text.h"
#include "tests/cuda/ptx/tokens.h"

namespace weft::ptx {

class ModuleText {
 public:
  // Throws UserError if the text is no module. `kernel` parses the bodies of kernels.
  ModuleText(std::string text, std::string name);

  const std::string& name() const { return name_; }
  int version() const { return version_; }                           // of the PTX ISA: 85 for 8.5
  int architecture() const { return architecture_; }                 // 89
  char architecture_suffix() const { return architecture_suffix_; }  // 'a' of sm_90a; 0 for none
  std::vector<std::string> kernels() const;                          // in the order of names
  KernelText kernel(const std::string& kernel) const;                // UserError if there is none, or its text is wrong

 private:
  friend class ModuleReader;
  friend class KernelReader;
  // Variables in shared memory, for all kernels that name them.
  struct SharedVariable {
    std::uint64_t alignment, bytes;
  };

  std::unique_ptr<const std::string> text_;  // the tokens' text
  std::string name_;
  int version_ = 0;
  int architecture_ = 0;
  char architecture_suffix_ = 0;
  std::vector<Token> tokens_;
  std::map<std::string, std::size_t, std::less<>> kernels_;  // the token of the name
  std::map<std::string, SharedVariable, std::less<>> shared_;
};

}  // namespace weft::ptx
