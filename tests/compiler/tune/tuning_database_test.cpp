// The content of a database of times, and files that are no such database.

#include "compiler/tune/tuning_database.h"

#include <gtest/gtest.h>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/files.h"
#include "ir/op.h"
#include "tests/base/temporary_folder.h"

namespace weft::tuning_database_test {

using Rounds = std::vector<std::int64_t>;

const Fingerprint kHere{
    .cpu = "A \"quoted\" processor", .host = "avx2", .features = "avx2", .threads = 2, .versions = {{"weft", "1.2.3"}}};

TunedTime time(const std::string& provider, std::vector<Rounds> nanoseconds, const std::string& packing = "") {
  return {.provider = provider, .packing = packing, .nanoseconds = std::move(nanoseconds)};
}

// linear over [rows, 64] and a weight [columns, 64].
TuningEntry linear_entry(std::int64_t columns, TokenRange range, std::vector<TunedTime> times,
                         std::int64_t measured = 100) {
  TuningEntry entry;
  entry.op = "linear";
  entry.call.operands = {Meta::tensor(DType::f32, {Dim::symbol("s0"), 64}), Meta::tensor(DType::f32, {columns, 64}),
                         std::nullopt};
  entry.call.range = range;
  entry.weight = 1;
  entry.rows = {range.lo, range.hi};
  entry.measured = measured;
  entry.standard = times[0].provider;
  entry.times = std::move(times);
  return entry;
}

TuningEntry norm_entry() {
  TuningEntry entry;
  entry.op = "rms_norm";
  entry.call.operands = {Meta::tensor(DType::bf16, {Dim::symbol("s0"), 64}), Meta::tensor(DType::bf16, {64})};
  entry.call.attributes = {{"epsilon", 1e-5}, {"variance_size", Attribute()}};
  entry.call.range = {1, 1};
  entry.rows = {1};
  entry.standard = "cpu";
  entry.times = {time("cpu", {{30, 31, 32}}), time("mine", {{10, 10, 10}})};
  return entry;
}

TuningDatabase sample() {
  TuningDatabase database{.fingerprint = kHere, .entries = {}};
  database.add(linear_entry(
      48, {1, 8},
      {time("cpu", {{100, 90, 95}, {700, 720, 730}}, "f32x32"), time("blas", {{50, 51, 52}, {90, 91, 99}})}));
  database.add(norm_entry());
  return database;
}

std::string refusal(const std::string& text) {
  try {
    parse_tuning(text, "t.jsonl");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

// Line `number`, from 0, changed and given the hash that fits.
std::string resealed(const std::string& text, std::size_t number, const std::string& from, const std::string& to) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < number; ++i) begin = text.find('\n', begin) + 1;
  const std::size_t end = text.find('\n', begin), check = text.rfind(",\"check\":", end);
  std::string line = text.substr(begin, check - begin);
  const std::size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << line;
  line.replace(at, from.size(), to);
  return text.substr(0, begin) + line + ",\"check\":\"" + hash_bytes(line).hex() + "\"}" + text.substr(end);
}

TEST(TuningDatabase, ReadsWhatItWrote) {
  const std::string text = sample().text();
  const TuningDatabase read = parse_tuning(text, "t");
  EXPECT_EQ(read.text(), text);
  EXPECT_EQ(read.fingerprint, kHere);
  ASSERT_EQ(read.entries.size(), 2u);
  const TuningEntry& norm = read.entries.at(norm_entry().key());
  EXPECT_EQ(norm.call.operands, norm_entry().call.operands);
  EXPECT_EQ(norm.call.attributes, norm_entry().call.attributes);
  EXPECT_EQ(norm.times[1].nanoseconds[0], (Rounds{10, 10, 10}));
  EXPECT_EQ(TuningDatabase{.fingerprint = kHere}.text(),
            parse_tuning(TuningDatabase{.fingerprint = kHere}.text(), "t").text());
}

TEST(TuningDatabase, RefusesTextThatWasCutShortAnywhere) {
  const std::string text = sample().text();
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_NE(refusal(text.substr(0, size)), "accepted") << size;
}

TEST(TuningDatabase, RefusesTextInWhichAnyByteIsChanged) {
  const std::string text = sample().text();
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const char flip : {'\x01', '\x20', '\x80'}) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      EXPECT_NE(refusal(changed), "accepted") << i << " " << changed;
    }
}

TEST(TuningDatabase, SaysWhatIsWrongAndWhere) {
  const std::string text = sample().text();
  EXPECT_NE(refusal("").find("t.jsonl"), std::string::npos);
  EXPECT_NE(refusal("{}\n").find("[t.jsonl:1] is not a line that weft tune wrote"), std::string::npos);
  EXPECT_NE(refusal(resealed(text, 0, "\"weft_tuning\":1", "\"weft_tuning\":2")).find("of version 2"),
            std::string::npos);
  EXPECT_NE(refusal(resealed(text, 0, "\"entries\":2", "\"entries\":3")).find("wanted 3 entries, but has 2"),
            std::string::npos);
  std::string edited = text;
  edited.replace(edited.find("[50,51"), 6, "[10,51");
  EXPECT_NE(refusal(edited).find("[t.jsonl:2] is not a line"), std::string::npos) << refusal(edited);
}

