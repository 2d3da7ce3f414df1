#pragma once

// Python's bool(), len() and iteration for any value.

#include <cstdint>
#include <memory>
#include <vector>

#include "io/jinja/value.h"

namespace weft::jinja {

// bool(value).
bool is_true(const Value& value);

// len(value). Throws TemplateFailure for a value without a length.
std::int64_t length(Budget& budget, const Value& value);

// The elements that a loop over the value visits: items, keys of a mapping, characters of a string, none for an
// undefined value. Consumes an iterator. Throws TemplateFailure for values that are not iterable.
std::shared_ptr<const std::vector<Value>> iterate(Budget& budget, const Value& value);
bool is_iterable(const Value& value);

}  // namespace weft::jinja
