#include "apps/cli/vllm_flags.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

enum class FlagValue : std::uint8_t { none, any, one };

struct Row {
  const char* names;  // as Flags takes them
  FlagValue value;
  const char* reason;     // why the flag decides nothing
  const char* only = "";  // words that are accepted where others would ask for something else
};

constexpr const char* kPages = "--kv-cache-memory-bytes or --num-gpu-blocks-override set the size of the KV cache";
constexpr const char* kNoSwap = "nothing is moved out of the memory that it is in";
constexpr const char* kOneProcess = "the server is one process";
constexpr const char* kNoDownload = "MODEL is a file or a folder that is there";
constexpr const char* kOwnReader = "MODEL is read by Weft alone, and nothing in it is run";
constexpr const char* kOwnLog =
    "--disable-uvicorn-access-log, --enable-log-requests and --disable-log-stats say what is logged";
constexpr const char* kAlwaysChunked = "long prompts are always computed in chunks";
constexpr const char* kCheckpointSays = "the checkpoint says it";

constexpr Row kRows[] = {
    {"--gpu-memory-utilization", FlagValue::any, kPages},
    {"--swap-space", FlagValue::any, kNoSwap},
    {"--cpu-offload-gb", FlagValue::any, kNoSwap},
    {"--distributed-executor-backend", FlagValue::any, kOneProcess},
    {"--api-server-count", FlagValue::any, kOneProcess},
    {"--disable-frontend-multiprocessing", FlagValue::none, kOneProcess},
    {"--pipeline-parallel-size", FlagValue::one, kOneProcess, "1"},
    {"--data-parallel-size", FlagValue::one, kOneProcess, "1"},
    {"--disable-custom-all-reduce", FlagValue::none, kOneProcess},
    {"--revision", FlagValue::any, kNoDownload},
    {"--code-revision", FlagValue::any, kNoDownload},
    {"--tokenizer-revision", FlagValue::any, kNoDownload},
    {"--download-dir", FlagValue::any, kNoDownload},
    {"--trust-remote-code", FlagValue::none, kOwnReader},
    {"--tokenizer-mode", FlagValue::any, kOwnReader},
    {"--config-format", FlagValue::any, kOwnReader},
    {"--model-impl", FlagValue::any, kOwnReader},
    {"--quantization", FlagValue::any, kCheckpointSays},
    {"--limit-mm-per-prompt", FlagValue::any, "requests are text alone"},
    {"--runner", FlagValue::one, "MODEL generates text", "auto generate"},
    {"--task", FlagValue::one, "MODEL generates text", "auto generate"},
    {"--response-role", FlagValue::one, "answers are the assistant's", "assistant"},
    {"--logprobs-mode", FlagValue::one, "log probabilities are those of the model", "raw_logprobs"},
    {"--seed", FlagValue::any, "a request without a seed is drawn with one of its own"},
    {"--enable-chunked-prefill,--no-enable-chunked-prefill", FlagValue::none, kAlwaysChunked},
    {"--async-scheduling,--no-async-scheduling", FlagValue::none, "a step is prepared while the one before it runs"},
    {"--prefix-caching-hash-algo", FlagValue::any, "tokens are compared where hashes are equal"},
    {"--uvicorn-log-level", FlagValue::any, kOwnLog},
    {"--disable-log-requests", FlagValue::none, kOwnLog},
    {"--max-log-len", FlagValue::any, kOwnLog},
};

}  // namespace

void VllmFlags::declare(Flags& flags) {
  for (const Row& row : kRows) {
    const std::string sentence = fmt::format("Accepted for vLLM's scripts; decides nothing: {}.", row.reason);
    const std::string names = row.names;
    const std::string name = names.substr(0, names.find(','));
    const auto take = [this, &row, name](const std::string& value) {
      const std::vector<std::string> only = split_text(row.only, ' ');
      USER_CHECK(row.value != FlagValue::one || std::find(only.begin(), only.end(), value) != only.end(),
                 "[{}] must be {}, because {}, but is {}", name, fmt::join(only, " or "), row.reason, quote(value));
      given_[name] = true;
    };
    if (row.value == FlagValue::none) {
      flags.flag(names, given_[name], sentence);
    } else {
      flags.option(names, take, sentence);
    }
  }
}

void VllmFlags::report(const NoteFunction& note) const {
  std::map<std::string, std::vector<std::string>> names;  // by reason
  for (const Row& row : kRows) {
    const std::string all = row.names, name = all.substr(0, all.find(','));
    if (const auto found = given_.find(name); found != given_.end() && found->second) names[row.reason].push_back(name);
  }
  for (const auto& [reason, flags] : names)
    note(fmt::format("[{}] {} accepted but {} no effect: {}", fmt::join(flags, ", "), flags.size() == 1 ? "is" : "are",
                     flags.size() == 1 ? "has" : "have", reason));
}

}  // namespace weft
