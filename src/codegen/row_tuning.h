#pragma once

// The variants of a row program: the same bits by loops that are cut otherwise. Which is fastest for a count of rows is
// for measurements to say (compiler/tune_functions.h).

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "codegen/row_program.h"

namespace weft {

// The program with this tuning; nothing where its rows cannot be computed in so many parts: where a value or a store
// waits for the whole row, and where columns or groups do not divide. The program has the default tuning.
std::optional<RowProgram> tuned_program(const RowProgram& program, const RowTuning& tuning);

// How the loops over columns may be cut besides the default.
std::vector<RowTuning> unrolled_variants(const RowProgram& program);
// How `rows` rows may be shared among threads besides the default: by one, evenly, in finer chunks, or by groups of
// columns where there are fewer rows than threads could take. All with `unroll`.
std::vector<RowTuning> shared_variants(const RowProgram& program, int unroll, std::int64_t rows, int threads);

// What RowTuning::text gave; UserError for anything else.
RowTuning parse_row_tuning(std::string_view text);

}  // namespace weft
