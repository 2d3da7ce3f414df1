#include "apps/cli/vllm_flags.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

struct Row {
  enum Kind : std::uint8_t { flag, option };
  Kind kind;
  const char* names;      // as Flags takes them
  const char* reason;     // why it decides nothing
  const char* only = "";  // of an option: the values that are accepted where others would ask for something else

  std::string name() const { return split_text(names, ',')[0]; }
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
    {Row::option, "--gpu-memory-utilization", kPages},
    {Row::option, "--swap-space", kNoSwap},
    {Row::option, "--cpu-offload-gb", kNoSwap},
    {Row::option, "--distributed-executor-backend", kOneProcess},
    {Row::option, "--api-server-count", kOneProcess},
    {Row::flag, "--disable-frontend-multiprocessing", kOneProcess},
    {Row::option, "--pipeline-parallel-size", kOneProcess, "1"},
    {Row::option, "--data-parallel-size", kOneProcess, "1"},
    {Row::flag, "--disable-custom-all-reduce", kOneProcess},
    {Row::option, "--revision", kNoDownload},
    {Row::option, "--code-revision", kNoDownload},
    {Row::option, "--tokenizer-revision", kNoDownload},
    {Row::option, "--download-dir", kNoDownload},
    {Row::flag, "--trust-remote-code", kOwnReader},
    {Row::option, "--tokenizer-mode", kOwnReader},
    {Row::option, "--config-format", kOwnReader},
    {Row::option, "--model-impl", kOwnReader},
    {Row::option, "--quantization", kCheckpointSays},
    {Row::option, "--limit-mm-per-prompt", "requests are text alone"},
    {Row::option, "--runner", "MODEL generates text", "auto generate"},
    {Row::option, "--task", "MODEL generates text", "auto generate"},
    {Row::option, "--response-role", "answers are the assistant's", "assistant"},
    {Row::option, "--logprobs-mode", "log probabilities are those of the model", "raw_logprobs"},
    {Row::option, "--seed", "a request without a seed is drawn with one of its own"},
    {Row::flag, "--enable-auto-tool-choice", "tool calls are always found"},
    {Row::flag, "--enable-chunked-prefill,--no-enable-chunked-prefill", kAlwaysChunked},
    {Row::flag, "--async-scheduling,--no-async-scheduling", "a step is prepared while the one before it runs"},
    {Row::option, "--prefix-caching-hash-algo", "tokens are compared where hashes are equal"},
    {Row::option, "--uvicorn-log-level", kOwnLog},
    {Row::flag, "--disable-log-requests", kOwnLog},
    {Row::option, "--max-log-len", kOwnLog},
};

}  // namespace

void VllmFlags::declare(Flags& flags) {
  for (const Row& row : kRows) {
    const std::string sentence = fmt::format("Accepted for vLLM's scripts; decides nothing: {}.", row.reason);
    bool& is_given = given_[row.name()];
    if (row.kind == Row::flag) {
      flags.flag(row.names, is_given, sentence);
      continue;
    }
    const auto take = [&row, &is_given](const std::string& value) {
      const std::vector<std::string> only = split_text(row.only, ' ');
      USER_CHECK(*row.only == '\0' || std::find(only.begin(), only.end(), value) != only.end(),
                 "[{}] must be {}, because {}, but is {}", row.name(), fmt::join(only, " or "), row.reason,
                 quote(value));
      is_given = true;
    };
    flags.option(row.names, take, sentence);
  }
}

void VllmFlags::report(const NoteFunction& note) const {
  std::map<std::string, std::vector<std::string>> names;  // by reason
  for (const Row& row : kRows)
    if (given_.at(row.name())) names[row.reason].push_back(row.name());
  for (const auto& [reason, flags] : names)
    note(fmt::format("[{}] {} accepted but {} no effect: {}", fmt::join(flags, ", "), flags.size() == 1 ? "is" : "are",
                     flags.size() == 1 ? "has" : "have", reason));
}

}  // namespace weft
