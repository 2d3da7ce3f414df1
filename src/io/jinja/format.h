#pragma once

// Python's two ways to format a text: "%s of %d" % (a, b) and "{} of {n:>5}".format(a, n=b).

#include "io/jinja/object.h"
#include "io/jinja/value.h"

namespace weft::jinja {

// `format % values`: a tuple has the values in order, a mapping has them by name, and any other value is the only one.
Value format_percent(Budget& budget, const Value& format, const Value& values);

// str.format. Fields are numbered or named; attributes and indexes (`{0[key].name}`), `!r` or `!s`, and a format
// specification may follow. The specification cannot contain fields.
Value format_braces(Runtime& runtime, const Value& format, const Arguments& arguments);

}  // namespace weft::jinja
