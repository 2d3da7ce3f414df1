#include "io/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <algorithm>
#include <array>
#include <cstdint>
#include <new>

#include <pcre2.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/regex_syntax.h"

namespace weft {
namespace {

// The longest published pattern (DeepSeek LLM's letters written out) has about 3,000 bytes.
constexpr size_t kMaxPatternBytes = 64 * 1024;
constexpr uint64_t kBaseMatchSteps = 1'000'000;
// `\s*[\r\n]+` takes n backtracking steps on a run of n spaces, so the limit grows with the length of the text.
constexpr uint64_t kMatchStepsPerByte = 64;
constexpr uint32_t kHeapLimitKibibytes = 512 * 1024;

std::string pcre2_message(int code) {
  std::array<unsigned char, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

struct DeleteCompileContext {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

}  // namespace

void Regex::Scratch::Delete::operator()(pcre2_real_match_data_8* data) const { pcre2_match_data_free(data); }
void Regex::Scratch::Delete::operator()(pcre2_real_match_context_8* context) const {
  pcre2_match_context_free(context);
}
void Regex::DeleteCode::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Regex::Scratch::Scratch()
    : match_data_(pcre2_match_data_create(1, nullptr)), context_(pcre2_match_context_create(nullptr)) {
  if (!match_data_ || !context_) throw std::bad_alloc();
  pcre2_set_heap_limit(context_.get(), kHeapLimitKibibytes);
}

Regex::Regex(std::string_view source, std::string_view translated, unsigned options) : source_(source) {
  const std::unique_ptr<pcre2_compile_context, DeleteCompileContext> context(pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t error_offset = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), options, &error,
                            &error_offset, context.get()));
  USER_CHECK(code_ != nullptr, "[regex] pattern {} must be a regular expression, but {} (at byte {} of {})",
             quote(source), pcre2_message(error), error_offset, quote(translated));
  has_jit_ = pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) == 0;
}

Regex Regex::compile(std::string_view pattern) {
  USER_CHECK(pattern.size() <= kMaxPatternBytes, "[regex] a pattern may have at most {} bytes, but has {}",
             kMaxPatternBytes, pattern.size());
  return Regex(pattern, translate_oniguruma(pattern),
               PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C);
}

Regex Regex::literal(std::string_view text) {
  USER_CHECK(text.size() <= kMaxPatternBytes, "[regex] a pattern may have at most {} bytes, but has {}",
             kMaxPatternBytes, text.size());
  return Regex(text, text, PCRE2_UTF | PCRE2_LITERAL);
}

std::optional<RegexMatch> Regex::find(std::string_view text, size_t from, Scratch& scratch) const {
  const uint64_t steps = kBaseMatchSteps + kMatchStepsPerByte * text.size();
  pcre2_set_match_limit(scratch.context_.get(), static_cast<uint32_t>(std::min<uint64_t>(steps, UINT32_MAX)));
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  pcre2_match_data* match_data = scratch.match_data_.get();
  int result = PCRE2_ERROR_JIT_STACKLIMIT;
  if (has_jit_) {
    result = pcre2_jit_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, match_data,
                             scratch.context_.get());
  }
  // The interpreter keeps its backtracking state on the heap, so it can finish a match that overflows the JIT's 32 KiB
  // stack.
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
    result = pcre2_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match_data,
                         scratch.context_.get());
  }
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  USER_CHECK(result >= 0, "[regex] pattern {} cannot be searched in a text of {} bytes: {}", quote(source_),
             text.size(), pcre2_message(result));
  const size_t* offsets = pcre2_get_ovector_pointer(match_data);
  // A lookaround with \K could move the begin of the match after its end, but the supported subset excludes \K.
  CHECK(from <= offsets[0] && offsets[0] <= offsets[1] && offsets[1] <= text.size(),
        "[regex] match {}..{} of {} bytes from {}", offsets[0], offsets[1], text.size(), from);
  return RegexMatch{offsets[0], offsets[1]};
}

}  // namespace weft
