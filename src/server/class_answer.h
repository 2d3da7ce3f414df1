#pragma once

// A request of /classify while it runs: for each text, the probabilities of the model's classes.

#include "server/pooled_answer.h"

namespace weft {

class ClassAnswer final : public PooledAnswer {
 public:
  ClassAnswer(PreparedRequest prepared, const ServedModel& model, std::string id, Ticket first,
              std::shared_ptr<HttpReply> reply)
      : PooledAnswer(std::move(prepared), model, std::move(id), first, std::move(reply)) {}

 private:
  Json whole_answer() override;
};

}  // namespace weft
