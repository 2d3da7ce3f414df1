#include "apps/cli/vllm_flags.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

enum class Value : std::uint8_t { none, any, one };

struct Row {
  const char* names;  // as Flags takes them
  Value value;
  const char* reason;      // why the flag decides nothing
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
    {"--gpu-memory-utilization", Value::any, kPages},
    {"--swap-space", Value::any, kNoSwap},
    {"--cpu-offload-gb", Value::any, kNoSwap},
    {"--distributed-executor-backend", Value::any, kOneProcess},
    {"--api-server-count", Value::any, kOneProcess},
    {"--disable-frontend-multiprocessing", Value::none, kOneProcess},
    {"--pipeline-parallel-size", Value::one, kOneProcess, "1"},
    {"--data-parallel-size", Value::one, kOneProcess, "1"},
    {"--disable-custom-all-reduce", Value::none, kOneProcess},
    {"--revision", Value::any, kNoDownload},
    {"--code-revision", Value::any, kNoDownload},
    {"--tokenizer-revision", Value::any, kNoDownload},
    {"--download-dir", Value::any, kNoDownload},
    {"--trust-remote-code", Value::none, kOwnReader},
    {"--tokenizer-mode", Value::any, kOwnReader},
    {"--config-format", Value::any, kOwnReader},
    {"--model-impl", Value::any, kOwnReader},
    {"--quantization", Value::any, kCheckpointSays},
    {"--limit-mm-per-prompt", Value::any, "requests are text alone"},
    {"--runner", Value::one, "MODEL generates text", "auto generate"},
    {"--task", Value::one, "MODEL generates text", "auto generate"},
    {"--response-role", Value::one, "answers are the assistant's", "assistant"},
    {"--logprobs-mode", Value::one, "log probabilities are those of the model", "raw_logprobs"},
    {"--seed", Value::any, "a request without a seed is drawn with one of its own"},
    {"--enable-chunked-prefill,--no-enable-chunked-prefill", Value::none, kAlwaysChunked},
    {"--async-scheduling,--no-async-scheduling", Value::none, "a step is prepared while the one before it runs"},
    {"--prefix-caching-hash-algo", Value::any, "tokens are compared where hashes are equal"},
    {"--uvicorn-log-level", Value::any, kOwnLog},
    {"--disable-log-requests", Value::none, kOwnLog},
    {"--max-log-len", Value::any, kOwnLog},
};

}  // namespace

void VllmFlags::declare(Flags& flags) {
  for (const Row& row : kRows) {
    const std::string sentence = fmt::format("Accepted for vLLM's scripts; decides nothing: {}.", row.reason);
    const std::string names = row.names;
    const std::string name = names.substr(0, names.find(','));
    const auto take = [this, &row, name](const std::string& value) {
      const std::vector<std::string> only = split_text(row.only, ' ');
      USER_CHECK(row.value != Value::one || std::find(only.begin(), only.end(), value) != only.end(),
                 "[{}] must be {}, because {}, but is {}", name, fmt::join(only, " or "), row.reason, quote(value));
      given_[name] = true;
    };
    if (row.value == Value::none) {
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
    if (const auto found = given_.find(name); found != given_.end() && found->second)
      names[row.reason].push_back(name);
  }
  for (const auto& [reason, flags] : names)
    note(fmt::format("[{}] {} accepted but {} no effect: {}", fmt::join(flags, ", "), flags.size() == 1 ? "is" : "are",
                     flags.size() == 1 ? "has" : "have", reason));
}

}  // namespace weft
