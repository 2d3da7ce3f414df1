#pragma once

// What the table of fields asks of values that have no effect.

#include "server/request_fields.h"

namespace weft {

bool is_nothing(Element value);  // never: any value asks for something
bool is_false(Element value);
bool is_zero(Element value);
bool is_one(Element value);
bool is_at_most_zero(Element value);
bool is_negative(Element value);
bool is_empty(Element value);          // a list, an object or a text
bool is_float32(Element value);        // as a word
bool is_little_endian(Element value);  // the word of that order, or that of this machine's

bool is_text(Element value);
bool is_truncation(Element value);  // of /v1/responses
bool is_metadata(Element value);    // an object of texts

}  // namespace weft
