#pragma once

// The model that the tests of this folder damage: one layer, a vocabulary of eight letters and an end token, a context
// of 32 tokens. Small headers, since their bytes are changed one by one.

#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft {

SampleCheckpoint tiny_checkpoint();

// A short completion from the model at the path. One thread and few tokens in a step: it runs thousands of times.
ProgramRun complete_with(const std::string& path);

// Counted runs over damaged copies of one file: a run must be refused as a user's error, or succeed.
class DamageCount {
 public:
  // `what` is the damage, for messages.
  void add(const ProgramRun& run, const std::string& what);
  // Prints `name: N runs, M refused, K still valid`.
  void print(const std::string& name) const;
  int runs() const { return refused_ + valid_; }
  int refused() const { return refused_; }

 private:
  int refused_ = 0;
  int valid_ = 0;
};

// The distance between changed bytes. A sanitizer takes eight times as long, so it tests every third byte; this is no
// divisor of eight, so that every bit of a byte is tested.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::size_t kDamageStep = 3;
#else
inline constexpr std::size_t kDamageStep = 1;
#endif

// The whole file; replaces it by other bytes.
std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);

// `count` lengths below `size`, spread evenly from 0 on.
std::vector<std::size_t> cuts(std::size_t size, int count = 100);

}  // namespace weft
