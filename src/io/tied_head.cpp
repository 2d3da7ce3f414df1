#include "io/tied_head.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr const char* kHead = "lm_head.weight";
constexpr std::int64_t kMostRows = 256;

// Heads that were trained apart differ in nearly every row.
bool has_same_rows(const Tensor& a, const Tensor& b) {
  if (a.meta != b.meta) return false;
  const std::int64_t rows = a.meta.shape[0].number(), bytes = a.meta.bytes().number() / rows;
  const std::int64_t step = std::max<std::int64_t>(rows / kMostRows, 1);
  for (std::int64_t row = 0; row < rows; row += step)
    if (std::memcmp(a.data() + row * bytes, b.data() + row * bytes, static_cast<std::size_t>(bytes)) != 0) return false;
  return true;
}

}  // namespace

void untie_if_differs(const Checkpoint& checkpoint, std::string_view embedding, ModelConfig& config) {
  if (!config.tie_word_embeddings || checkpoint.is_dummy()) return;
  const TensorEntry* table = checkpoint.find(embedding);
  const TensorEntry* head = checkpoint.find(kHead);
  if (table == nullptr || head == nullptr || table->tensor.meta.rank() != 2 ||
      table->tensor.meta.shape != head->tensor.meta.shape || has_same_rows(table->tensor, head->tensor))
    return;
  config.tie_word_embeddings = false;
  config.warnings.push_back(fmt::format("[{}] tie_word_embeddings is true, but {} differs from {}: it is read",
                                        checkpoint.path(), kHead, embedding));
}

}  // namespace weft
