#include "ir/meaning.h"

#include "base/error.h"

namespace weft {

Values run_meaning(const Op& op, Evaluator& home, const Values& operands, const Attributes& attributes) {
  try {
    return op.meaning(home, operands, attributes);
  } catch (const UserError& error) {
    throw UserError(error.Error::what());
  }
}

}  // namespace weft
