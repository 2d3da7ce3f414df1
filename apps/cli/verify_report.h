#pragma once

// What `weft verify` says.

#include <iosfwd>
#include <span>
#include <string>

#include "compiler/verify_pieces.h"

namespace weft {

// A table or JSON on `out`, a sentence for each piece that is wrong on `err`. The exit status: 3, as a promise of ours
// is broken, when there is one, else 0. `op_by_op` is PieceVerification::op_by_op_text.
int report_verdicts(std::span<const PieceVerdict> verdicts, const std::string& model, const std::string& op_by_op,
                    bool as_json, std::ostream& out, std::ostream& err);

}  // namespace weft
