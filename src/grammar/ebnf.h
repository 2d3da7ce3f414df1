#pragma once

// Grammars as text, in the notation that llama.cpp (GBNF) and xgrammar share:
//
//   root ::= "yes" | "no" ws digits{1,3}     # a comment
//   ws ::= [ \t]*
//
// Texts in double quotes, classes of characters, ".", groups, |, * + ? {m,n}. The rule root is the start. Escapes:
// \n \r \t \xHH \uHHHH \UHHHHHHHH, and a backslash before one of " ' \ [ ] - ^ / . ( ) { } | * + ? $.

#include <string_view>

#include "grammar/grammar.h"

namespace weft::grammar {

// UserError that names the place for a text that is none, and the rule for one that is missing or defined twice.
Grammar read_ebnf(std::string_view text);

}  // namespace weft::grammar
