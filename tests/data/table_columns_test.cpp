// What the columns of a table are: numbers or categories, what is neither, and what is missing.

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "data/input_of.hpp"
#include "loop/data/data_files.hpp"
#include "loop/data/tables/table_encoding.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::error_of;
using test::input_of;

class TableColumns : public test::TableFiles {
 protected:
  // 400 rows of the columns a, b and y; that of line 302 has these fields.
  static std::string with_odd(const std::string& fields, const std::string& label) {
    std::string table = "a,b,y\n";
    for (int i = 0; i < 400; ++i) {
      table += i == 300 ? fields + "\n" : fmt::format("{}.5,{},{}\n", i, i % 7, label);
    }
    return table;
  }
};

TEST_F(TableColumns, RefusesTheOddTextAmongNumbers) {
  EXPECT_EQ(error(with_odd("1,1,0", "0")), "no error");
  for (const char* const odd : {"0.3x5", "\"1,234.5\"", "inf", "-inf", "1e400", "0x1F", "1.2.3",
                                "--1", "++1", "+-1", "1 2", "+"}) {
    EXPECT_THAT(error(with_odd(fmt::format("{},1,0", odd), "0")),
                AllOf(HasSubstr("table.csv:302: column 'a' has '"),
                      HasSubstr("399 of its 400 fields are numbers; accepted: a number"),
                      HasSubstr("or types=a:category")))
        << odd;
  }
}

// Neither must it turn a regression into a classification.
TEST_F(TableColumns, RefusesTheOddTextAmongLabels) {
  for (const char* const label : {"0.25", "3"}) {
    EXPECT_THAT(error(with_odd("1,1,0.3x5", label)),
                HasSubstr("table.csv:302: column 'y' has '0.3x5', and 399 of its 400 fields are "
                          "numbers; accepted: a number, such as -0.5 or 1e3, or targets=classes"));
  }
  EXPECT_EQ(read(with_odd("1,1,0.3x5", "3"), {.targets = CsvTargets::classes}).classes, 2);
  EXPECT_THAT(error(with_odd("1,1,0.3x5", "3"), {.targets = CsvTargets::numbers}),
              HasSubstr("table.csv:302: column 'y' has '0.3x5', which is not a number"));
}

TEST_F(TableColumns, TakesNumbersWithASign) {
  const DataSets data = read("a,y\n+0.5,+1\n-.5,0\n+2e1,1\n");
  EXPECT_EQ(data.train.inputs.elements(), 1);
  EXPECT_THAT(input_of(data, data.train, 0), ElementsAre(0.5F));
  EXPECT_THAT(input_of(data, data.train, 2), ElementsAre(20));
  EXPECT_EQ(data.classes, 2) << "+1 and 1 are one";
}

TEST_F(TableColumns, AreCategoriesWhereNotMostAreNumbers) {
  const DataSets data = read("size,y\n36,0\n38,1\nS,0\nM,1\n");
  EXPECT_EQ(data.train.inputs.elements(), 4);
  EXPECT_EQ(data.table->columns_of(ColumnKind::categories), 1);
  EXPECT_EQ(data.table->columns_of(ColumnKind::numbers), 0);
}

TEST_F(TableColumns, HaveAThousandCategoriesAtMost) {
  const auto table = [](int categories) {
    std::string text = "a,y\n";
    for (int i = 0; i < 2 * categories; ++i) text += fmt::format("a{},{}\n", i / 2, i % 2);
    return text;
  };
  EXPECT_EQ(read(table(1000)).train.inputs.elements(), 1000);
  EXPECT_THAT(error(table(1001)), HasSubstr("column 'a' has more than 1000 different values"));
}

