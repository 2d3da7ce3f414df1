#pragma once

// The requests of `weft bench serve` and `weft bench throughput`: random ones, those of a ShareGPT file, or those of a
// file of the user. The datasets and their rules are vLLM's.

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "io/tokenizer.h"

namespace weft {

struct BenchRequest {
  std::vector<int> ids;
  std::string text;  // "" of a random request; it is decoded where a text is wanted
  std::int64_t output_tokens = 0;
};

// What random token ids are drawn from: those that are not special, or all of a vocabulary without texts.
struct BenchVocabulary {
  const Tokenizer* tokenizer = nullptr;  // null for a dummy checkpoint without one
  std::int64_t size = 0;                 // without a tokenizer
};

struct RandomRequests {
  std::int64_t input_len = 1024, output_len = 128, prefix_len = 0;
  // Lengths are drawn from [1 - ratio, 1 + ratio] of the given ones.
  double input_ratio = 0, output_ratio = 0;
};

struct DatasetArguments {
  std::string name = "random";
  std::string path;
  RandomRequests random;
  std::int64_t count = 1000;
  // Tokens to generate for the dataset custom. Without a value a line decides, and 256 is for lines that do not; with
  // -1 each line must decide.
  std::optional<std::int64_t> custom_output_len;
  std::int64_t sharegpt_output_len = 0;  // for sharegpt; 0: as many as the recorded answer has
  // Lengths of all datasets, which replace those of each.
  std::optional<std::int64_t> input_len, output_len;
  bool keeps_order = false;    // of sharegpt
  bool never_repeats = false;  // a dataset of fewer requests than `count`
  std::uint64_t seed = 0;

  // --dataset-name, --dataset-path, --num-prompts, --seed, and the lengths. *this must outlive the parsing.
  void declare(Flags& flags);

 private:
  void declare_lengths(Flags& flags);
  void set_ratios(const std::string& text);
};

// The same for the same arguments and tokenizer. UserError for a file that is wrong.
std::vector<BenchRequest> bench_requests(const DatasetArguments& arguments, const BenchVocabulary& vocabulary);

// The model that each of `count` requests names: `model`, or one of the adapters, whose names may be followed by =PATH.
// `assignment` is random or round-robin.
std::vector<std::string> models_of_requests(const std::vector<std::string>& adapters, const std::string& assignment,
                                            std::uint64_t seed, const std::string& model, std::size_t count);

// `count` random ids.
std::vector<int> random_ids(std::int64_t count, const BenchVocabulary& vocabulary, std::mt19937_64& random);

}  // namespace weft
