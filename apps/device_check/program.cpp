#include "apps/device_check/program.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "apps/device_check/device_check.h"
#include "apps/device_check/phases.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace weft::device_check {
namespace {

struct Arguments {
  bool is_fake = false;
  int device = 0;
  std::string launches = program_folder() / "launches.bin", json = "device_check.json", table = "device_check.md";
  Selection selection;
};

std::string parts_text() {
  std::string text;
  for (const std::string_view part : kParts) text += (text.empty() ? "" : ", ") + std::string(part);
  return text;
}

std::vector<std::string> read_parts(std::string_view words) {
  std::vector<std::string> parts = split_text(std::string(words), ',');
  for (const std::string& part : parts)
    USER_CHECK(std::find(std::begin(kParts), std::end(kParts), part) != std::end(kParts),
               "[--only] must be of {}, but has {}", parts_text(), quote(part));
  return parts;
}

int read_device(std::string_view value) {
  int device = 0;
  const auto end = std::from_chars(value.data(), value.data() + value.size(), device);
  USER_CHECK(end.ec == std::errc() && end.ptr == value.data() + value.size(), "[--device] must be a number, but is {}",
             value);
  return device;
}

constexpr const char* kOptions =
    "--fake, --one-each, or --device, --launches, --json, --table, --only or --name with a value";

Arguments read_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--fake" || word == "--one-each") {
      (word == "--fake" ? arguments.is_fake : arguments.selection.one_each) = true;
      continue;
    }
    USER_CHECK(i + 1 < words.size(), "[{}] wanted {}", word, kOptions);
    const std::string_view value = words[++i];
    if (word == "--launches") {
      arguments.launches = value;
    } else if (word == "--json") {
      arguments.json = value;
    } else if (word == "--table") {
      arguments.table = value;
    } else if (word == "--only") {
      arguments.selection.parts = read_parts(value);
    } else if (word == "--name") {
      arguments.selection.name = value;
    } else {
      USER_CHECK(word == "--device", "[{}] is not an option of weft_device_check: wanted {}", word, kOptions);
      arguments.device = read_device(value);
    }
  }
  return arguments;
}

int run(const Arguments& arguments, std::ostream& out) {
  std::vector<RecordedLaunch> launches;
  std::string problem;
  std::vector<Phase> opening;
  Target target = run_phase(opening, "reading and opening", [&] {
    try {
      launches = unpack_launches(MappedFile(arguments.launches).bytes());
    } catch (const UserError& error) {
      problem = error.what();
    }
    return arguments.is_fake ? Target::fake(1) : Target::gpu(arguments.device);
  });
  Report report = check_device(target, launches, problem, arguments.selection);
  report.phases.insert(report.phases.begin(), opening.begin(), opening.end());
  const std::string table = table_text(report);
  write_then_rename(arguments.json, json_text(report));
  write_then_rename(arguments.table, table);
  out << table;
  return is_good(report) ? 0 : 1;
}

}  // namespace

int run_program(const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  try {
    return run(read_arguments(words), out);
  } catch (const Error& error) {
    err << "weft_device_check: " << error.what() << "\n";
    return error.exit_code();
  }
}

}  // namespace weft::device_check
