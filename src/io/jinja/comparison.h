#pragma once

// Python's comparisons and membership: the operators from `equal` to `not_contained`. All functions throw
// TemplateFailure for types that cannot be compared.

#include "io/jinja/arithmetic.h"
#include "io/jinja/value.h"

namespace weft::jinja {

bool compare(Budget& budget, Operator operation, const Value& left, const Value& right);
bool is_equal(Budget& budget, const Value& left, const Value& right);
bool is_less(Budget& budget, const Value& left, const Value& right);

}  // namespace weft::jinja
