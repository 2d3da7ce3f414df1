#pragma once

// Constraints by grammars (src/grammar/), for one vocabulary.

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/sampling/token_constraint.h"
#include "grammar/grammar.h"
#include "io/tokenizer.h"

namespace weft {

struct GrammarVocabulary;

// Compiles grammars, and keeps the last ones with what was found out about them. Several threads may use it.
class ConstraintCompiler {
 public:
  // The tokenizer must outlive this object and its constraints. `end_tokens` end an answer; logits are of
  // `vocabulary_size` tokens, of which the last ones may have no text. The vocabulary is read at the first use.
  ConstraintCompiler(const Tokenizer& tokenizer, std::vector<int> end_tokens, std::size_t vocabulary_size);
  ~ConstraintCompiler();

  // The constraint for `key`, which says all that `make_grammar` depends on. UserError for a grammar that cannot be
  // enforced: the same one for a key that failed before. It takes seconds at most: grammar/budget.h has the limits.
  std::shared_ptr<const TokenConstraint> compile(const std::string& key,
                                                 const std::function<grammar::Grammar()>& make_grammar) const;

 private:
  struct Compiled {
    std::shared_ptr<const TokenConstraint> constraint;
    std::string error = {};
  };
  using Entries = std::list<std::pair<std::string, Compiled>>;

  Compiled compile_now(const std::function<grammar::Grammar()>& make_grammar) const;
  std::shared_ptr<GrammarVocabulary> vocabulary() const;

  const Tokenizer& tokenizer_;
  const std::vector<int> end_tokens_;
  const std::size_t vocabulary_size_;
  mutable std::once_flag is_read_;
  mutable std::shared_ptr<GrammarVocabulary> vocabulary_;
  mutable std::mutex mutex_;  // of what follows
  mutable Entries entries_;   // the last used first
  mutable std::unordered_map<std::string, Entries::iterator> index_;
};

}  // namespace weft
