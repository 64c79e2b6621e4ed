#include "common/runner_protocol/record_parser.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace assay::record {
namespace {

template <typename T>
T Expect(std::string_view line) {
  const ParseResult parsed = ParseRecordLine(line);
  EXPECT_EQ(parsed.error, "");
  if (!parsed.record || !std::holds_alternative<T>(*parsed.record)) {
    ADD_FAILURE() << "another kind of record: " << line;
    return T();
  }
  return std::get<T>(*parsed.record);
}

std::string ErrorOf(std::string_view line) {
  const ParseResult parsed = ParseRecordLine(line);
  EXPECT_FALSE(parsed.record.has_value()) << line.substr(0, 100);
  EXPECT_NE(parsed.error, "");
  EXPECT_LT(parsed.error.size(), 300u);
  for (const char c : parsed.error) EXPECT_TRUE(c >= 0x20 && c < 0x7F);
  return parsed.error;
}

TEST(RecordParser, ReadsHello) {
  const auto hello = Expect<Hello>(
      R"({"record":"hello","protocol":1,"runner":"assay-train","version":"0.1.0","pid":42,)"
      R"("uuid":"GPU-1"})");
  EXPECT_EQ(hello.protocol, 1);
  EXPECT_EQ(hello.runner, "assay-train");
  EXPECT_EQ(hello.version, "0.1.0");
  EXPECT_EQ(hello.pid, 42);
  EXPECT_EQ(hello.uuid, "GPU-1");
}

TEST(RecordParser, ReadsJoinedAndPhase) {
  Expect<Joined>(R"({"record":"joined"})");
  EXPECT_EQ(Expect<Phase>(R"({"record":"phase","phase":"warmup"})").phase, "warmup");
}

TEST(RecordParser, ReadsProgress) {
  const auto progress =
      Expect<Progress>(R"({"record":"progress","step":12,"throughput":812.5,"seconds_left":4})");
  EXPECT_EQ(progress.step, 12);
  EXPECT_EQ(progress.throughput, 812.5);
  EXPECT_EQ(progress.seconds_left, 4.0);
}

TEST(RecordParser, ProgressMayLackItsFigures) {
  const auto progress = Expect<Progress>(R"({"record":"progress","step":0,"throughput":null})");
  EXPECT_FALSE(progress.throughput.has_value());
  EXPECT_FALSE(progress.seconds_left.has_value());
}

TEST(RecordParser, ReadsAResultWithItsTypesAndWithoutNulls) {
  const auto result =
      Expect<Result>(R"({"record":"result","outcome":"ok","reason":"","message":"","fields":)"
                     R"({"throughput":812.5,"steps":100,"unit":"img/s","allow_tf32_cudnn":false,)"
                     R"("loss_scale":null,"marks":["a;b","c"],"none":[]}})");
  EXPECT_EQ(result.outcome, "ok");
  const std::vector<std::pair<std::string, FieldValue>> wanted = {
      {"throughput", 812.5},       {"steps", int64_t{100}},         {"unit", std::string("img/s")},
      {"allow_tf32_cudnn", false}, {"marks", std::string("a,b;c")}, {"none", std::string()}};
  EXPECT_EQ(result.fields, wanted);
}

TEST(RecordParser, SkipsWhatANewerRunnerAdds) {
  Expect<Joined>(R"({"record":"joined","extra":{"fields":{"a":[]}},"more":[1,2,{}]})");
}

TEST(RecordParser, AFieldOfAnotherObjectIsNoField) {
  const auto result = Expect<Result>(
      R"({"record":"result","outcome":"ok","x":{"throughput":1},"fields":{"steps":2}})");
  ASSERT_EQ(result.fields.size(), 1u);
  EXPECT_EQ(result.fields[0].first, "steps");
}

TEST(RecordParser, RefusesWhatIsNoRecord) {
  for (const char* line :
       {"", " ", "hello", "3", "\"text\"", "null", "[]", "[{\"record\":\"joined\"}]", "{}",
        "{\"record\":\"joined\"", "{\"record\":\"joined\"}{}", "{\"record\":\"joined\"} x",
        "{\"record\":1}", "{\"record\":null}", "{\"record\":\"dance\"}", "{record:\"joined\"}",
        "{'record':'joined'}", "{\"record\":\"joined\",}", "\xEF\xBB\xBF"}) {
    ErrorOf(line);
  }
}

TEST(RecordParser, RefusesWrongTypesAndNamesTheKey) {
  EXPECT_NE(ErrorOf(R"({"record":"progress","step":"12"})").find("'step'"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"record":"progress","step":1.5})").find("'step'"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"record":"progress"})").find("'step'"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"record":"phase","phase":"lunch"})").find("'phase'"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"record":"hello","protocol":true,"runner":"x"})").find("'protocol'"),
            std::string::npos);
}

