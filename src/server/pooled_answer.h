#pragma once

// A request while it runs whose sequences have pooled hidden states as their answers, and no tokens: one sequence for
// each prompt.

#include <memory>
#include <string>
#include <vector>

#include "server/answer_json.h"
#include "server/prepared_request.h"
#include "server/running_request.h"

namespace weft {

class PooledAnswer : public RunningRequest {
 public:
  std::vector<Sequence> begin(std::uint64_t random_seed) override;
  void take(const SequenceEvent& event) override;
  std::vector<Ticket> open_tickets() const override;
  std::size_t size() const override { return pooled_.size(); }

 protected:
  // Its sequences have the tickets from `first` on.
  PooledAnswer(PreparedRequest prepared, const ServedModel& model, std::string id, Ticket first,
               std::shared_ptr<HttpReply> reply);

  const ApiRequest& request() const { return prepared_.request; }
  const PreparedRequest& prepared() const { return prepared_; }
  const ServedModel& model() const { return model_; }
  const std::string& model_name() const { return model_.name_of(prepared_.adapter); }
  const std::string& id() const { return id_; }
  // Of a prompt.
  const std::vector<float>& pooled(std::size_t prompt) const { return *pooled_[prompt]; }
  AnswerUsage usage() const;

 private:
  void cut_stream() override {}

  PreparedRequest prepared_;
  const ServedModel& model_;
  std::string id_;
  Ticket first_;
  std::vector<std::shared_ptr<const std::vector<float>>> pooled_;  // null: not there yet
  std::size_t open_;
  std::int64_t cached_tokens_ = 0;
};

}  // namespace weft
