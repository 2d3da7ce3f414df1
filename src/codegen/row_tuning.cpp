#include "codegen/row_tuning.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "tensor/reference_math.h"

namespace weft {
namespace {

constexpr int kMostUnrolled = 4;
constexpr int kMostPieces = 1 << 16;  // parts of a row, and chunks

// Cuts the rows of a program into parts. run() returns false if that is not possible.
class Parting {
 public:
  Parting(RowProgram& program, int parts) : program_(program), columns_(program.columns / parts) {}

  bool run(int parts) {
    // A part must consist of whole groups or whole steps of the row sum, so that its vectors are whole.
    const std::int64_t unit = program_.group > 0 ? program_.group : kReferenceSumLanes;
    if (program_.columns % (unit * parts) != 0) return false;
    strides_.assign(program_.buffers.size(), std::nullopt);
    for (const RowValue& value : program_.values) {
      if (is_row_reduction(value.op)) return false;
      if (value.op != RowOp::load) continue;
      const RowBuffer& buffer = program_.buffers[static_cast<std::size_t>(value.buffer)];
      if (!set_stride(value.buffer, value.domain, buffer.placement)) return false;
    }
    for (const RowStore& store : program_.stores)
      if (store.domain <= RowDomain::row || !set_stride(store.buffer, store.domain, store.placement)) return false;
    for (std::size_t i = 0; i < strides_.size(); ++i) program_.buffers[i].part_stride = strides_[i].value_or(0);
    program_.columns = columns_;
    return true;
  }

 private:
  bool set_stride(int buffer, RowDomain domain, const RowPlacement& placement) {
    std::int64_t stride = 0;
    if (domain == RowDomain::group) stride = columns_ / program_.group;
    if (domain == RowDomain::element) {
      // A part must consist of whole runs.
      if (placement.run > 0 && columns_ % placement.run != 0) return false;
      stride = placement.of(columns_);
    }
    std::optional<std::int64_t>& known = strides_[static_cast<std::size_t>(buffer)];
    if (known && *known != stride) return false;
    known = stride;
    return true;
  }

  RowProgram& program_;
  std::int64_t columns_;                              // of a part
  std::vector<std::optional<std::int64_t>> strides_;  // by buffer
};

}  // namespace

std::optional<RowProgram> tuned_program(const RowProgram& program, const RowTuning& tuning) {
  CHECK(program.tuning == RowTuning(), "a program is tuned once");
  RowProgram tuned = program;
  tuned.tuning = tuning;
  if (tuning.parts > 1 && !Parting(tuned, tuning.parts).run(tuning.parts)) return std::nullopt;
  return tuned;
}

std::vector<RowTuning> unrolled_variants(const RowProgram& program) {
  std::vector<RowTuning> variants;
  for (int unroll = 2; unroll <= kMostUnrolled && program.columns > unroll / 2 * kReferenceSumLanes; unroll *= 2)
    variants.push_back({.unroll = unroll});
  return variants;
}

std::vector<RowTuning> shared_variants(const RowProgram& program, int unroll, std::int64_t rows, int threads) {
  std::vector<RowTuning> variants;
  if (threads < 2) return variants;
  if (rows > 1) {
    variants.push_back({.unroll = unroll, .chunks = 1});
    if (rows >= threads) variants.push_back({.unroll = unroll, .chunks = threads});
    if (rows >= 4 * threads) variants.push_back({.unroll = unroll, .chunks = 4 * threads});
  }
  const RowTuning by_groups{.unroll = unroll, .parts = threads, .chunks = threads};
  if (rows < 2 * threads && tuned_program(program, by_groups)) variants.push_back(by_groups);
  return variants;
}

RowTuning parse_row_tuning(std::string_view text) {
  RowTuning tuning;
  if (text == "default") return tuning;
  for (const std::string& word : split_text(std::string(text), ' ')) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    int* value = name == "unroll" ? &tuning.unroll : name == "parts" ? &tuning.parts : &tuning.chunks;
    const char* end = word.data() + word.size();
    USER_CHECK(equals != std::string::npos && (value != &tuning.chunks || name == "chunks") &&
                   std::from_chars(word.data() + equals + 1, end, *value).ptr == end && *value >= 1 &&
                   *value <= (value == &tuning.unroll ? kMostUnrolled : kMostPieces),
               "{} is not a tuning of a row program", quote(text));
  }
  USER_CHECK(tuning.text() == text, "{} is not a tuning of a row program", quote(text));
  return tuning;
}

}  // namespace weft
