#pragma once

// What Python asks of any value: bool(), len() and iteration.

#include <cstdint>
#include <memory>
#include <vector>

#include "io/jinja/value.h"

namespace weft::jinja {

// bool(value).
bool is_true(const Value& value);

// len(value). Throws TemplateFailure for a value without one.
std::int64_t length(Budget& budget, const Value& value);

// What a loop over the value sees: items, keys of a mapping, characters of a string, nothing for an undefined value.
// Reads an iterator to its end. Throws TemplateFailure for values that cannot be looped over.
std::shared_ptr<const std::vector<Value>> iterate(Budget& budget, const Value& value);
bool is_iterable(const Value& value);

}  // namespace weft::jinja
