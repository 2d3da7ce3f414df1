#include "apps/cli/output_argument.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "server/structured_outputs.h"

namespace weft {
namespace {

constexpr std::size_t kMostSchemaBytes = 4 << 20;

StructuredOutput output_by_schema(const std::string& text, const std::string& where) {
  Json schema = parse_json(text, where, {.most_bytes = kMostSchemaBytes, .deepest = 128});
  return {.kind = StructuredOutput::Kind::json_schema, .value = std::move(schema)};
}

}  // namespace

void OutputArgument::declare(Flags& flags) {
  flags.option("-j,--json-schema", schema, "The answer is JSON of this schema; {} is any JSON.");
  flags.option("--json-schema-file", schema_file, "The same, from a file.", {.excludes = {"--json-schema"}});
  flags.option("--grammar", grammar, "The answer matches this grammar (GBNF).", {.excludes = {"--json-schema"}});
  flags.option("--grammar-file", grammar_file, "The same, from a file.", {.excludes = {"--grammar"}});
}

std::shared_ptr<const TokenConstraint> OutputArgument::constraint(Engine& engine) const {
  const bool has_schema = !schema.empty() || !schema_file.empty(),
             has_grammar = !grammar.empty() || !grammar_file.empty();
  if (!has_schema && !has_grammar) return nullptr;
  USER_CHECK(!has_schema || !has_grammar, "[--grammar] excludes --json-schema: an answer follows one of them");
  const ConstraintCompiler compiler(engine.tokenizer(), engine.end_tokens(),
                                    static_cast<std::size_t>(engine.runner().vocabulary_size()));
  if (has_schema) {
    return compile_output(schema_file.empty() ? output_by_schema(schema, "--json-schema")
                                              : output_by_schema(read_file(schema_file, kMostSchemaBytes), schema_file),
                          compiler);
  }
  const std::string text = grammar_file.empty() ? grammar : read_file(grammar_file, kMostSchemaBytes);
  return compile_output({.kind = StructuredOutput::Kind::grammar, .value = text}, compiler);
}

}  // namespace weft
