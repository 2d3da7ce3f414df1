#pragma once

// A request of /v1/embeddings while it runs.

#include "server/pooled_answer.h"

namespace weft {

// Reader of the field encoding_format, as in request_fields.h.
std::string read_encoding(simdjson::dom::element value, ApiRequest& request);

class EmbeddingAnswer final : public PooledAnswer {
 public:
  EmbeddingAnswer(PreparedRequest prepared, const ServedModel& model, std::string id, Ticket first,
                  std::shared_ptr<HttpReply> reply)
      : PooledAnswer(std::move(prepared), model, std::move(id), first, std::move(reply)) {}

 private:
  Json whole_answer() override;
  Json written(const std::vector<float>& pooled) const;
};

}  // namespace weft
