#pragma once

// The vocabulary of byte-level BPE as GPT-2 published it, in two files: vocab.json and merges.txt.

#include <string>
#include <string_view>

#include "io/vocabulary.h"

namespace weft {

struct VocabularyText {
  std::string_view text;
  std::string where;  // UserErrors begin with [where]
};

// `vocab` is {"TOKEN": ID, ...}. Each line of `merges` has two tokens with a space between them, and the first line
// joins first; lines that are empty or begin with "#version" have no merge. The files have neither special tokens nor a
// pattern: Vocabulary::steps stays empty.
Vocabulary read_vocab_and_merges(const VocabularyText& vocab, const VocabularyText& merges);

}  // namespace weft
