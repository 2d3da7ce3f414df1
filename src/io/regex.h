#pragma once

// A regular expression over UTF-8 text, compiled by PCRE2, for the patterns in tokenizer files.
//
// Those patterns are written for Oniguruma. Constructs with the same meaning in both engines are kept. Constructs with
// another meaning in Oniguruma are translated (\s is Unicode's White_Space, \v is U+000B, {,n} is {0,n}, ^ and $ also
// match at line breaks; character_set.h has the sets of characters). A nested class is a union, and && an intersection.
// Any other construct (\h, back references, callouts, && in nested classes, {n,m}+ ...) is a UserError that names it,
// and never a silently different match. Unicode properties are those of the installed PCRE2; general categories and
// scripts also have the characters of Unicode 15 and 16.
//
// A Regex never changes after construction. Several threads may use it, each with its own scratch.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;

namespace weft {

struct RegexMatch {
  size_t begin = 0;
  size_t end = 0;
};

class Regex {
 public:
  // Working memory of searches.
  class Scratch {
   public:
    Scratch();

   private:
    friend class Regex;
    struct Delete {
      void operator()(pcre2_real_match_data_8* data) const;
      void operator()(pcre2_real_match_context_8* context) const;
    };
    std::unique_ptr<pcre2_real_match_data_8, Delete> match_data_;
    std::unique_ptr<pcre2_real_match_context_8, Delete> context_;
  };

  // UserError if the pattern is not a regular expression or has a construct outside the subset.
  static Regex compile(std::string_view pattern);
  // Matches exactly this text.
  static Regex literal(std::string_view text);

  // Returns the first match at or after byte `from`; it may be empty. `text` must be valid UTF-8 and `from` must be the
  // first byte of a character. UserError if the search exceeds its limit on steps (a million plus 64 per byte at each
  // position) or on memory, which a pattern with nested repeats can do.
  std::optional<RegexMatch> find(std::string_view text, size_t from, Scratch& scratch) const;

 private:
  Regex(std::string_view source, std::string_view translated, unsigned options);

  struct DeleteCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::unique_ptr<pcre2_real_code_8, DeleteCode> code_;
  std::string source_;
  bool has_jit_ = false;
};

}  // namespace weft
