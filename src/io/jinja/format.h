#pragma once

// Python's two ways of filling a text in: "%s of %d" % (a, b) and "{} of {n:>5}".format(a, n=b).

#include "io/jinja/object.h"
#include "io/jinja/value.h"

namespace weft::jinja {

// `format % values`: a tuple gives the values one by one, a mapping by name, anything else is the only value.
Value format_percent(Budget& budget, const Value& format, const Value& values);

// str.format. Fields are numbered or named, with attributes and indexes behind (`{0[key].name}`), `!r` or `!s`, and a
// format specification without fields of its own.
Value format_braces(Runtime& runtime, const Value& format, const Arguments& arguments);

}  // namespace weft::jinja