// Each would become a category of its own, with exit code 0.
TEST_F(TableColumns, RefuseTextsThatAreMeantAsNumbers) {
  const auto table = [](std::string_view text) {
    std::string rows = "a;y\n";
    for (int i = 0; i < 40; ++i) {
      const std::string digit = fmt::to_string(i % 8 + 1);
      std::string field(text);
      if (const std::size_t at = field.find('#'); at != std::string::npos)
        field.replace(at, 1, digit);
      rows += fmt::format("{};{}\n", field, i % 2);
    }
    return rows;
  };
  for (const char* const text : {"-#,179",
                                 "1,#34,567.00",
                                 "0.#%",
                                 "EUR #",
                                 "# kg",
                                 "\xE2\x82\xAC#",
                                 "#'000",
                                 "2024-05-0#",
                                 "$ 1.#",
                                 "#:30",
                                 "2024-05-0#T00:00:00Z",
                                 "2024-05-0#T12:00:00.5+02:00",
                                 "2024050#T120000",
                                 "0#/Jan/2024",
                                 "# May 2024",
                                 "May 0#, 2024",
                                 "201#Q1",
                                 "Q3 201#",
                                 "2024-W0#",
                                 "0#:30 pm",
                                 "#GB",
                                 "1.#MiB",
                                 "#k",
                                 "#h30m",
                                 "#km/h"}) {
    EXPECT_THAT(error(table(text)),
                AllOf(HasSubstr("table.csv:2: column 'a' has '"),
                      HasSubstr("and 40 of its 40 texts look like numbers; accepted: a "
                                "number, such as -0.5 or 1e3"),
                      HasSubstr(", or types=a:category or ignore=a")))
        << text;
  }
  EXPECT_THAT(error(table("#,5")), HasSubstr("1e3, decimal=comma where -0,5 is one, or types="));
  EXPECT_THAT(error(table("#%")), Not(HasSubstr("decimal")));
  EXPECT_EQ(read(table("#%"), {.types = {{"a", ColumnKind::categories}}}).train.inputs.elements(),
            8);
  // A few others among them do not make categories of all.
  EXPECT_THAT(error(table("#%") + "x;0\nx;0\nx;1\nx;1\n"),
              HasSubstr("and 40 of its 44 texts look like numbers"));
  EXPECT_EQ(error(table("#%") + "x;0\nx;0\nx;1\nx;1\nx;1\n"), "no error");
  // Categories with digits.
  for (const char* const text : {"A#", "zone #", "a-#", "#\xC3\xA9", "Quarter # 2024", "x", "#A",
                                 "1#C", "#st", "Q#", "#-door", "Mk#", "#x4", "T#", "#Z"}) {
    EXPECT_EQ(error(table(text)), "no error") << text;
  }
  // Labels become classes.
  EXPECT_THAT(error("a;y\n1;0,5\n2;1,5\n"),
              HasSubstr("column 'y' has '0,5', and 2 of its 2 texts look like numbers; accepted: a "
                        "number, such as -0.5 or 1e3, decimal=comma where -0,5 is one, or "
                        "targets=classes"));
  EXPECT_EQ(read("a;y\n1;0,5\n2;1,5\n", {.targets = CsvTargets::classes}).classes, 2);
}

// Spreadsheets write TRUE, Python writes True, and JSON writes true.
TEST_F(TableColumns, HaveOneCategoryForOneTruth) {
  const DataSets data = read("a,y\nTrue,yes\nTRUE,Yes\ntrue,YES\nfalse,no\nFALSE,NO\n");
  EXPECT_THAT(data.table->columns[0].categories, ElementsAre("FALSE", "TRUE"));
  EXPECT_THAT(data.table->columns[1].categories, ElementsAre("NO", "YES"));
  for (const std::int64_t row : {0, 1, 2}) {
    EXPECT_THAT(input_of(data, data.train, row), ElementsAre(0, 1)) << row;
  }
  EXPECT_THAT(input_of(data, data.train, 3), ElementsAre(1, 0));
  const auto again = folder_.write("again.csv", "a,y\nfAlse,nO\ntrUe,yeS\n");
  const SampleSet set = read_new_csv_samples(again, record_of(data, "csv"), /*labels=*/true);
  EXPECT_THAT(input_of(data, set, 1), ElementsAre(0, 1));
  // Other texts differ in case.
  EXPECT_EQ(read("a,y\nred,0\nRed,1\n").train.inputs.elements(), 2);
}

// As numbers they would be one, and no model learns names.
TEST_F(TableColumns, RefuseIdentifiersAsNumbers) {
  const std::string table = "id,a,y\n740245381351497730,1,0\n740245381351497737,2,1\n";
  EXPECT_THAT(error(table), HasSubstr("column 'id' has '740245381351497730', and whole numbers "
                                      "above 2^53 are rounded; accepted: ignore=id to leave it "
                                      "out, types=id:category, or types=id:number to round it"));
  EXPECT_EQ(error(table, {.ignore = {"id"}}), "no error");
  EXPECT_EQ(error(table, {.types = {{"id", ColumnKind::numbers}}}), "no error");
  EXPECT_EQ(read(table, {.types = {{"id", ColumnKind::categories}}}).train.inputs.elements(), 3);
  EXPECT_EQ(error("a,y\n1e20,0\n9007199254740992,1\n-2.5e30,0\n3.25e38,1\n"), "no error");
  // The first negative number that is rounded becomes -2^53.
  EXPECT_THAT(error("id,y\n-9007199254740993,0\n5,1\n"),
              HasSubstr("column 'id' has '-9007199254740993', and whole numbers above 2^53"));
}

