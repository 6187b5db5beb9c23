// Traces as Excel, LibreOffice, pandas and people write them.

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/steps/trace.hpp>

#include "base/core/text/csv.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "trace/csv_error.hpp"

namespace rubato {
namespace {

using test::error_in;

// Batch sizes and cores, 0 where the trace does not say; or the error.
std::string read(std::string_view text) {
  std::string rows;
  const std::string error = error_of([&] {
    const Trace trace = Trace::parse_csv(text, "t.csv");
    for (const TraceStep& step : trace.steps()) {
      rows += std::to_string(step.batch_size) + "/" + std::to_string(step.cores.value_or(0)) + " ";
    }
  });
  return error == "no error" ? rows : error;
}

TEST(SpreadsheetCsv, BlanksStandAroundFields) {
  // As in the README of the original.
  EXPECT_EQ(read("step, batchsize\n0, 1024\n1, 512\n"), "1024/0 512/0 ");
  EXPECT_EQ(read(" step\t,  batchsize , cores \n 0 ,\t128 , 8\n1,64 ,  \n"), "128/8 64/0 ");
}

TEST(SpreadsheetCsv, QuotesStandAroundFields) {
  EXPECT_EQ(read("\"step\",\"batchsize\"\n\"0\",\"128\"\n\"1\",\"64\"\n"), "128/0 64/0 ");
  EXPECT_EQ(read("\"step\", \"batchsize\" , cores\n0,\" 128 \",\"\"\n1,\"64\" ,2\n"),
            "128/0 64/2 ");
}

TEST(SpreadsheetCsv, SemicolonsAndTabsSeparateWhereTheHeaderSaysSo) {
  EXPECT_EQ(read("step;batchsize;cores\n0;128;8\n1;64;\n"), "128/8 64/0 ");
  EXPECT_EQ(read("step\tbatchsize\tcores\n0\t128\t8\n1\t 64 \t\n"), "128/8 64/0 ");
  EXPECT_EQ(read("\xEF\xBB\xBFstep;batchsize\r\n0;128\r\n"), "128/0 ");
  EXPECT_EQ(read("\xEF\xBB\xBFstep,batchsize\n0,128"), "128/0 ");
  EXPECT_EQ(error_in("step;batchsize\n0,128\n"),
            "t.csv:2: 1 field in '0,128'; accepted: 2, as the header says (step;batchsize)");
  EXPECT_EQ(error_in("step\tbatchsize\n0 128\n"),
            "t.csv:2: 1 field in '0 128'; accepted: 2, as the header says (step<tab>batchsize)");
  EXPECT_THAT(error_in("step,batchsize;cores\n0,128;8\n"),
              HasSubstr("is not the header of a trace"));
}

// Of columns that once held something.
TEST(SpreadsheetCsv, EmptyColumnsMayFollow) {
  EXPECT_EQ(read("step,batchsize,,\n0,128,,\n1,64,,\n"), "128/0 64/0 ");
  EXPECT_EQ(read("step,batchsize,cores,,\n0,128,8,,\n1,64,,,\n2,32,\n"), "128/8 64/0 32/0 ");
  EXPECT_EQ(read("step,batchsize\n0,128, ,\"\"\n"), "128/0 ");
  EXPECT_EQ(error_in("step,batchsize,,\n0,128,,7\n"),
            "t.csv:2: 4 fields in '0,128,,7'; accepted: 2, as the header says (step,batchsize)");
}

// Of rows that once held something.
TEST(SpreadsheetCsv, EmptyRowsMayFollow) {
  for (const std::string_view end : {"", "\n", "\n\n\n", "\n,\n,\n", "\n,,,,\n",
                                     "\n , \n\n\"\",\"\"", "\r\n,\r\n", "\r\n\r\n \t\r\n"}) {
    EXPECT_EQ(read("step,batchsize\n0,128\n1,64" + std::string(end)), "128/0 64/0 ") << end;
  }
  // The field of cores that is empty is not mistaken for one.
  EXPECT_EQ(read("step,batchsize,cores\n0,128,\n,,\n"), "128/0 ");
  EXPECT_EQ(error_in("step,batchsize\n0,128\n,\n1,64\n"),
            "t.csv:3: a blank line before the end of the trace; accepted: the row of step 1");
  EXPECT_EQ(error_in("step,batchsize\n,,\n"),
            "t.csv:1: no rows follow the header; accepted: a row for each step, such as '0,128'");
}

TEST(SpreadsheetCsv, LinesEndAsTheyDoAnywhere) {
  EXPECT_EQ(read("step,batchsize\r0,128\r1,64\r"), "128/0 64/0 ") << "an old Macintosh";
  EXPECT_EQ(read("step,batchsize\r\r\n0,128\r\r\n1,64\r\r\n"), "128/0 64/0 ")
      << "Python on Windows, without newline=''";
  EXPECT_EQ(Trace::parse_csv("step,batchsize\r0,128\r1,64", "t.csv").where(StepIndex{1}),
            "t.csv:3");
}

TEST(SpreadsheetCsv, NamesMayBeginWithACapital) {
  EXPECT_EQ(read("Step,Batchsize,CORES\n0,128,8\n"), "128/8 ");
  EXPECT_THAT(error_in("steps,batchsize\n0,128\n"), HasSubstr("is not the header"));
}

// pandas makes floating-point numbers of a column with gaps.
TEST(SpreadsheetCsv, WholeNumbersMayEndInAPointAndOneZero) {
  EXPECT_EQ(read("step,batchsize,cores\n0,256,8.0\n1,256,\n2,96,3.0\n"), "256/8 256/0 96/3 ");
  EXPECT_EQ(read("step,batchsize\n0.0,256.0\n1.0,128.0\n"), "256/0 128/0 ");
  // A thousand to some, one to others.
  const auto error = [](std::string_view size) {
    return error_in("step,batchsize\n0," + std::string(size) + "\n");
  };
  const std::string accepted = "; accepted: a whole number from 1 to 1099511627776";
  EXPECT_EQ(error("1.000"), "t.csv:2: batch size '1.000' is not a whole number" + accepted);
  EXPECT_EQ(error("\"1,024\""), "t.csv:2: batch size '1,024' is not a number" + accepted);
  EXPECT_EQ(error("1.5"), "t.csv:2: batch size '1.5' is not a whole number" + accepted);
  EXPECT_EQ(error("0.0"), "t.csv:2: batch size '0.0' is zero" + accepted);
  EXPECT_EQ(error(".0"), "t.csv:2: batch size '.0' is not a whole number" + accepted);
  EXPECT_EQ(error("1.1E+12"), "t.csv:2: batch size '1.1E+12' is not a whole number" + accepted);
}

TEST(SpreadsheetCsv, WhatIsAmbiguousIsRefused) {
  const std::string accepted = "; accepted: 'step,batchsize' or 'step,batchsize,cores'";
  // The index of pandas: to_csv(index=False) leaves it out.
  EXPECT_EQ(error_in(",step,batchsize\n0,0,128\n"),
            "t.csv:1: ',step,batchsize' is not the header of a trace" + accepted);
  // Excel's "Unicode text".
  EXPECT_EQ(error_in(std::string_view("\xFF\xFEs\0t\0e\0p\0", 10)),
            "t.csv: it is in UTF-16; accepted: a text in UTF-8");
  EXPECT_EQ(error_in("step,batchsize\n0,\"128\n1,64\n"),
            "t.csv:2: a quote is not closed in '0,\"128'; accepted: a number in each field");
  EXPECT_EQ(error_in("step,batchsize\n0,\"128\"5\n"),
            "t.csv:2: something follows a closing quote in '0,\"128\"5'; accepted: a number in "
            "each field");
  EXPECT_EQ(error_in("step,batchsize\n0,\"1\"\"28\"\n"),
            "t.csv:2: batch size '1\"28' is not a number; accepted: a whole number from 1 to "
            "1099511627776");
  EXPECT_THAT(error_in("step,batchsize\n0,=128\n"), HasSubstr("'=128' is not a number"));
  // What a file that was cut off would have.
  EXPECT_EQ(error_in("step,batchsize,cores\n0,128,8\n1,12"),
            "t.csv:3: 2 fields in '1,12'; accepted: 3, as the header says (step,batchsize,cores)");
}

TEST(SpreadsheetCsv, IsWrittenPlainly) {
  const Trace trace = Trace::parse_csv(
      "\xEF\xBB\xBF\"Step\" ;Batchsize;cores;\r\n0; 128 ;8.0;\r\n1;64;;\r\n;;;\r\n", "t.csv");
  EXPECT_EQ(trace.to_csv(), "step,batchsize,cores\n0,128,8\n1,64,\n");
}

// Excel writes that line, and reads it.
TEST(SpreadsheetCsv, MayNameItsSeparator) {
  EXPECT_EQ(read("sep=;\nstep;batchsize\n0;256\n"), "256/0 ");
  EXPECT_EQ(read("\xEF\xBB\xBF\"SEP=,\"\r\nstep,batchsize\r\n0,256\r\n"), "256/0 ");
  EXPECT_THAT(error_in("sep=;\nstep;batchsize\n0;x\n"), HasSubstr("t.csv:3: batch size 'x'"));
  EXPECT_THAT(error_in("sep=x\nstep;batchsize\n0;1\n"), HasSubstr("'sep=x' is not the header"));
}

TEST(SplitCsv, MakesOneQuoteOfTwo) {
  detail::CsvFields fields;
  detail::split_csv(R"("r""d", """", "say ""hi""" ,"")", ',', fields);
  EXPECT_EQ(fields.flaw, "");
  EXPECT_THAT(fields.fields, ElementsAre("r\"d", "\"", "say \"hi\"", ""));
  // What is moved keeps its texts.
  const detail::CsvFields moved = std::move(fields);
  EXPECT_EQ(moved.fields[2], "say \"hi\"");
}

TEST(SplitCsv, LeavesOutNoBreakSpacesAroundAField) {
  detail::CsvFields fields;
  detail::split_csv("5\xC2\xA0,\xE2\x80\xAF 6 \xE2\x80\x87,a\xC2\xA0 b", ',', fields);
  EXPECT_THAT(fields.fields, ElementsAre("5", "6", "a\xC2\xA0 b"));
}

TEST(SplitCsv, SplitsAtTextsAndAtBlanks) {
  detail::CsvFields fields;
  detail::split_csv("a :: \"b::c\" ::d::", "::", fields);
  EXPECT_THAT(fields.fields, ElementsAre("a", "b::c", "d", ""));
  detail::split_csv(" \ta  b\t\t\"c  d\" \"\" e ", detail::kBlanks, fields);
  EXPECT_THAT(fields.fields, ElementsAre("a", "b", "c  d", "", "e"));
  EXPECT_EQ(fields.flaw, "");
  detail::split_csv("\"a\"b c", detail::kBlanks, fields);
  EXPECT_EQ(fields.flaw, "something follows a closing quote");
  detail::split_csv("a \"b ", detail::kBlanks, fields);
  EXPECT_TRUE(fields.is_open);
}

// A record may go on in the next line; the memory of the fields is used again.
TEST(SplitCsv, SaysWhetherAQuoteIsOpen) {
  detail::CsvFields fields;
  detail::split_csv("a,\"b", ',', fields);
  EXPECT_TRUE(fields.is_open);
  EXPECT_EQ(fields.flaw, "a quote is not closed");
  detail::split_csv("a,\"b\nc\",d", ',', fields);
  EXPECT_FALSE(fields.is_open);
  EXPECT_EQ(fields.flaw, "");
  EXPECT_THAT(fields.fields, ElementsAre("a", "b\nc", "d"));
  detail::split_csv("\"a\"b,c", ',', fields);
  EXPECT_FALSE(fields.is_open);
  EXPECT_EQ(fields.flaw, "something follows a closing quote");
}

}  // namespace
}  // namespace rubato
