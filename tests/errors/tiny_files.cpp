#include "tests/errors/tiny_files.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include <gtest/gtest.h>

#include "builtin/models.h"

namespace weft {

SampleCheckpoint tiny_checkpoint() {
  static const ModelRegistry models = make_model_registry();
  return SampleCheckpoint(models.find("llama", "test"), {{"hidden_size", 32},
                                                         {"intermediate_size", 32},
                                                         {"num_hidden_layers", 1},
                                                         {"num_attention_heads", 2},
                                                         {"num_key_value_heads", 1},
                                                         {"max_position_embeddings", 32},
                                                         {"vocab_size", 9},
                                                         {"eos_token_id", 8}});
}

ProgramRun complete_with(const std::string& path) {
  return run_weft({"complete", path, "-p", "abc", "-n", "2", "--temp", "0", "-t", "1"});
}

void DamageCount::add(const ProgramRun& run, const std::string& what) {
  if (run.status == 0) {
    ++valid_;
    EXPECT_NE(run.out, "") << what;
  } else {
    ++refused_;
    EXPECT_EQ(breach_of_refusal(run), "") << what;
  }
}

void DamageCount::print(const std::string& name) const {
  std::cout << name << ": " << runs() << " runs, " << refused_ << " refused, " << valid_ << " still valid\n";
}

std::string read_bytes(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_bytes(const std::string& path, const std::string& bytes) {
  // Not over the old file: some file systems write such a file to the disk at once.
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<std::size_t> cuts(std::size_t size, int count) {
  std::vector<std::size_t> lengths;
  for (int i = 0; i < count; ++i)
    lengths.push_back(size * static_cast<std::size_t>(i) / static_cast<std::size_t>(count));
  return lengths;
}

}  // namespace weft
