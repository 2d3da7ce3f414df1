#include "compiler/store/plan_bytes.h"

#include <algorithm>

#include "base/byte_stream.h"
#include "compiler/context.h"
#include "runtime/plan_file.h"

namespace weft {
namespace {

struct FunctionRecord {
  GeneratedFunction function;
  ContentHash code;
  ContentHash image;  // the hash of zero bytes if the device has no image
};

// Names serve to bind inputs and to write messages. They belong to the graph, and several graphs may share one Plan.
// The Plan is therefore stored without names and gets those of the graph that it is loaded for.
Plan without_names(const Plan& plan) {
  Plan nameless = plan;
  nameless.name.clear();
  for (const int input : nameless.inputs) {
    PlanSlot& slot = nameless.slots[static_cast<std::size_t>(input)];
    slot.name.clear();
    slot.key.clear();
  }
  return nameless;
}

// Throws UserError if the graph has another number of inputs.
void give_names(Plan& plan, const Graph& traced) {
  USER_CHECK(plan.inputs.size() == traced.inputs().size(), "a plan has {} inputs, but the graph {} has {}",
             plan.inputs.size(), traced.name, traced.inputs().size());
  plan.name = traced.name;
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    PlanSlot& slot = plan.slots[static_cast<std::size_t>(plan.inputs[i])];
    slot.name = traced.inputs()[i]->name;
    slot.key = traced.inputs()[i]->key;
  }
}

void write_function(ByteWriter& writer, const FunctionRecord& record) {
  const GeneratedFunction& function = record.function;
  writer.text(function.name);
  writer.number(function.row_bytes);
  writer.number(function.scratch_bytes);
  writer.number(std::int32_t{function.parts});
  writer.number(std::int32_t{function.chunks});
  writer.count(function.numbers.size());
  for (const RowNumbers& numbers : function.numbers) {
    writer.number(std::int32_t{numbers.operand});
    writer.number(numbers.limit);
  }
  writer.count(function.over.size());
  for (const int over : function.over) writer.number(std::int32_t{over});
  writer.hash(record.code);
  writer.hash(record.image);
}

FunctionRecord read_function(ByteReader& reader) {
  GeneratedFunction function{.name = std::string(reader.text())};
  function.row_bytes = reader.number<std::int64_t>();
  function.scratch_bytes = reader.number<std::int64_t>();
  function.parts = reader.number<std::int32_t>();
  function.chunks = reader.number<std::int32_t>();
  USER_CHECK(function.parts >= 1, "{} has {} parts", function.name, function.parts);
  for (std::size_t numbers = reader.count(); numbers > 0; --numbers) {
    const auto operand = reader.number<std::int32_t>();
    function.numbers.push_back({operand, reader.number<std::int64_t>()});
  }
  for (std::size_t results = reader.count(); results > 0; --results)
    function.over.push_back(reader.number<std::int32_t>());
  const ContentHash code = reader.hash();
  return {.function = std::move(function), .code = code, .image = reader.hash()};
}

std::vector<FunctionRecord> read_functions(ByteReader& reader) {
  std::vector<FunctionRecord> functions;
  for (std::size_t left = reader.count(); left > 0; --left) functions.push_back(read_function(reader));
  return functions;
}

const ContentHash& hash_of_nothing() {
  static const ContentHash hash = hash_bytes(std::span<const std::byte>());
  return hash;
}

std::span<const std::byte> object_named(const ContentHash& hash, const CodeObjects& objects, const std::string& name) {
  if (hash == hash_of_nothing()) return {};
  const auto found = objects.find(hash);
  USER_CHECK(found != objects.end(), "{} wants the object {}, but there is none", name, hash.hex());
  return found->second;
}

}  // namespace

std::set<std::string> functions_of(std::span<const Plan* const> plans, const GeneratedKernels& generated) {
  std::set<std::string> functions;
  for (const Plan* plan : plans)
    for (const PlanStep& step : plan->steps)
      if (generated.find(step.op) == step.kernel) functions.insert(step.op);
  return functions;
}

