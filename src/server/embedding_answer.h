#pragma once

// A request of /v1/embeddings while it runs, or one of /pooling, whose answer has the same numbers under other names.
// Of a model that scores texts /pooling has the scores. /embedding is llama.cpp's.

#include "server/pooled_answer.h"

namespace weft {

// Readers of the fields encoding_format and embd_normalize, as in request_fields.h.
std::string read_encoding(simdjson::dom::element value, ApiRequest& request);
std::string read_embedding_norm(simdjson::dom::element value, ApiRequest& request);

class EmbeddingAnswer final : public PooledAnswer {
 public:
  EmbeddingAnswer(PreparedRequest prepared, const ServedModel& model, std::string id, Ticket first,
                  std::shared_ptr<HttpReply> reply)
      : PooledAnswer(std::move(prepared), model, std::move(id), first, std::move(reply)) {}

 private:
  Json whole_answer() override;
  Json llama_answer() const;
  std::vector<float> numbers(const std::vector<float>& pooled) const;
  Json written(const std::vector<float>& numbers) const;
};

}  // namespace weft
