#pragma once

// The requests of `weft bench serve` and `weft bench throughput`: random ones, those of a ShareGPT file, or those of a
// file of the user. The datasets and their rules are vLLM's.

#include <cstdint>
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
  double range_ratio = 0;  // lengths are drawn from [1 - ratio, 1 + ratio] of the given ones
};

struct DatasetArguments {
  std::string name = "random";
  std::string path;
  RandomRequests random;
  std::int64_t count = 1000;
  std::int64_t custom_output_len = 256, sharegpt_output_len = 0;
  std::uint64_t seed = 0;

  std::string prefix = "--random-";  // of the flags of the lengths

  // --dataset-name, --dataset-path, --num-prompts, --seed, and the lengths.
  void declare(Flags& flags);
};

// The same for the same arguments and tokenizer. UserError for a file that is wrong.
std::vector<BenchRequest> bench_requests(const DatasetArguments& arguments, const BenchVocabulary& vocabulary);

// `count` random ids.
std::vector<int> random_ids(std::int64_t count, const BenchVocabulary& vocabulary, std::mt19937_64& random);

}  // namespace weft
