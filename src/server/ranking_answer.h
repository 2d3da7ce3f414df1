#pragma once

// A request of /score or /rerank while it runs. A model that scores texts has a sequence for each pair of texts; one
// that makes embeddings has one for each text, and the score of a pair is the cosine of the angle between the two.

#include "server/pooled_answer.h"

namespace weft {

class RankingAnswer final : public PooledAnswer {
 public:
  RankingAnswer(PreparedRequest prepared, const ServedModel& model, std::string id, Ticket first,
                std::shared_ptr<HttpReply> reply)
      : PooledAnswer(std::move(prepared), model, std::move(id), first, std::move(reply)) {}

 private:
  Json whole_answer() override;
  // Of all pairs, in their order.
  std::vector<double> scores() const;
  Json ranked(const std::vector<double>& scores) const;
};

}  // namespace weft
