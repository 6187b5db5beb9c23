#include "config/trace_source.hpp"

#include <gmock/gmock.h>

#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::error_of;

std::string error_loading(const std::string& spec) {
  return error_of([&] { static_cast<void>(load_trace(spec, std::nullopt)); });
}

TEST(TraceSource, NamesTheBuiltInTrace) {
  EXPECT_EQ(load_trace("elastic", std::nullopt).end(), TraceEnd::cycle);
  EXPECT_EQ(load_trace("elastic", TraceEnd::stop).end(), TraceEnd::stop);
  EXPECT_EQ(load_trace("elastic", TraceEnd::stop).steps(), Trace::elastic().steps());
  EXPECT_EQ(trace_file("elastic"), std::nullopt);
}

TEST(TraceSource, TakesANumberForAConstant) {
  const Trace trace = load_trace("128", TraceEnd::error);
  EXPECT_EQ(trace.source(), "constant 128");
  EXPECT_TRUE(trace.endless());
  EXPECT_EQ(trace_file("128"), std::nullopt);
}

TEST(TraceSource, ReadsAFile) {
  const test::TempFolder folder;
  const std::string file = folder.write("128.csv", "step,batchsize\n0,32\n");
  EXPECT_EQ(load_trace(file, std::nullopt).end(), TraceEnd::error);
  EXPECT_EQ(load_trace(file, TraceEnd::hold).end(), TraceEnd::hold);
  EXPECT_EQ(load_trace(file, std::nullopt).source(), file);
  EXPECT_EQ(trace_file(file), file);
}

TEST(TraceSource, RejectsNumbersThatAreNoBatchSize) {
  const std::string accepted =
      "; accepted: a whole number from 1 to 1099511627776, a CSV file or elastic";
  EXPECT_EQ(error_loading("0"), "--trace: '0' is out of range" + accepted);
  EXPECT_EQ(error_loading("-32"), "--trace: '-32' is out of range" + accepted);
  EXPECT_EQ(error_loading("32.5"), "--trace: '32.5' is no whole number" + accepted);
}

TEST(TraceSource, RejectsWhatLeadsNowhere) {
  const std::string accepted =
      "accepted: a CSV file with the header 'step,batchsize[,cores]', a batch size or elastic";
  EXPECT_EQ(error_loading("elastik"),
            "--trace: no such file as 'elastik'; did you mean 'elastic'? " + accepted);
  EXPECT_EQ(error_loading("none.csv"), "--trace: no such file as 'none.csv'; " + accepted);
  EXPECT_EQ(error_loading(""), "--trace: no such file as ''; " + accepted);
}

}  // namespace
}  // namespace rubato
