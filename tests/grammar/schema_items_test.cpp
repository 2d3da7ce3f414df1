// "items" and "prefixItems" of schemas that must both hold.

#include <gtest/gtest.h>

#include "grammar/json_schema.h"
#include "tests/grammar/grammar_texts.h"
#include "tests/grammar/small_validator.h"
#include "tests/thrown_message.h"

namespace weft::schema_items_test {

using grammar::schema_grammar;

struct JoinedRow {
  const char* schema;
  std::vector<const char*> valid, invalid;  // documents
};

const JoinedRow kJoined[] = {
    {R"({"allOf":[{"type":"array","items":{"type":["boolean","integer"]}},{"prefixItems":[{"type":["integer","null"]}]}]})",
     {"[]", "[1]", "[1,true]", "[1,2]"},
     {"[true]", "[null]", "[1,null]"}},
    {R"({"allOf":[{"prefixItems":[{"type":["integer","null"]}]},{"type":"array","items":{"type":["boolean","integer"]}}]})",
     {"[]", "[1]", "[1,true]"},
     {"[true]", "[null]", "[1,null]"}},
    {R"({"type":"array","items":{"type":["boolean","integer"]},"anyOf":[{"prefixItems":[{"type":["integer","null"]}]}]})",
     {"[1]", "[1,true]"},
     {"[true]", "[null]"}},
    {R"({"$defs":{"x":{"type":"array","prefixItems":[{"type":["integer","null"]}]}},"$ref":"#/$defs/x","items":{"type":["boolean","integer"]}})",
     {"[1]", "[1,true]"},
     {"[true]", "[null]", R"([1,"a"])"}},
    {R"({"allOf":[{"prefixItems":[{"type":"integer"}]},{"prefixItems":[{"minimum":3},{"type":"null"}]}]})",
     {"[]", "[3]", "[3,null,true]"},
     {"[2]", "[3,1]"}},
    {R"({"allOf":[{"type":"array","items":false},{"prefixItems":[{"type":"integer"}]}]})", {"[]"}, {"[1]", "[true]"}},
    {R"({"allOf":[{"prefixItems":[{"type":"integer"}],"items":false},{"type":"array","items":{"type":["integer","null"]}}]})",
     {"[]", "[1]"},
     {"[null]", "[1,1]"}},
    {R"({"allOf":[{"items":{"type":"integer"}},{"type":"array","items":{"minimum":3}}]})", {"[3]"}, {"[2]", "[null]"}},
};

TEST(SchemaItems, OfSchemasThatAreJoinedAreAllEnforced) {
  for (const JoinedRow& row : kJoined) {
    const Json schema = parse_json(row.schema);
    const grammar::Grammar made = schema_grammar(schema, {});
    for (const char* document : row.valid) {
      EXPECT_TRUE(is_valid(parse_json(document), schema)) << row.schema << " " << document;
      EXPECT_TRUE(matches(made, document)) << row.schema << " " << document;
    }
    for (const char* document : row.invalid) EXPECT_FALSE(matches(made, document)) << row.schema << " " << document;
  }
}

TEST(SchemaItems, ThatCannotBeJoinedAreRefused) {
  for (const char* schema :
       {R"({"type":"array","prefixItems":[{"type":"integer"}],"items":[{"type":"boolean"}]})",
        R"({"allOf":[{"type":"array","items":[{"type":"boolean"}]},{"prefixItems":[{"type":"integer"}]}]})",
        R"({"allOf":[{"type":"array","items":[{"type":"boolean"}]},{"items":{"type":"integer"}}]})",
        R"({"allOf":[{"type":"array","items":{"type":"boolean"}},{"prefixItems":[{"type":"integer"}]}],"minItems":1})"})
    EXPECT_NE(message_of([&] { schema_grammar(parse_json(schema), {}); }), "") << schema;
}

}  // namespace weft::schema_items_test
