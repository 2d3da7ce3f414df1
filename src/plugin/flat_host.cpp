#include "plugin/flat_host.h"

#include "base/error.h"
#include "base/text.h"
#include "plugin/flat_registration.h"
#include "tensor/meta_parser.h"

namespace weft {
namespace {

// Runs `body` and stores the text of its exception in `error`, if there is none yet.
template <class Body>
weft_status kept(std::string& error, Body&& body) {
  try {
    body();
    return WEFT_OK;
  } catch (const std::exception& thrown) {
    if (error.empty()) error = thrown.what();
    return WEFT_ERROR;
  }
}

// Reads an attribute. WEFT_ERROR if the attribute does not exist or `read` rejects it, WEFT_NONE if its value is none.
template <class Value, class Read>
weft_status read_attribute(const weft_attributes* attributes, const char* name, Value* value, Read&& read) {
  try {
    const Attribute* attribute = attributes->values->find(name);
    if (attribute == nullptr) return WEFT_ERROR;
    if (attribute->is_none()) return WEFT_NONE;
    *value = read(*attribute);
    return WEFT_OK;
  } catch (const std::exception&) {
    return WEFT_ERROR;
  }
}

weft_status attribute_integer(const weft_attributes* attributes, const char* name, std::int64_t* value) {
  return read_attribute(attributes, name, value, [](const Attribute& attribute) { return attribute.integer(); });
}

weft_status attribute_real(const weft_attributes* attributes, const char* name, double* value) {
  return read_attribute(attributes, name, value, [](const Attribute& attribute) { return attribute.real(); });
}

weft_status attribute_boolean(const weft_attributes* attributes, const char* name, std::int32_t* value) {
  return read_attribute(attributes, name, value,
                        [](const Attribute& attribute) { return attribute.boolean() ? 1 : 0; });
}

weft_status attribute_text(const weft_attributes* attributes, const char* name, const char** value) {
  return read_attribute(attributes, name, value, [](const Attribute& attribute) {
    if (std::holds_alternative<DType>(attribute.storage())) return dtype_text(attribute.dtype()).data();
    return attribute.word().c_str();
  });
}

weft_status attribute_integers(const weft_attributes* attributes, const char* name, std::int64_t* values,
                               std::int32_t capacity, std::int32_t* count) {
  return read_attribute(attributes, name, count, [&](const Attribute& attribute) {
    std::int32_t at = 0;
    for (const Attribute& element : attribute.list()) {
      if (at < capacity) values[at] = element.dim().is_number() ? element.dim().number() : WEFT_UNKNOWN;
      ++at;
    }
    return at;
  });
}

std::optional<Meta>& result_of(weft_results* results, std::int32_t index) {
  USER_CHECK(index >= 0 && index < static_cast<std::int32_t>(results->types.size()),
             "there is no result {}: the op has {}", index, results->types.size());
  return results->types[static_cast<std::size_t>(index)];
}

weft_status result_type(weft_results* results, std::int32_t result, const char* type) {
  return kept(results->error, [&] {
    USER_CHECK(type != nullptr, "result {} has no type", result);
    result_of(results, result) = parse_meta(type);
  });
}

weft_status result_like(weft_results* results, std::int32_t result, std::int32_t operand) {
  return kept(results->error, [&] {
    USER_CHECK(operand >= 0 && operand < static_cast<std::int32_t>(results->operands.size()) &&
                   results->operands[static_cast<std::size_t>(operand)].has_value(),
               "result {} must be like an operand that is given, but is like operand {}", result, operand);
    const Meta& like = *results->operands[static_cast<std::size_t>(operand)];
    result_of(results, result) = like.is_tensor() ? Meta::tensor(like.dtype, like.shape) : like;
  });
}

struct ChunkFailure {
  weft_status status;
};

weft_status parallel(const weft_threads* threads, std::int64_t chunks, weft_chunk_function body, void* context) {
  try {
    threads->pool->run(std::max<std::int64_t>(chunks, 0), [&](std::int64_t chunk, int thread) {
      const weft_status status = body(context, chunk, thread);
      if (status != WEFT_OK) throw ChunkFailure{status};
    });
    return WEFT_OK;
  } catch (const ChunkFailure& failure) {
    return failure.status;
  } catch (const std::exception& thrown) {
    threads->error = thrown.what();
  } catch (...) {
    threads->error = "an exception of a type of its own";
  }
  return WEFT_ERROR;
}

std::int32_t thread_count(const weft_threads* threads) { return threads->pool->threads(); }

weft_status set_text(weft_text* text, const char* value) {
  if (value == nullptr) return WEFT_ERROR;
  text->value = value;
  return WEFT_OK;
}

template <auto Function, class Argument>
weft_status add(weft_registry* registry, const Argument* what) {
  return kept(registry->error, [&] { Function(*registry, *what); });
}

weft_status add_priority(weft_registry* registry, const char* op, const char* const* providers, std::int32_t count) {
  return kept(registry->error, [&] {
    std::vector<std::string> names;
    for (std::int32_t i = 0; i < count; ++i) names.emplace_back(providers[i]);
    registry->registrations.register_priority(op, std::move(names));
  });
}

weft_status add_patterns(weft_registry* registry, const char* text) {
  return kept(registry->error, [&] { registry->registrations.register_patterns(text); });
}

}  // namespace

const weft_host& flat_host() {
  static constexpr weft_host kHost = {
      .abi_version = WEFT_PLUGIN_ABI_VERSION,
      .add_op = add<register_flat_op, weft_op>,
      .add_kernel = add<register_flat_kernel, weft_kernel>,
      .add_priority = add_priority,
      .add_pass = add<register_flat_pass, weft_pass>,
      .add_patterns = add_patterns,
      .attribute_integer = attribute_integer,
      .attribute_real = attribute_real,
      .attribute_boolean = attribute_boolean,
      .attribute_text = attribute_text,
      .attribute_integers = attribute_integers,
      .result_type = result_type,
      .result_like = result_like,
      .parallel = parallel,
      .thread_count = thread_count,
      .set_text = set_text,
  };
  return kHost;
}

std::optional<std::string> judge(weft_status status, const char* message, const std::string& what,
                                 const std::string& origin) {
  if (status == WEFT_OK) return std::nullopt;
  if (status == WEFT_REFUSED) return *message == '\0' ? "refuses without a reason" : message;
  fail_user("{} failed{} ({})", what,
            *message == '\0' ? fmt::format(" with status {}", status) : ": " + std::string(message), origin);
}

void fail_thrown(const std::string& what, const std::string& origin, const std::string& said) {
  fail_user("{} threw an exception{} ({})", what, said.empty() ? " of a type of its own" : ": " + said, origin);
}

}  // namespace weft