TEST(RecordParser, ARunnerCannotDecideAnOutcomeOfTheCoordinator) {
  EXPECT_NE(ErrorOf(R"({"record":"result","outcome":"lost"})").find("'outcome'"),
            std::string::npos);
}

TEST(RecordParser, RefusesFieldsThatAreNoFields) {
  for (const char* fields : {"[1]", "3", "\"x\"", "{\"a\":{}}", "{\"a\":[1]}", "{\"a\":[[]]}",
                             "{\"a\":[{}]}", "{\"a\":1,\"a\":2}"}) {
    ErrorOf(std::string(R"({"record":"result","outcome":"ok","fields":)") + fields + "}");
  }
}

TEST(RecordParser, RefusesTheSameKeyTwice) {
  EXPECT_NE(ErrorOf(R"({"record":"joined","record":"joined"})").find("twice"), std::string::npos);
}

// Case 53: NaN and broken bytes.
TEST(RecordParser, RefusesNumbersThatAreNone) {
  for (const char* number : {"NaN", "Infinity", "-inf", "1e999", "0x10", "064", "1.", "+1"}) {
    ErrorOf(std::string(R"({"record":"progress","step":1,"throughput":)") + number + "}");
  }
}

TEST(RecordParser, RefusesBytesThatAreNotUtf8) {
  ErrorOf("{\"record\":\"result\",\"outcome\":\"ok\",\"message\":\"\xFF\"}");
  ErrorOf("{\"record\":\"result\",\"outcome\":\"ok\",\"message\":\"\xE2\x80\"}");
  ErrorOf(std::string_view("{\"record\":\"joined\"}\0", 20));
}

TEST(RecordParser, AnIntegerBeyond64BitsIsANumber) {
  const auto result =
      Expect<Result>(R"({"record":"result","outcome":"ok","fields":{"a":18446744073709551615}})");
  EXPECT_EQ(std::get<double>(result.fields.at(0).second), 18446744073709551615.0);
}

TEST(RecordParser, RefusesALineOfOverAMebibyte) {
  const std::string head = R"({"record":"result","outcome":"fail","message":")";
  const std::string fits = head + std::string(kMaxLineBytes - head.size() - 2, 'x') + "\"}";
  ASSERT_EQ(fits.size(), static_cast<size_t>(kMaxLineBytes));
  Expect<Result>(fits);
  EXPECT_NE(ErrorOf(fits + " ").find("1 MiB"), std::string::npos);
}

TEST(RecordParser, DeepNestingDoesNotReachTheStack) {
  std::string arrays = R"({"record":"joined","x":)";
  std::string objects = arrays;
  while (arrays.size() < 1000000) arrays += '[';
  while (objects.size() < 1000000) objects += "{\"a\":";
  ErrorOf(arrays);
  ErrorOf(objects);
  ErrorOf(std::string(1000000, '['));
}

TEST(RecordParser, RefusesAFloodOfFields) {
  std::string line = R"({"record":"result","outcome":"ok","fields":{)";
  for (int i = 0; i < 50000; ++i) line += "\"f" + std::to_string(i) + "\":1,";
  line += "\"z\":0}}";
  EXPECT_NE(ErrorOf(line).find("too many fields"), std::string::npos);
}

// Bounded and seeded: mutated records and noise. What matters is that every line is answered.
TEST(RecordParser, AnswersAnyBytes) {
  const std::vector<std::string> seeds = {
      R"({"record":"hello","protocol":1,"runner":"assay-train","version":"0.1.0","pid":1})",
      R"({"record":"progress","step":12,"throughput":812.5,"seconds_left":4.0})",
      R"({"record":"result","outcome":"ok","fields":{"throughput":1e5,"l":["a"],"f":true}})"};
  constexpr char kBytes[] = "{}[]\",:\\0123456789.eE+-ntfuNaI \xFF\xE2\x80\x00\x1F";
  std::mt19937 random(20260101);
  const int lines = ASSAY_SANITIZED ? 5000 : 30000;
  int read = 0;
  for (int i = 0; i < lines; ++i) {
    std::string line = seeds[random() % seeds.size()];
    const int changes = static_cast<int>(random() % 5);
    for (int change = 0; change < changes && !line.empty(); ++change) {
      const size_t at = random() % line.size();
      const char byte = kBytes[random() % (sizeof(kBytes) - 1)];
      switch (random() % 4) {
        case 0:
          line[at] = byte;
          break;
        case 1:
          line.insert(at, 1 + random() % 3, byte);
          break;
        case 2:
          line.erase(at, 1 + random() % 4);
          break;
        default:
          line += line.substr(at, random() % 40);
      }
    }
    const ParseResult parsed = ParseRecordLine(line);
    ASSERT_NE(parsed.record.has_value(), !parsed.error.empty()) << line;
    read += parsed.record.has_value() ? 1 : 0;
  }
  EXPECT_GT(read, lines / 5);      // those without a change at least
  EXPECT_LT(read, lines * 5 / 6);  // and the changes do break records
}

}  // namespace
}  // namespace assay::record