TEST_F(TableColumns, MayHaveDecimalCommas) {
  const CsvOptions comma{.decimal = Decimal::comma};
  const DataSets data = read("a;y\n-1,179;0,5\n2;1\n\xE2\x88\x92\x33\x65\x31\xC2\xA0;2\n", comma);
  EXPECT_THAT(input_of(data, data.train, 0), ElementsAre(-1.179F));
  EXPECT_THAT(input_of(data, data.train, 1), ElementsAre(2));
  EXPECT_THAT(input_of(data, data.train, 2), ElementsAre(-30));
  EXPECT_EQ(data.classes, 0);
  const DataSets classes = read("a;y\n1;2,0\n2;1\n3;2\n", comma);
  EXPECT_EQ(classes.classes, 2) << "2,0 and 2 are one";
  EXPECT_THAT(error("a;y\n0.5;0\n0,5;1\n1,5;1\n", comma),
              HasSubstr("table.csv:2: column 'a' has '0.5', and 2 of its 3 fields are numbers; "
                        "accepted: a number, such as -0,5 or 1e3"));
  EXPECT_THAT(error("a;y\n1.000,5;0\n2.000,5;1\n", comma), HasSubstr("look like numbers"));
}

// The minus of typography, and spaces that do not break.
TEST_F(TableColumns, TakeNumbersAsTheyAreTypeset) {
  const DataSets data = read("a,y\n\xE2\x88\x92\x30.5,0\n5\xC2\xA0,1\n");
  EXPECT_EQ(data.train.inputs.elements(), 1);
  EXPECT_THAT(input_of(data, data.train, 0), ElementsAre(-0.5F));
  EXPECT_THAT(input_of(data, data.train, 1), ElementsAre(5));
}

TEST_F(TableColumns, AreNoNames) {
  const auto table = [](int different) {
    std::string rows = "name,y\n";
    for (int i = 0; i < 40; ++i) rows += fmt::format("person{},{}\n", i % different, i % 2);
    return rows;
  };
  EXPECT_EQ(error(table(20)), "no error");
  EXPECT_THAT(
      error(table(21)),
      HasSubstr("table.csv: column 'name' has 21 different values in 40 rows, such as "
                "'person0'; accepted: ignore=name to leave it out, or types=name:category"));
  EXPECT_EQ(read(table(40), {.types = {{"name", ColumnKind::categories}}}).train.inputs.elements(),
            40);
  EXPECT_EQ(error("c,y\nu,0\nv,1\nw,0\n"), "no error") << "a few are categories";
}

TEST_F(TableColumns, AreWhatTheirTypesSay) {
  const std::string table = "zip,age,y\n01,30,0\n1,31,1\n02,32,0\n";
  const DataSets data = read(table, {.types = {{"zip", ColumnKind::categories}}});
  EXPECT_THAT(data.table->columns[0].categories, ElementsAre("01", "02", "1"));
  EXPECT_THAT(input_of(data, data.train, 0), ElementsAre(1, 0, 0, 30));
  EXPECT_EQ(read(table, {.types = {{"zip", ColumnKind::numbers}}}).train.inputs.elements(), 2);
  EXPECT_THAT(error("zip,y\nA,0\nB,1\n2,1\n", {.types = {{"zip", ColumnKind::numbers}}}),
              HasSubstr("table.csv:2: column 'zip' has 'A', which is not a number"));
  EXPECT_EQ(read(with_odd("x,1,0", "0"), {.types = {{"a", ColumnKind::categories}}})
                .table->columns_of(ColumnKind::categories),
            1);
  EXPECT_THAT(error(table, {.types = {{"zap", ColumnKind::numbers}}}),
              HasSubstr("unknown column 'zap'"));
  EXPECT_THAT(error(table, {.types = {{"y", ColumnKind::numbers}}}),
              HasSubstr("types: column 'y' is that of the labels; accepted: targets=classes"));
}

// As if the means of what is trained on stood there from the beginning.
TEST_F(TableColumns, TakeTheMeanForWhatIsMissing) {
  for (const bool standardise : {false, true}) {
    CsvOptions options{.standardise = standardise};
    const DataSets whole = read("a,c,y\n1,u,0\n2,v,1\n3,u,0\n6,v,1\n", options);
    options.missing = MissingValues::mean;
    const DataSets data = read("a,c,y\n1,u,0\n2,v,1\nNA,u,0\n6,v,1\n", options);
    for (const std::int64_t row : {0, 1, 2, 3}) {
      EXPECT_EQ(input_of(data, data.train, row), input_of(whole, whole.train, row)) << row;
    }
  }
  const DataSets none = read("a,c,y\n1,u,0\n2,,1\n", {.missing = MissingValues::mean});
  EXPECT_THAT(input_of(none, none.train, 1), ElementsAre(2, 0)) << "no category";
  EXPECT_THAT(error("a,c,y\n1,u,0\n2,u,\n", {.missing = MissingValues::mean}),
              HasSubstr("table.csv:3: column 'y' has no value; accepted: a label in every row"));
  EXPECT_THAT(error("a,c,y\n?,u,0\n,u,1\n", {.missing = MissingValues::mean}),
              HasSubstr("column 'a' has no value in any row; accepted: ignore=a"));
}