TEST(TuningDatabase, RefusesNonsenseThatBearsTheRightHash) {
  const std::string text = sample().text();
  const std::vector<std::pair<std::string, std::string>> edits = {
      {"[\"blas\",\"cpu\"]", "[\"cpu\",\"blas\"]"},
      {"[50,51,52]", "[50,51]"},
      {"[50,51,52]", "[50,51,0]"},
      {"[50,51,52]", "[50,51,-2]"},
      {"[50,51,52]", "[50,51,99999999999999999999]"},
      {"[50,51,52]", "[50,51,18446744073709551615]"},
      {"[50,51,52]", "\"fast\""},
      {"\"range\":[1,8]", "\"range\":[8,1]"},
      {"\"range\":[1,8]", "\"range\":[0,8]"},
      {"\"rows\":[1,8]", "\"rows\":[]"},
      {"\"weight\":1", "\"weight\":2"},
      {"\"weight\":1", "\"weight\":3"},
      {"\"standard\":\"cpu\"", "\"standard\":\"blas\""},
      {"f32[48, 64]", "f32[48, -64]"},
      {"f32[48, 64]", "words"},
      {"\"attributes\":{}", "\"attributes\":{\"a\":\"[\"}"},
      {"\"op\":\"linear\"", "\"op\":7"},
      {"\"op\":\"linear\"", "\"po\":\"linear\""},
      {"\"op\":\"linear\"", std::string(100'000, '[')},
  };
  for (const auto& [from, to] : edits) {
    const std::string message = refusal(resealed(text, 1, from, to));
    EXPECT_NE(message.find("[t.jsonl:2]"), std::string::npos) << from << " to " << to.substr(0, 40) << ": " << message;
  }
  const std::size_t second = text.find('\n') + 1, third = text.find('\n', second) + 1;
  const std::string twice = text + text.substr(second, third - second);
  EXPECT_NE(refusal(resealed(twice, 0, "\"entries\":2", "\"entries\":3")).find("is there twice"), std::string::npos);
}

TEST(TuningDatabase, IsRefusedOnAnotherMachine) {
  const TemporaryFolder folder;
  write_then_rename(folder / "t.jsonl", sample().text());
  EXPECT_NO_THROW(read_tuning(folder / "t.jsonl", kHere));
  std::vector<Fingerprint> others(5, kHere);
  others[0].cpu = "Another";
  others[1].host = "vnni";
  others[2].features = "baseline";
  others[3].threads = 4;
  others[4].versions["blas"] = "0.3";
  for (const Fingerprint& other : others) EXPECT_THROW(read_tuning(folder / "t.jsonl", other), UserError);
  EXPECT_THROW(read_tuning(folder / "none", kHere), UserError);
}

TEST(TuningDatabase, MergesToTheNewerMeasurementFromEitherSide) {
  const std::vector<Rounds> slow{{100, 100, 100}, {100, 100, 100}}, fast{{10, 10, 10}, {10, 10, 10}};
  TuningDatabase older{.fingerprint = kHere}, newer{.fingerprint = kHere}, same_age{.fingerprint = kHere};
  older.add(linear_entry(48, {1, 8}, {time("cpu", slow), time("blas", fast)}, 100));
  older.add(norm_entry());
  newer.add(linear_entry(48, {1, 8}, {time("cpu", slow), time("blas", slow)}, 101));
  same_age.add(linear_entry(48, {1, 8}, {time("cpu", fast), time("blas", slow)}, 100));
  const TuningDatabase merged = merge_tuning(older, newer);
  EXPECT_EQ(merged.entries.size(), 2u);
  EXPECT_EQ(merged.entries.begin()->second.measured, 101);
  EXPECT_EQ(merged.text(), merge_tuning(newer, older).text());
  EXPECT_EQ(merge_tuning(older, same_age).text(), merge_tuning(same_age, older).text());
  EXPECT_EQ(merge_tuning(older, older).text(), older.text());
  newer.fingerprint.threads = 7;
  EXPECT_THROW(merge_tuning(older, newer), UserError);
}

TEST(TunedOrder, TakesAProviderThatIsTenPercentFasterInEveryRoundAtEverySize) {
  const auto order = [](std::vector<Rounds> blas) {
    return tuned_order("cpu", {time("cpu", {{110, 110, 110}, {1100, 1100, 1100}}), time("blas", std::move(blas))});
  };
  const std::vector<std::string> standard{"cpu"}, other{"blas", "cpu"};
  EXPECT_EQ(order({{100, 100, 100}, {1000, 1000, 1000}}), other);
  EXPECT_EQ(order({{100, 101, 100}, {1000, 1000, 1000}}), standard) << "one round";
  EXPECT_EQ(order({{100, 100, 100}, {1000, 1000, 1001}}), standard) << "one size";
  EXPECT_EQ(order({{10, 10, 10}, {1200, 1200, 1200}}), standard) << "one row only";
  EXPECT_EQ(tuned_order("cpu", {time("cpu", {{110, 110, 110}}), time("a", {{50, 90, 50}}), time("b", {{40, 40, 95}})}),
            (std::vector<std::string>{"b", "cpu"}))
      << "the faster median";
}

std::map<std::string, std::string> providers(const TuningDatabase& database) {
  std::map<std::string, std::string> chosen;
  for (const auto& [key, decision] : decide(database)) chosen[key] = decision.provider;
  return chosen;
}

TEST(TuningDecisions, GiveAWeightOneLayoutInAllItsRanges) {
  const std::vector<Rounds> slow{{100, 100, 100}, {100, 100, 100}}, fast{{50, 50, 50}, {50, 50, 50}},
      faster{{40, 40, 40}, {40, 40, 40}};
  const auto entry = [&](TokenRange range, std::vector<Rounds> blas, std::vector<Rounds> packs) {
    return linear_entry(48, range, {time("cpu", slow, "f32x32"), time("blas", blas), time("packs", packs, "f32x32")});
  };
  TuningDatabase all{.fingerprint = kHere}, some{.fingerprint = kHere};
  const TuningEntry low = entry({1, 8}, fast, slow), high = entry({9, 64}, fast, slow);
  all.add(low);
  all.add(high);
  EXPECT_EQ(providers(all), (std::map<std::string, std::string>{{low.key(), "blas"}, {high.key(), "blas"}}));
  EXPECT_EQ(decide(all)[low.key()].reason, "tuned: 2.0x faster than cpu");
  some.add(low);
  some.add(entry({9, 64}, slow, slow));
  EXPECT_EQ(providers(some), (std::map<std::string, std::string>{{low.key(), "cpu"}, {high.key(), "cpu"}}));
  EXPECT_NE(decide(some)[low.key()].reason.find("one layout"), std::string::npos);
  some.add(entry({1, 8}, faster, fast));
  some.entries.at(low.key()).measured = 101;
  some.entries.at(low.key()).times[2] = time("packs", fast, "f32x32");
  EXPECT_EQ(providers(some)[low.key()], "packs") << "it takes the layout that there is";
}

TEST(TuningDecisions, SayTheTimesOfAnExactSize) {
  const TuningEntry entry =
      linear_entry(48, {8, 8}, {time("cpu", {{15'100, 15'000, 15'200}}), time("blas", {{12'300, 12'200, 12'400}})});
  TuningDatabase database{.fingerprint = kHere};
  database.add(entry);
  EXPECT_EQ(decide(database)[entry.key()].reason, "tuned: 12.3 us against 15.1 us of cpu");
}

// A fusion that generated code computes is no fusion that lost against its parts.
TEST(TuningDecisions, TellAMeaningThatIsTheDefaultOnlyWhereItLost) {
  const OpTable ops = make_op_table();
  const auto tuned = [&](const Rounds& cpu) {
    TuningEntry entry;
    entry.op = "silu_and_mul_per_token_group_quant_int8";
    entry.call.operands = {Meta::tensor(DType::f32, {Dim::symbol("s0"), 128})};
    entry.call.attributes.set("group_size", 32);
    entry.call.range = {8, 8};
    entry.rows = {8};
    entry.standard = kParts;
    entry.times = {time(kParts, {{100, 100, 100}}), time("cpu", {cpu})};
    TuningDatabase database{.fingerprint = kHere};
    database.add(std::move(entry));
    PriorityLists priorities({"cpu"});
    apply_tuning(database, ops, priorities);
    return priorities.tuned();
  };
  EXPECT_TRUE(tuned({100, 100, 100}).empty());
  EXPECT_TRUE(tuned({200, 200, 200}).empty());
  EXPECT_EQ(tuned({50, 50, 50}).at("silu_and_mul_per_token_group_quant_int8").count("cpu"), 1u);
}

TEST(TuningDecisions, KeepTheDefaultWhereEagerModeCouldNotTellTwoCallsApart) {
  const auto entry = [](const Shape& second, std::int64_t rival) {
    TuningEntry made;
    made.op = "mul";
    made.call.operands = {Meta::tensor(DType::f32, {Dim::symbol("s0"), 8}), Meta::tensor(DType::f32, second)};
    made.call.range = {1, 64};
    made.rows = {1, 64};
    made.standard = "cpu";
    made.times = {time("cpu", {{100, 100, 100}, {100, 100, 100}}),
                  time("mine", {{rival, rival, rival}, {rival, rival, rival}})};
    return made;
  };
  for (const std::int64_t count : {8, 65}) {
    TuningDatabase database{.fingerprint = kHere};
    const TuningEntry moving = entry({Dim::symbol("s0"), 8}, 10), fixed = entry({count, 8}, 100);
    database.add(moving);
    database.add(fixed);
    EXPECT_EQ(decide(database)[moving.key()].provider, count == 8 ? "cpu" : "mine") << count;
  }
}

}  // namespace weft::tuning_database_test
