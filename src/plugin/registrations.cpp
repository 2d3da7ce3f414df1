#include "plugin/registrations.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "ir/parse.h"
#include "plugin/opaque.h"

namespace weft {
namespace {

// An error in a definition of a plugin is the fault of its author, even if the builder throws an InternalError.
template <class Body>
void as_user_error(const std::string& origin, Body&& body) {
  try {
    body();
  } catch (const InternalError& error) {
    const std::string message = error.what();
    fail_user("{} ({})", message.substr(0, message.rfind(" (at ")), origin);
  } catch (const UserError& error) {
    fail_user("{} ({})", error.what(), origin);
  }
}

std::vector<std::string> op_names(const OpTable& ops) {
  std::vector<std::string> names;
  for (const auto& [name, op] : ops.all()) names.push_back(name);
  return names;
}

const Op& op_of(const OpTable& ops, const std::string& name, const std::string& provider, const std::string& origin) {
  const Op* op = ops.find(name);
  USER_CHECK(op != nullptr, "[{}@{}] {} is not an op of this program{} ({})", name, provider, quote(name),
             suggestion(name, op_names(ops)), origin);
  return *op;
}

void check_schema(const Kernel& kernel, const Op& op) {
  Schema schema;
  as_user_error(kernel.origin, [&] { schema = parse_schema(kernel.schema); });
  const auto refuse = [&](const std::string& what) {
    fail_user("[{}@{}] {}: the kernel is for {}, but the op is {} ({})", op.name, kernel.provider, what, schema.text(),
              op.schema.text(), kernel.origin);
  };
  if (schema.name != op.name) refuse("does not match the op's name");
  if (schema.parameters.size() != op.schema.parameters.size()) refuse("does not match the op's number of parameters");
  for (std::size_t i = 0; i < schema.parameters.size(); ++i) {
    const Parameter &own = schema.parameters[i], &wanted = op.schema.parameters[i];
    if (own.name != wanted.name) refuse(fmt::format("parameter {} has another name", i));
    if (own.type != wanted.type || own.optional != wanted.optional)
      refuse(fmt::format("{} is of another type", own.name));
    if (own.default_value != wanted.default_value) refuse(fmt::format("{} has another default", own.name));
  }
  if (schema.results.size() != op.schema.results.size()) refuse("does not match the op's number of results");
}

void check_writes(const Kernel& kernel, const Op& op) {
  if (kernel.writes.empty()) return;
  USER_CHECK(op.allow_inplace, "[{}@{}] writes over its arguments, but {} does not allow in-place calls ({})", op.name,
             kernel.provider, op.name, kernel.origin);
  for (int index : kernel.writes) {
    const bool donated = std::any_of(op.donates.begin(), op.donates.end(),
                                     [&](const Donation& donation) { return donation.argument == index; });
    const bool known = index >= 0 && index < static_cast<int>(op.schema.parameters.size());
    USER_CHECK(donated, "[{}@{}] writes over {}, which {} does not donate ({})", op.name, kernel.provider,
               known ? op.schema.parameters[static_cast<std::size_t>(index)].name : fmt::format("argument {}", index),
               op.name, kernel.origin);
  }
}

void check_donations(const Op& op) {
  for (const Donation& donation : op.donates)
    CHECK(donation.result >= 0 && donation.result < static_cast<int>(op.schema.results.size()),
          "[{}] gives {} to result {}, but has {} results", op.name,
          op.schema.parameters[static_cast<std::size_t>(donation.argument)].name, donation.result,
          op.schema.results.size());
  CHECK(op.rows_of < static_cast<int>(op.schema.tensor_count()), "[{}] counts rows of an operand that is not a tensor",
        op.name);
}

}  // namespace

void Registrations::register_op(std::string name, Define define) {
  ops_.push_back({std::move(name), origin_, std::move(define)});
}

void Registrations::register_impl(std::string op, std::string provider, Run run, KernelTraits traits) {
  Kernel kernel;
  kernel.op = std::move(op);
  kernel.provider = std::move(provider);
  kernel.origin = origin_;
  kernel.schema = std::move(traits.schema);
  kernel.rows = traits.rows;
  if (traits.supported) kernel.supported = std::move(traits.supported);
  if (traits.supports) kernel.supports = std::move(traits.supports);
  kernel.writes = std::move(traits.writes);
  kernel.batch_invariant = traits.batch_invariant;
  kernel.launch_graph = traits.launch_graph;
  kernel.scratch_bytes = std::move(traits.scratch_bytes);
  kernel.note = std::move(traits.note);
  kernel.run = std::move(run);
  kernels_.push_back(std::move(kernel));
}

void Registrations::register_priority(std::string op, std::vector<std::string> providers) {
  priorities_.push_back({std::move(op), origin_, std::move(providers)});
}

void Registrations::register_pass(std::string name, Stage stage, std::function<PassResult(Graph&, PassContext&)> run) {
  passes_.push_back({{std::move(name), std::move(run), stage, stage}, origin_});
}

void Registrations::register_patterns(std::string text, bool is_trusted) {
  patterns_.push_back({std::move(text), origin_, is_trusted});
}

void Registrations::append(Registrations other) {
  const auto move_all = [](auto& from, auto& into) { std::move(from.begin(), from.end(), std::back_inserter(into)); };
  move_all(other.ops_, ops_);
  move_all(other.kernels_, kernels_);
  move_all(other.priorities_, priorities_);
  move_all(other.passes_, passes_);
  move_all(other.patterns_, patterns_);
}

void add_ops(OpTable& ops, const Registrations& registrations) {
  for (const Registrations::OpRow& row : registrations.ops()) {
    as_user_error(row.origin, [&] {
      CHECK(row.define != nullptr, "[{}] has no definition", row.name);
      OpDefinition definition;
      row.define(definition);
      Op op = std::move(definition).finish(row.name);
      check_donations(op);
      ops.add(std::move(op));
    });
  }
}

void add_kernels(KernelRegistry& kernels, const OpTable& ops, const Registrations& registrations,
                 bool batch_invariant) {
  for (const Kernel& kernel : registrations.kernels()) {
    USER_CHECK(kernel.provider != "reference", "[{}@reference] the name is reserved: reference is the oracle ({})",
               kernel.op, kernel.origin);
    op_of(ops, kernel.op, kernel.provider, kernel.origin);
    kernels.add(kernel);
  }
  for (const Registrations::OpRow& row : registrations.ops()) {
    const Op& op = ops.at(row.name);
    if (!op.is_primitive() || op.is_view) continue;
    const Kernel* chosen = nullptr;  // the one with the smallest name, independent of the order
    for (const Kernel& kernel : registrations.kernels())
      if (kernel.op == op.name && (chosen == nullptr || kernel.provider < chosen->provider)) chosen = &kernel;
    USER_CHECK(chosen != nullptr, "[{}] has neither a meaning nor a kernel ({})", op.name, row.origin);
    kernels.add(opaque_reference(op, *chosen, batch_invariant));
  }
}

void check_kernels(const KernelRegistry& kernels, const OpTable& ops) {
  kernels.for_each([&](const Kernel& kernel) {
    const Op& op = op_of(ops, kernel.op, kernel.provider, kernel.origin);
    if (!kernel.schema.empty()) check_schema(kernel, op);
    check_writes(kernel, op);
    USER_CHECK(kernel.rows.lo >= 1 && kernel.rows.lo <= kernel.rows.hi,
               "[{}@{}] is for {} to {} rows, which is not a range ({})", op.name, kernel.provider, kernel.rows.lo,
               kernel.rows.hi, kernel.origin);
  });
}

void add_priorities(PriorityLists& priorities, const KernelRegistry& kernels, const OpTable& ops,
                    const Registrations& registrations) {
  std::set<std::string> listed;
  for (const Registrations::PriorityRow& row : registrations.priorities()) {
    USER_CHECK(ops.find(row.op) != nullptr, "[priority] {} is not an op of this program{} ({})", quote(row.op),
               suggestion(row.op, op_names(ops)), row.origin);
    std::vector<std::string> known = kernels.providers(row.op);
    known.push_back("native");
    for (const std::string& provider : row.providers)
      USER_CHECK(std::find(known.begin(), known.end(), provider) != known.end(),
                 "[priority] {} is not a provider of {}{} ({})", quote(provider), row.op, suggestion(provider, known),
                 row.origin);
    priorities.add_defaults(row.op, row.providers);
    listed.insert(row.op);
  }
  for (const Registrations::OpRow& row : registrations.ops()) {
    if (listed.count(row.name) != 0) continue;
    std::vector<std::string> own = kernels.providers(row.name);
    std::erase(own, "reference");
    priorities.add_defaults(row.name, own);
  }
}

std::vector<PassRow> checked_passes(const Registrations& registrations, std::vector<std::string> taken) {
  std::vector<PassRow> passes;
  for (const auto& [row, origin] : registrations.passes()) {
    const bool valid = !row.name.empty() && row.name != "all" && (row.name[0] < '0' || row.name[0] > '9') &&
                       row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string::npos;
    USER_CHECK(valid, "[pass] a name must match [a-z_][a-z0-9_]*, but is {} ({})", quote(row.name), origin);
    USER_CHECK(std::find(taken.begin(), taken.end(), row.name) == taken.end(), "[pass] {} is there already ({})",
               row.name, origin);
    USER_CHECK(row.run != nullptr, "[pass] {} has no function ({})", row.name, origin);
    taken.push_back(row.name);
    passes.push_back(row);
  }
  return passes;
}

std::vector<ParsedPattern> parse_patterns(const Registrations& registrations, const OpTable& ops) {
  std::vector<ParsedPattern> patterns;
  std::set<std::string> names;
  for (const auto& [text, origin, is_trusted] : registrations.patterns()) {
    for (const Definition& definition : parse_definitions(text, ops, origin)) {
      const auto* pattern = std::get_if<std::shared_ptr<Pattern>>(&definition);
      USER_CHECK(pattern != nullptr, "[pattern] the text must hold patterns alone ({})", origin);
      const std::optional<std::string> breach = find_breach(**pattern);
      USER_CHECK(!breach, "[pattern] {}: {} ({})", (*pattern)->name, *breach, origin);
      USER_CHECK(names.insert((*pattern)->name).second, "[pattern] {} is there already ({})", (*pattern)->name, origin);
      patterns.push_back({**pattern, origin, is_trusted});
    }
  }
  return patterns;
}

}  // namespace weft
