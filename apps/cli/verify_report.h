#pragma once

// Prints the results of `weft verify`.

#include <iosfwd>
#include <span>
#include <string>

#include "compiler/check/verify_pieces.h"

namespace weft {

// Writes a table or JSON to `out`, and a sentence for each wrong piece to `err`. Returns exit status 3 (a promise of
// weft is broken) if a piece is wrong, else 0. `op_by_op` is PieceVerification::op_by_op_text.
int report_verdicts(std::span<const PieceVerdict> verdicts, const std::string& model, const std::string& op_by_op,
                    bool as_json, std::ostream& out, std::ostream& err);

}  // namespace weft
