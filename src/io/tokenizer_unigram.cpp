#include "io/tokenizer_unigram.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"

namespace weft {
namespace {

// A character without token costs this more than the worst token.
constexpr double kUnknownPenalty = 10;

// Whether the token counts for the worst score.
bool has_score(const Vocabulary& vocabulary, size_t id) {
  return vocabulary.in_model.empty() ? vocabulary.kinds[id] == TokenKind::normal : vocabulary.in_model[id];
}

std::vector<PrefixIndex::Entry> unigram_entries(const Vocabulary& vocabulary) {
  std::vector<PrefixIndex::Entry> entries;
  entries.reserve(vocabulary.tokens.size());
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (is_made_by_model(vocabulary, id) && !vocabulary.tokens[id].empty())
      entries.push_back({vocabulary.tokens[id], static_cast<int32_t>(id)});
  }
  return entries;
}

}  // namespace

UnigramModel::UnigramModel(const Vocabulary& vocabulary, const TokenIndex& index)
    : vocabulary_(vocabulary), fallback_(vocabulary, index), prefixes_(unigram_entries(vocabulary)) {
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (has_score(vocabulary, id)) lowest = std::min(lowest, vocabulary.scores[id]);
  USER_CHECK(lowest < std::numeric_limits<double>::infinity(),
             "[tokenizer] a Unigram vocabulary must have normal tokens, but has none");
  unknown_score_ = lowest - kUnknownPenalty;
}

template <class Sum>
void UnigramModel::find_paths(std::string_view piece, std::vector<PieceScratch::Path>& paths) const {
  for (size_t begin = 0; begin < piece.size();) {
    const size_t one = utf8_step(piece, begin).length;
    const auto score_here = static_cast<Sum>(paths[begin].score);
    const auto extend = [&](size_t length, double score, int32_t id) {
      const Sum sum = score_here + static_cast<Sum>(score);
      PieceScratch::Path& path = paths[begin + length];
      if (path.begin >= 0 && static_cast<double>(sum) <= path.score) return;
      path = {static_cast<double>(sum), id, static_cast<int64_t>(begin)};
    };
    bool has_single = false;
    prefixes_.visit_prefixes(piece.substr(begin), [&](size_t length, int32_t id) {
      extend(length, vocabulary_.scores[static_cast<size_t>(id)], id);
      has_single = has_single || length == one;
    });
    if (!has_single) extend(one, unknown_score_, -1);
    begin += one;
  }
}

void UnigramModel::append(std::string_view piece, PieceScratch& scratch, std::vector<int>& ids) const {
  std::vector<PieceScratch::Path>& paths = scratch.paths;
  paths.assign(piece.size() + 1, PieceScratch::Path());
  vocabulary_.sums_in_double ? find_paths<double>(piece, paths) : find_paths<float>(piece, paths);

  std::vector<PieceScratch::Path>& best = scratch.best;
  best.clear();
  for (auto end = static_cast<int64_t>(piece.size()); end > 0;) {
    PieceScratch::Path path = paths[static_cast<size_t>(end)];
    best.push_back(path);
    end = path.begin;
  }
  bool after_unknown = false;
  for (size_t i = best.size(); i-- > 0;) {
    if (best[i].id >= 0) {
      ids.push_back(best[i].id);
      after_unknown = false;
      continue;
    }
    const auto begin = static_cast<size_t>(best[i].begin);
    const size_t end = i == 0 ? piece.size() : static_cast<size_t>(best[i - 1].begin);
    fallback_.append(piece.substr(begin, end - begin), after_unknown, [&](int id, size_t) { ids.push_back(id); });
  }
}

}  // namespace weft
