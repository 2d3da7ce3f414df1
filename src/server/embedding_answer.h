#pragma once

// A request of /v1/embeddings while it runs: one sequence for each text.

#include <memory>
#include <string>
#include <vector>

#include "server/prepared_request.h"
#include "server/running_request.h"

namespace weft {

// Reader of the field encoding_format, as in request_fields.h.
std::string read_encoding(simdjson::dom::element value, ApiRequest& request);

class EmbeddingAnswer final : public RunningRequest {
 public:
  // Its sequences have the tickets from `first` on.
  EmbeddingAnswer(PreparedRequest prepared, const ServedModel& model, std::string id, Ticket first,
                  std::shared_ptr<HttpReply> reply);

  std::vector<Sequence> begin(std::uint64_t random_seed) override;
  void take(const SequenceEvent& event) override;
  std::vector<Ticket> open_tickets() const override;
  std::size_t size() const override { return embeddings_.size(); }

 private:
  Json whole_answer() override;
  Json written(const std::vector<float>& pooled) const;
  void cut_stream() override {}

  PreparedRequest prepared_;
  const ServedModel& model_;
  std::string id_;
  Ticket first_;
  std::vector<std::shared_ptr<const std::vector<float>>> embeddings_;  // null: not there yet
  std::size_t open_;
  std::int64_t cached_tokens_ = 0;
};

}  // namespace weft