TEST_F(TableColumns, TakeTheMeanOfWhatIsTrainedOn) {
  const CsvOptions options{.test = folder_.write("test.csv", "a,y\n,1\n100,0\n"),
                           .missing = MissingValues::mean};
  const DataSets data = read("a,y\n1,0\n2,1\n6,0\n", options);
  EXPECT_THAT(input_of(data, *data.test, 0), ElementsAre(3));
  EXPECT_THAT(input_of(data, *data.test, 1), ElementsAre(100));

  const auto file = folder_.write("table.csv", "a,y\n,0\n,1\n,0\n1000,1\n2,0\n2,1\n2,0\n2,1\n");
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
    DataSets held = read_csv_samples(file, {.missing = MissingValues::mean});
    hold_out(held, 0.5, seed);
    double sum = 0;
    int values = 0;
    for (std::int64_t i = 0; i < held.train.size(); ++i) {
      double value = 0;
      read_numbers(held.train.inputs.type(), held.train.input(i), &value);
      if (std::isnan(value)) continue;
      sum += value;
      ++values;
    }
    ASSERT_GT(values, 0) << seed;
    normalise(held);
    EXPECT_DOUBLE_EQ(held.features[0].missing, sum / values) << seed;
  }
  DataSets bad = read_csv_samples(folder_.write("few.csv", "a,y\n,0\n,1\n,0\n5,1\n"),
                                  {.missing = MissingValues::mean});
  bad.train.chosen = std::make_shared<const std::vector<std::int64_t>>(1, 0);
  EXPECT_THAT(error_of([&] { normalise(bad); }),
              HasSubstr("column 'a' has no value in any of the samples that are trained on"));
}

TEST_F(TableColumns, LeaveOutRowsWithoutAValueAndCountThem) {
  const CsvOptions options{.test = folder_.write("test.csv", "a,c,y\n,u,1\n5,u,0\n"),
                           .missing = MissingValues::drop};
  const DataSets data = read("a,c,y\n1,u,0\n?,w,1\n3,,1\n4,v,NA\n5,v,1\n", options);
  EXPECT_EQ(data.train.size(), 2);
  EXPECT_EQ(data.test->size(), 1);
  EXPECT_EQ(data.left_out, 4);
  EXPECT_THAT(input_of(data, data.train, 1), ElementsAre(5, 0, 1)) << "w is of no row that is left";
  EXPECT_THAT(error("a,y\n1,\n,2\n", {.missing = MissingValues::drop}),
              HasSubstr("there is no row with values"));
}

TEST_F(TableColumns, MayHaveLineBreaksInQuotes) {
  const DataSets data =
      read("\"the\nname\",y\n\"one\r\ntwo, three\",1\nfour,0\n\n\"one\ntwo, three\",1\n");
  ASSERT_EQ(data.train.size(), 3);
  EXPECT_EQ(data.table->columns[0].name, "the\nname");
  EXPECT_THAT(data.table->columns[0].categories, ElementsAre("four", "one\ntwo, three"));
  EXPECT_THAT(error("a,b,y\n\"1\n2\",3,0\n4,5\n"), HasSubstr("table.csv:4: 2 fields"));
  EXPECT_THAT(error("a,y\n1,0\n\"2,0\n3,0\n"), HasSubstr("table.csv:3: a quote is not closed in"));
  std::string endless = "a,y\n1,0\n\"2,0\n";
  for (int i = 0; i < 5000; ++i) endless += "3,0\n";
  EXPECT_THAT(error(endless + "\",0\n"), HasSubstr("table.csv:3: a quote is not closed in"));
  // Of few lines that are long it takes in no more than a mebibyte.
  std::string large = "a,y\n1,0\n\"2";
  for (int i = 0; i < 20; ++i) large += std::string(100'000, 'x') + '\n';
  EXPECT_THAT(error(large + "\",0\n"), HasSubstr("table.csv:3: a quote is not closed in"));
}

}  // namespace
}  // namespace rubato
