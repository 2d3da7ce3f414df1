#pragma once

// The variants of a row program: loops cut differently that compute the same bits. Measurements decide which is fastest
// for a number of rows (compiler/tune/tune_functions.h).

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "codegen/row_program.h"

namespace weft {

// The program with this tuning. Returns nothing if its rows cannot be computed in that many parts: a value or a store
// depends on the whole row, or the columns or groups do not divide. `program` has the default tuning.
std::optional<RowProgram> tuned_program(const RowProgram& program, const RowTuning& tuning);

// The other ways to cut the loops over columns, without the default.
std::vector<RowTuning> unrolled_variants(const RowProgram& program);
// The other ways to share `rows` rows among threads, without the default: one thread alone, even shares, finer chunks,
// or parts of the columns if there are fewer rows than threads could use. All have `unroll`.
std::vector<RowTuning> shared_variants(const RowProgram& program, int unroll, std::int64_t rows, int threads);

// Parses the output of RowTuning::text. UserError for any other text.
RowTuning parse_row_tuning(std::string_view text);

}  // namespace weft
