#include "server/ranking_answer.h"

#include <algorithm>
#include <ctime>
#include <numeric>
#include <utility>

namespace weft {

std::vector<double> RankingAnswer::scores() const {
  const EmbeddingHead& head = model().embedding_head;
  std::vector<double> scores;
  if (head.scores) {
    for (const ScoredPair& pair : prepared().pairs)
      scores.push_back(finished_score(head, pooled(pair.first), request().normalizes.value_or(true)));
    return scores;
  }
  // A text may be in many pairs.
  std::vector<std::vector<float>> embeddings;
  for (std::size_t i = 0; i < size(); ++i)
    embeddings.push_back(finished_embedding(head, pooled(i), std::nullopt, false));
  for (const ScoredPair& pair : prepared().pairs)
    scores.push_back(cosine(embeddings[pair.first], embeddings[pair.second]));
  return scores;
}

// The results of /rerank, the best first; of equal ones the first.
Json RankingAnswer::ranked(const std::vector<double>& scores) const {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  const std::int64_t most = request().top_n.value_or(0);
  if (most > 0 && most < std::ssize(order)) order.resize(static_cast<std::size_t>(most));
  Json results = Json::array();
  for (const std::size_t i : order) {
    Json result{{"index", i}, {"relevance_score", scores[i]}};
    if (request().return_documents.value_or(true)) result["document"] = {{"text", request().second_texts[i]}};
    results.push_back(std::move(result));
  }
  return results;
}

Json RankingAnswer::whole_answer() {
  const std::vector<double> scores = this->scores();
  Json answer{{"id", "score-" + id()}, {"model", model_name()}, {"usage", usage_json(usage())}};
  if (request().endpoint == rerank) {
    answer["results"] = ranked(scores);
    return answer;
  }
  Json data = Json::array();
  for (std::size_t i = 0; i < scores.size(); ++i)
    data.push_back({{"index", i}, {"object", "score"}, {"score", scores[i]}});
  answer["object"] = "list";
  answer["created"] = std::time(nullptr);
  answer["data"] = std::move(data);
  return answer;
}

}  // namespace weft
