#pragma once

// A small model for artifacts of weft compile, which tests run, unpack and repack with changes.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/zip_archive.h"
#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft {

class ArtifactCase : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;
  using Members = std::vector<std::pair<std::string, std::string>>;

  static SampleCheckpoint sample() { return SampleCheckpoint(make_model_registry().find("llama", "test")); }
  // Everything here runs with one thread, as on a host with one core.
  static ProgramRun weft(Words words, const std::map<std::string, std::string>& environment = {}) {
    words.insert(words.end(), {"-t", "1"});
    return run_weft(words, "ab\n", environment);
  }
  std::string compile(const std::string& name, const Words& more = {}) const {
    Words words{"compile", model_, "-o", folder_ / name};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun run = weft(words);
    EXPECT_EQ(run.status, 0) << run.err;
    return folder_ / name;
  }
  static ProgramRun complete(const std::string& model, const Words& more = {}) {
    Words words{"complete", model, "-p", "abc", "-n", "8", "--ignore-eos"};
    words.insert(words.end(), more.begin(), more.end());
    return weft(words);
  }
  static std::string text_of(const ProgramRun& run) {
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_FALSE(run.out.empty());
    return run.out;
  }
  static void expect_refused(const ProgramRun& run, const std::string& part) {
    EXPECT_EQ(breach_of_refusal(run, part), "") << part;
  }

  static Members members_of(const std::string& path) {
    const ZipReader archive(path);
    const Words names = archive.names();
    Members members;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::vector<std::byte> bytes = archive.read(i, 1 << 26);
      members.emplace_back(names[i], std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
    return members;
  }
  std::string write_members(const Members& members) const {
    ZipWriter archive(folder_ / "changed.weft");
    for (const auto& [name, text] : members) archive.add(name, std::as_bytes(std::span(text)));
    archive.write();
    return folder_ / "changed.weft";
  }
  // Writes the archive as a knowledgeable author would: with a manifest of these members.
  std::string write_listed(Members members) const {
    auto manifest = nlohmann::ordered_json::parse(members[0].second);
    manifest["members"] = nlohmann::ordered_json::array();
    for (std::size_t i = 1; i < members.size(); ++i) {
      const auto& [name, text] = members[i];
      manifest["members"].push_back({{"name", name}, {"bytes", text.size()}, {"xxh3_128", hash_bytes(text).hex()}});
    }
    members[0].second = manifest.dump();
    return write_members(members);
  }
  // The artifact with one value of its manifest set to another.
  std::string with(const std::string& path, const std::string& pointer, const nlohmann::json& value) const {
    Members members = members_of(path);
    auto manifest = nlohmann::ordered_json::parse(members[0].second);
    const nlohmann::ordered_json::json_pointer place(pointer);
    EXPECT_TRUE(manifest.contains(place)) << pointer;
    manifest[place] = value;
    members[0].second = manifest.dump();
    return write_members(members);
  }

  TemporaryFolder folder_;
  const std::string model_ = sample().write_gguf(folder_, "m.gguf", DType::q4_1);
};

}  // namespace weft
