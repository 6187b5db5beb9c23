#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include <rubato/steps/trace.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"
#include "trace/csv_error.hpp"

namespace rubato {
namespace {

using test::error_in;

TEST(Csv, ReadsBatchSizes) {
  const Trace trace = Trace::parse_csv("step,batchsize\n0,128\n1,64\n", "t.csv");
  EXPECT_EQ(trace.steps(), (std::vector<TraceStep>{{128, std::nullopt}, {64, std::nullopt}}));
  EXPECT_EQ(trace.end(), TraceEnd::error);
  EXPECT_EQ(trace.source(), "t.csv");
}

TEST(Csv, ReadsCores) {
  const Trace trace = Trace::parse_csv("step,batchsize,cores\n0,128,4\n1,64,\n2,64,2", "t.csv");
  EXPECT_EQ(trace.steps(), (std::vector<TraceStep>{{128, 4}, {64, std::nullopt}, {64, 2}}));
}

TEST(Csv, ReadsTheCoresOfHosts) {
  constexpr std::string_view kText = "step,batchsize,cores\n0,128,4+2+2\n1,64,0+3\n2,64,2\n3,64,\n";
  const Trace trace = Trace::parse_csv(kText, "t.csv");
  EXPECT_EQ(trace.steps(), (std::vector<TraceStep>{
                               {128, 8, {4, 2, 2}}, {64, 3, {0, 3}}, {64, 2}, {64, std::nullopt}}));
  EXPECT_EQ(trace.to_csv(), kText);
  // Quoted by a spreadsheet, and of floating-point numbers.
  EXPECT_EQ(Trace::parse_csv("step,batchsize,cores\n0,128,\"4.0+2.0\"\n", "t.csv").steps(),
            (std::vector<TraceStep>{{128, 6, {4, 2}}}));
}

TEST(Csv, RejectsCoresThatAreNotThoseOfHosts) {
  for (const std::string cores : {"4+", "+4", "4++2", "4+-2", "4+x", "0+0", "4+2.5", "4 + 2",
                                  "1048576+1", "9999999999999999999+1"}) {
    EXPECT_EQ(
        error_in("step,batchsize,cores\n0,32," + cores + "\n"),
        "t.csv:2: cores '" + cores +
            "' are not one number for each host; accepted: whole numbers with a sum from 1 to "
            "1048576, such as 4+2+2");
  }
}

TEST(Csv, AcceptsTheLargestValues) {
  const Trace trace = Trace::parse_csv("step,batchsize,cores\n0,1099511627776,1048576\n", "t.csv");
  EXPECT_EQ(trace.steps().front(), (TraceStep{kMaxBatchSize, kMaxCores}));
}

TEST(Csv, RejectsAnEmptyFile) {
  for (const std::string_view text : {"", "\n\n", "\xEF\xBB\xBF", " \r\n"}) {
    EXPECT_EQ(error_in(text),
              "t.csv: the file is empty; accepted: the header 'step,batchsize' or "
              "'step,batchsize,cores', and a row for each step");
  }
}

TEST(Csv, RejectsAnotherHeader) {
  const std::string accepted = "; accepted: 'step,batchsize' or 'step,batchsize,cores'";
  EXPECT_EQ(error_in("0,128\n1,64\n"), "t.csv:1: the header is missing" + accepted);
  EXPECT_EQ(error_in(",Time,GPUs\n0,1.5,4\n"),
            "t.csv:1: ',Time,GPUs' is not the header of a trace" + accepted);
  EXPECT_EQ(error_in("step,batchsize,core\n0,128,4\n"),
            "t.csv:1: 'step,batchsize,core' is not the header of a trace" + accepted);
  EXPECT_EQ(error_in("\nstep,batchsize\n0,128\n"),
            "t.csv:1: '' is not the header of a trace" + accepted);
}

TEST(Csv, ShowsOnlyTheBeginningOfAStrangeLine) {
  const std::string message = error_in(std::string(100'000, 'x') + "\x1B[31m");
  EXPECT_THAT(message, HasSubstr("'" + std::string(40, 'x') + "...' is not the header"));
  EXPECT_EQ(error_in("a\x1B"
                     "b\n"),
            "t.csv:1: 'a?b' is not the header of a trace; accepted: 'step,batchsize' or "
            "'step,batchsize,cores'");
}

TEST(Csv, RejectsAHeaderAlone) {
  EXPECT_EQ(error_in("step,batchsize\n\n"),
            "t.csv:1: no rows follow the header; accepted: a row for each step, such as '0,128'");
}

TEST(Csv, RejectsWhatIsNoSize) {
  const std::string accepted = "; accepted: a whole number from 1 to 1099511627776";
  const auto error_with = [](std::string_view size) {
    return error_in("step,batchsize\n0,32\n1," + std::string(size) + "\n2,32\n");
  };
  EXPECT_EQ(error_with("abc"), "t.csv:3: batch size 'abc' is not a number" + accepted);
  EXPECT_EQ(error_with("64x"), "t.csv:3: batch size '64x' is not a number" + accepted);
  EXPECT_EQ(error_with("-64"), "t.csv:3: batch size '-64' is negative" + accepted);
  EXPECT_EQ(error_with("0"), "t.csv:3: batch size '0' is zero" + accepted);
  EXPECT_EQ(error_with("64.5"), "t.csv:3: batch size '64.5' is not a whole number" + accepted);
  EXPECT_EQ(error_with("1e3"), "t.csv:3: batch size '1e3' is not a whole number" + accepted);
  EXPECT_EQ(error_with("1099511627777"),
            "t.csv:3: batch size '1099511627777' is too large" + accepted);
  EXPECT_EQ(error_with("99999999999999999999"),
            "t.csv:3: batch size '99999999999999999999' is too large" + accepted);
  EXPECT_EQ(error_with("-99999999999999999999"),
            "t.csv:3: batch size '-99999999999999999999' is negative" + accepted);
  EXPECT_EQ(error_with(""), "t.csv:3: batch size '' is empty" + accepted);
  EXPECT_EQ(error_with("6 4"), "t.csv:3: batch size '6 4' is not a number" + accepted);
  EXPECT_EQ(error_with("nan"), "t.csv:3: batch size 'nan' is not a whole number" + accepted);
}

TEST(Csv, RejectsWhatIsNoNumberOfCores) {
  EXPECT_EQ(error_in("step,batchsize,cores\n0,32,0\n"),
            "t.csv:2: cores '0' is zero; accepted: a whole number from 1 to 1048576");
  EXPECT_EQ(error_in("step,batchsize,cores\n0,32,1048577\n"),
            "t.csv:2: cores '1048577' is too large; accepted: a whole number from 1 to 1048576");
}

TEST(Csv, RejectsStepsOutOfOrder) {
  const std::string appended = ", or 0 where another trace is appended";
  EXPECT_EQ(error_in("step,batchsize\n1,32\n"),
            "t.csv:2: step 1 stands where step 0 is missing; accepted: step 0");
  EXPECT_EQ(error_in("step,batchsize\n0,32\n0,32\n"),
            "t.csv:3: step 0 stands here again; accepted: step 1");
  EXPECT_EQ(error_in("step,batchsize\n0,32\n1,32\n1,32\n"),
            "t.csv:4: step 1 stands here again; accepted: step 2" + appended);
  EXPECT_EQ(error_in("step,batchsize\n0,32\n1,32\n3,32\n"),
            "t.csv:4: step 3 stands where step 2 is missing; accepted: step 2" + appended);
  for (const std::string_view step : {"x", "", "-1", "1.5", "99999999999999999999"}) {
    EXPECT_EQ(error_in("step,batchsize\n0,32\n" + std::string(step) + ",32\n"),
              "t.csv:3: '" + std::string(step) + "' is not a step; accepted: step 1");
  }
}

TEST(Csv, AppendsATraceThatCountsFromZeroAgain) {
  const Trace trace =
      Trace::parse_csv("step,batchsize\n0,32\n1,64\n0,96\n1,128\n2,160\n0,192\n", "t.csv");
  EXPECT_EQ(trace.length(), 6);
  EXPECT_EQ(trace.at(StepIndex{5})->batch_size, 192);
  EXPECT_EQ(trace.where(StepIndex{5}), "t.csv:7");
  EXPECT_EQ(error_in("step,batchsize\n0,32\n1,64\n0,96\n0,96\n"),
            "t.csv:5: step 0 stands here again; accepted: step 1");
  EXPECT_EQ(error_in("step,batchsize\n0,32\n1,64\n0,96\n2,96\n"),
            "t.csv:5: step 2 stands where step 1 is missing; accepted: step 1");
}

TEST(Csv, RejectsAnotherNumberOfFields) {
  EXPECT_EQ(error_in("step,batchsize\n0,32,4\n"),
            "t.csv:2: 3 fields in '0,32,4'; accepted: 2, as the header says (step,batchsize)");
  EXPECT_EQ(error_in("step,batchsize,cores\n0,32\n"),
            "t.csv:2: 2 fields in '0,32'; accepted: 3, as the header says (step,batchsize,cores)");
  EXPECT_EQ(error_in("step,batchsize\n0\n"),
            "t.csv:2: 1 field in '0'; accepted: 2, as the header says (step,batchsize)");
  EXPECT_THAT(error_in("step,batchsize\n" + std::string(1000, ',') + "7"),
              HasSubstr(":2: 1001 fields in"));
}

TEST(Csv, RejectsABlankLineInTheMiddle) {
  EXPECT_EQ(error_in("step,batchsize\n0,32\n\n1,32\n"),
            "t.csv:3: a blank line before the end of the trace; accepted: the row of step 1");
  EXPECT_EQ(error_in("step,batchsize\r\n\r\n0,32\r\n"),
            "t.csv:2: a blank line before the end of the trace; accepted: the row of step 0");
}

TEST(Csv, WritesWhatItReads) {
  for (const std::string_view text :
       {"step,batchsize\n0,128\n1,64\n", "step,batchsize,cores\n0,128,4\n1,64,\n2,1,1048576\n"}) {
    EXPECT_EQ(Trace::parse_csv(text, "t.csv").to_csv(), text);
  }
  const Trace elastic = Trace::elastic();
  EXPECT_EQ(Trace::parse_csv(elastic.to_csv(), "t.csv").steps(), elastic.steps());
}

class CsvFile : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path write(std::string_view text) const {
    return folder_.write("trace.csv", text);
  }
  [[nodiscard]] static std::string error_reading(const std::filesystem::path& path) {
    return error_of([&] { return Trace::read_csv(path); });
  }

  const test::TempFolder folder_;
};

TEST_F(CsvFile, IsReadAndNamed) {
  const auto path = write("step,batchsize\n0,128\n");
  const Trace trace = Trace::read_csv(path, TraceEnd::hold);
  EXPECT_EQ(trace.steps().size(), 1U);
  EXPECT_EQ(trace.end(), TraceEnd::hold);
  EXPECT_EQ(trace.where(StepIndex{0}), path.string() + ":2");
}

TEST_F(CsvFile, ThatIsWrongIsNamedWithItsLine) {
  const auto path = write("step,batchsize\n0,128\n1,x\n");
  EXPECT_THAT(error_reading(path), HasSubstr(path.string() + ":3: batch size 'x' is not a number"));
}

TEST_F(CsvFile, ThatIsMissingOrNoFile) {
  const std::string accepted =
      "; accepted: a CSV file with the header 'step,batchsize' or 'step,batchsize,cores'";
  const auto missing = folder_.path() / "none.csv";
  EXPECT_EQ(error_reading(missing),
            "cannot read the trace " + missing.string() + ": no such file" + accepted);
  EXPECT_EQ(error_reading(folder_.path()),
            "cannot read the trace " + folder_.path().string() + ": it is a folder" + accepted);
  EXPECT_EQ(error_reading("/dev/zero"),
            "cannot read the trace /dev/zero: it is not a file" + accepted);
  EXPECT_THAT(error_reading(missing / "below" / std::string(300, 'x')),
              HasSubstr("cannot read the trace"));
}

TEST_F(CsvFile, ThatMayNotBeRead) {
  const auto path = write("step,batchsize\n0,128\n");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  if (std::ifstream(path)) GTEST_SKIP() << "this user may read everything";
  EXPECT_THAT(error_reading(path), HasSubstr("Permission denied"));
}

TEST(CsvReference, ReadsTheOriginalsTrace) {
  const std::filesystem::path path = RUBATO_SHARED_DIR "/data/traces/test_trace.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const Trace trace = Trace::read_csv(path);
  EXPECT_EQ(trace.length(), 810);  // steps 0 to 9, and then 0 to 799
  EXPECT_EQ(trace.steps().front().batch_size, 128);
  EXPECT_EQ(trace.steps().back().batch_size, 2048);
}

}  // namespace
}  // namespace rubato