// Writes the functions, then the index of each range's Plan, then the Plans.
PlanBytes bytes_of_plans(std::span<const Plan* const> by_range, const GeneratedKernels& generated) {
  PlanBytes made;
  ByteWriter writer;
  const auto keep = [&](const std::vector<std::byte>& object) {
    const ContentHash hash = hash_bytes(object);
    if (!object.empty()) made.objects.emplace(hash, object);
    return hash;
  };
  const std::set<std::string> functions = functions_of(by_range, generated);
  writer.count(functions.size());
  for (const std::string& name : functions) {
    const GeneratedObject& object = generated.object(name);
    write_function(writer, {object.function, keep(object.code), keep(object.image)});
  }
  std::vector<const Plan*> plans;
  writer.count(by_range.size());
  for (const Plan* plan : by_range) {
    const auto known = std::find(plans.begin(), plans.end(), plan);
    writer.number(static_cast<std::uint32_t>(known - plans.begin()));
    if (known == plans.end()) plans.push_back(plan);
  }
  writer.count(plans.size());
  for (const Plan* plan : plans) {
    const std::vector<std::byte> bytes = plan_bytes(without_names(*plan));
    writer.count(bytes.size());
    writer.raw(bytes);
  }
  made.bytes = writer.take();
  return made;
}

std::vector<std::shared_ptr<const Plan>> plans_of_bytes(std::span<const std::byte> bytes, const CodeObjects& objects,
                                                        const Graph& traced, const Context& context) {
  ByteReader reader(bytes);
  for (const FunctionRecord& record : read_functions(reader)) {
    const std::string& name = record.function.name;
    context.generated->load(record.function, object_named(record.code, objects, name),
                            object_named(record.image, objects, name), context);
  }
  std::vector<std::uint32_t> numbers(reader.count());
  for (std::uint32_t& number : numbers) number = reader.number<std::uint32_t>();
  const auto find_kernel = [&](const std::string& op, const std::string& provider) -> const Kernel* {
    if (const Kernel* kernel = provider == "native" ? context.generated->find(op) : nullptr) return kernel;
    return context.kernels.find(op, provider == "native" ? "reference" : provider);
  };
  std::vector<std::shared_ptr<const Plan>> plans(reader.count());
  for (auto& plan : plans) {
    Plan read = plan_from_bytes(reader.raw(reader.count()), find_kernel);
    give_names(read, traced);
    verify_plan(read);
    plan = std::make_shared<const Plan>(std::move(read));
  }
  std::vector<std::shared_ptr<const Plan>> by_range;
  for (const std::uint32_t number : numbers) {
    USER_CHECK(number < plans.size(), "range {} has plan {} of {}", by_range.size(), number, plans.size());
    by_range.push_back(plans[number]);
  }
  return by_range;
}

std::set<ContentHash> objects_named(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  std::set<ContentHash> named;
  for (const FunctionRecord& record : read_functions(reader)) named.insert({record.code, record.image});
  named.erase(hash_of_nothing());
  return named;
}

std::vector<std::byte> joined(const PlanBytes& plans) {
  ByteWriter writer;
  writer.count(plans.objects.size());
  for (const auto& [hash, object] : plans.objects) {
    writer.count(object.size());
    writer.raw(object);
  }
  writer.raw(plans.bytes);
  return writer.take();
}

PlanBytes parted(std::span<const std::byte> bytes) {
  PlanBytes plans;
  ByteReader reader(bytes);
  for (std::size_t left = reader.count(); left > 0; --left) {
    const std::span<const std::byte> object = reader.raw(reader.count());
    plans.objects.try_emplace(hash_bytes(object), object.begin(), object.end());
  }
  const std::span<const std::byte> rest = reader.raw(reader.left());
  plans.bytes.assign(rest.begin(), rest.end());
  return plans;
}

}  // namespace weft
