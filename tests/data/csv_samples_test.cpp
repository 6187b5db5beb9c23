// Tables as samples: columns of numbers and of categories, labels, and what is refused.

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "data/idx_files.hpp"
#include "data/input_of.hpp"
#include "loop/data/data_files.hpp"
#include "loop/data/tables/table_encoding.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::error_of;
using test::input_of;

std::vector<double> targets_of(const SampleSet& set) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    double value = 0;
    read_numbers(set.targets.type(), set.target(i), &value);
    values.push_back(value);
  }
  return values;
}

class CsvSamples : public test::TableFiles {};

TEST_F(CsvSamples, HasNumbersAsTheyAreAndOneFeatureForEachCategory) {
  const DataSets data = read("age,colour,label\n30,red,yes\n41.5,blue,no\n-2e1,red,yes\n");
  EXPECT_EQ(data.inputs, InputKind::reals);
  EXPECT_EQ(data.classes, 2);
  EXPECT_EQ(data.train.size(), 3);
  EXPECT_THAT(data.train.inputs.shape(), ElementsAre(3));
  // age, blue, red
  EXPECT_THAT(input_of(data, data.train, 0), ElementsAre(30, 0, 1));
  EXPECT_THAT(input_of(data, data.train, 1), ElementsAre(41.5, 1, 0));
  EXPECT_THAT(input_of(data, data.train, 2), ElementsAre(-20, 0, 1));
  EXPECT_THAT(targets_of(data.train), ElementsAre(1, 0, 1)) << "no, yes";
}

TEST_F(CsvSamples, TakesTheLabelByName) {
  const std::string table = "y,a,b\n3,1,5\n7,2,6\n3,3,7\n";
  const DataSets data = read(table, {.label = "y"});
  EXPECT_THAT(targets_of(data.train), ElementsAre(0, 1, 0))
      << "classes in the order of the numbers";
  EXPECT_THAT(input_of(data, data.train, 1), ElementsAre(2, 6));
  EXPECT_EQ(read(table).classes, 3) << "the last one";
  EXPECT_THAT(error(table, {.label = "c"}), HasSubstr("unknown column 'c'"));
}

TEST_F(CsvSamples, HasRealTargetsWhereOneHasAFractionOrTheyAreAskedFor) {
  const DataSets data = read("a,y\n1,10\n2,0.5\n");
  EXPECT_EQ(data.classes, 0);
  EXPECT_THAT(targets_of(data.train), ElementsAre(10, 0.5));
  EXPECT_EQ(read("a,y\n1,10\n2,20\n", {.targets = CsvTargets::numbers}).classes, 0);
  EXPECT_EQ(read("a,y\n1,10\n2,0.5\n", {.targets = CsvTargets::classes}).classes, 2);
  EXPECT_EQ(read("a,y\n1,1\n2,1.0\n3,2\n").classes, 2) << "1 and 1.0 are one";
  EXPECT_THAT(error("a,y\n1,10\n2,many\n", {.targets = CsvTargets::numbers}),
              HasSubstr("column 'y' has 'many', which is not a number; accepted: targets=classes"));
}

// As doubles, both numbers of such a pair are one.
TEST_F(CsvSamples, HasAClassForEachLargeNumber) {
  const DataSets data = read(
      "a,y\n1,740245381351497737\n2,740245381351497730\n3,740245381351497737\n"
      "4,-9007199254740993\n5,-9007199254740994\n6,0740245381351497730.0\n7,7e17\n");
  EXPECT_THAT(data.table->columns[1].categories,
              ElementsAre("-9007199254740994", "-9007199254740993", "7e17", "740245381351497730",
                          "740245381351497737"))
      << "in the order of the numbers, as the table has them";
  EXPECT_THAT(targets_of(data.train), ElementsAre(4, 3, 4, 1, 0, 3, 2));
  const DataRecord record = parse_data_record(to_json(record_of(data, "csv")), "data.json");
  const auto again =
      folder_.write("again.csv", "a,y\n1,740245381351497730\n2,700000000000000000\n");
  EXPECT_THAT(targets_of(read_new_csv_samples(again, record, true)), ElementsAre(3, 2));
  const auto other = folder_.write("other.csv", "a,y\n1,740245381351497731\n");
  EXPECT_THAT(error_of([&] { return read_new_csv_samples(other, record, true); }),
              HasSubstr("column 'y' has '740245381351497731' in row 1; accepted: a value "
                        "that is in"));
}

TEST_F(CsvSamples, CallsClassesAsTheTableDoes) {
  EXPECT_THAT(read("a,y\n1,007\n2,1e2\n3,+3\n").table->columns[1].categories,
              ElementsAre("+3", "007", "1e2"));
  EXPECT_THAT(read("a,y\n1,7.0\n2,3\n3,7\n").table->columns[1].categories, ElementsAre("3", "7"));
  const CsvOptions comma{.targets = CsvTargets::classes, .decimal = Decimal::comma};
  const DataSets data = read("a;y\n1;0,5\n2;1,5\n", comma);
  EXPECT_THAT(data.table->columns[1].categories, ElementsAre("0,5", "1,5"));
  EXPECT_THAT(targets_of(data.train), ElementsAre(0, 1));
  // Runs of earlier versions have a point.
  DataRecord record = record_of(data, "csv");
  TableEncoding old = *record.table;
  old.columns[1].categories = {"0.5", "1.5"};
  record.table = std::make_shared<const TableEncoding>(old);
  const auto again = folder_.write("again.csv", "a;y\n1;1,5\n");
  EXPECT_THAT(targets_of(read_new_csv_samples(again, record, true)), ElementsAre(1));
}

// Prices, or the names of cars.
TEST_F(CsvSamples, RefusesLabelsThatDifferInMostRows) {
  std::string prices = "a,price\n";
  std::string names = "a,name\n";
  std::string many = "a,price\n";
  for (int i = 0; i < 40; ++i) {
    prices += fmt::format("{},{}\n", i, 300 + i);
    names += fmt::format("{},model {}\n", i, i % 26);
  }
  for (int i = 0; i < 4004; ++i) many += fmt::format("{},{}\n", i, i / 4);
  EXPECT_THAT(error(prices), HasSubstr("column 'price' has 40 different values in 40 rows, such as "
                                       "'300'; accepted: targets=numbers, or targets=classes"));
  EXPECT_THAT(error(names), HasSubstr("column 'name' has 26 different values in 40 rows, such as "
                                      "'model 0'; accepted: label=NAME for another column, or "
                                      "targets=classes"));
  EXPECT_THAT(error(many), HasSubstr("column 'price' has 1001 different values in 4004 rows"));
  EXPECT_EQ(read(prices, {.targets = CsvTargets::numbers}).classes, 0);
  EXPECT_EQ(read(prices, {.targets = CsvTargets::classes}).classes, 40);
  EXPECT_EQ(read("a,y\n1,1\n2,2\n3,3\n").classes, 3) << "few rows say nothing";
}

TEST_F(CsvSamples, ReadsWhatGzipHasPacked) {
  const std::string table = "a,y\n1,0\n2.5,1\n";
  const auto packed = test::gzipped({table.begin(), table.end()});
  const auto file = folder_.write("table.csv.gz", std::string(packed.begin(), packed.end()));
  const DataSets data = read_csv_samples(file, {});
  EXPECT_THAT(input_of(data, data.train, 1), ElementsAre(2.5F));
  folder_.write("table.csv.gz", std::string(packed.begin(), packed.end() - 9));
  EXPECT_THAT(error_of([&] { return read_csv_samples(file, {}); }),
              HasSubstr("table.csv.gz: the gzip stream is truncated"));
}

TEST_F(CsvSamples, NamesFilesThatAreNotText) {
  for (const auto& [bytes, name] : std::vector<std::pair<std::string, std::string>>{
           {"PK\3\4\24", "a ZIP archive or a spreadsheet"},
           {"PAR1\25\4", "in Parquet"},
           {"\xD0\xCF\x11\xE0\xA1", "a document of Office"},
           {"BZh91AY", "packed by bzip2"},
           {"\xFD\x37zXZ", "packed by xz"},
           {"\x28\xB5\x2F\xFD\x24", "packed by Zstandard"},
           {"\x93NUMPY\1", "an array of numpy"}}) {
    EXPECT_THAT(error(bytes), HasSubstr("table.csv: it is " + name +
                                        ", not text; accepted: a table "
                                        "in CSV with a header, which gzip may have packed"));
  }
  const auto text = folder_.write("text", "PK\3\4 and so on and so on");
  EXPECT_THAT(error_of([&] { return read_text_samples(text, {.length = 4}); }),
              HasSubstr("text: it is a ZIP archive or a spreadsheet, not text; accepted: a text in "
                        "UTF-8, or any file with tokens=bytes"));
  EXPECT_EQ(
      error_of([&] { return read_text_samples(text, {.length = 4, .tokens = TextTokens::bytes}); }),
      "no error");
}

TEST_F(CsvSamples, StandardisesNumbersAndNothingElse) {
  const DataSets data =
      read("a,same,c,y\n1,5,u,0\n2,5,v,1\n3,5,u,0\n6,5,u,1\n", {.standardise = true});
  // Mean 3, deviation sqrt(3.5).
  const auto deviation = std::sqrt(3.5);
  EXPECT_THAT(input_of(data, data.train, 0),
              ElementsAre(static_cast<float>(-2 / deviation), 0, 1, 0));
  EXPECT_THAT(input_of(data, data.train, 1),
              ElementsAre(static_cast<float>(-1 / deviation), 0, 0, 1));
}

// By those that are trained on: what is held out is not known beforehand.
TEST_F(CsvSamples, StandardisesByWhatIsNotHeldOut) {
  const auto file = folder_.write("table.csv", "a,y\n1,0\n2,1\n3,0\n1000,1\n");
  DataSets data = read_csv_samples(file, {.standardise = true});
  hold_out(data, 0.25, 0);
  normalise(data);
  double sum = 0;
  for (std::int64_t i = 0; i < 3; ++i) sum += input_of(data, data.train, i)[0];
  EXPECT_NEAR(sum, 0, 1e-6);
}

TEST_F(CsvSamples, ReadsATestTableByTheTrainingTable) {
  const std::string table = "a,c,y\n1,u,no\n3,v,yes\n";
  const auto with_test = [&](const std::string& test) {
    return CsvOptions{.test = folder_.write("test.csv", test), .standardise = true};
  };
  const DataSets data = read(table, with_test("a,c,y\n5,v,no\n"));
  ASSERT_TRUE(data.test.has_value());
  EXPECT_THAT(input_of(data, *data.test, 0), ElementsAre(3, 0, 1));
  EXPECT_THAT(targets_of(*data.test), ElementsAre(0));
  EXPECT_THAT(error(table, with_test("a,c,y\n5,v,no\n5,w,no\n")),
              HasSubstr("test.csv:3: column 'c' has 'w' in row 2; accepted: a value that is in"));
  CsvOptions dropping = with_test("a,c,y\n,v,no\n5,w,no\n");
  dropping.missing = MissingValues::drop;
  EXPECT_THAT(error(table, dropping), HasSubstr("test.csv:3: column 'c' has 'w' in row 2"));
  EXPECT_THAT(error(table, with_test("a,c,y\n5,v,maybe\n")), HasSubstr("column 'y' has 'maybe'"));
  EXPECT_THAT(error(table, with_test("a,c,y\nfive,v,no\n")), HasSubstr("column 'a' has 'five'"));
  EXPECT_THAT(error(table, with_test("a,d,y\n5,v,no\n")), HasSubstr("the columns are 'a, d, y'"));
}

TEST_F(CsvSamples, ReadsWhatSpreadsheetsWrite) {
  const DataSets data = read("\xEF\xBB\xBF\"a, or b\";\"c\";y\r\n1;\"u;v\";0\r\n\r\n2;w;1\r\n");
  EXPECT_THAT(input_of(data, data.train, 0), ElementsAre(1, 1, 0));
  EXPECT_THAT(input_of(data, data.train, 1), ElementsAre(2, 0, 1));
}

TEST_F(CsvSamples, ReadsQuotesWithinQuotesAndTheLineThatNamesTheSeparator) {
  const DataSets data = read("sep=;\nc;y\n\"r\"\"d\";0\nblue, or so;1\n");
  EXPECT_THAT(data.table->columns[0].categories, ElementsAre("blue, or so", "r\"d"));
  EXPECT_THAT(error("sep=;\nc;y\n1\n"), HasSubstr("table.csv:3: 1 fields; accepted: 2"));
}

TEST_F(CsvSamples, RefusesAFirstLineOfDataWhereThereIsNoHeader) {
  // As iris.data has them.
  const std::string iris = "5.1,3.5,Iris-setosa\n4.9,3.0,Iris-setosa\n7.0,3.2,Iris-versicolor\n";
  EXPECT_THAT(error(iris), HasSubstr("table.csv: the first line, '5.1,3.5,Iris-setosa', looks like "
                                     "data; accepted: header=no where it is, and header=yes"));
  EXPECT_THAT(error("5,3,Iris-setosa\n4,3,Iris-setosa\n7,3,Iris-versicolor\n"),
              HasSubstr("looks like data"));
  EXPECT_THAT(error("1,4\n2,5\n"), HasSubstr("looks like data"));
  EXPECT_THAT(error("3,3,a\n4,3,a\n"), HasSubstr("or header=no where the first line is data"));
  EXPECT_EQ(error("0,1,2\n5,6,0\n"), "no error") << "names that pandas gives";
  EXPECT_EQ(error("2019,2020,y\n5,6,0\n"), "no error");
  EXPECT_EQ(error("5.1,y\n5,1\n", {.header = TableHeader::yes}), "no error");

  const DataSets data = read(iris, {.header = TableHeader::no});
  EXPECT_EQ(data.train.size(), 3);
  EXPECT_THAT(input_of(data, data.train, 0), ElementsAre(5.1F, 3.5F));
  EXPECT_EQ(data.table->columns[2].name, "3");
  EXPECT_THAT(targets_of(data.train), ElementsAre(0, 0, 1));
  const DataSets named = read(iris, {.label = "1",
                                     .test = folder_.write("test.csv", "1,3.2,Iris-setosa\n"),
                                     .types = {{"2", ColumnKind::categories}},
                                     .header = TableHeader::no,
                                     .ignore = {"3"}});
  EXPECT_THAT(targets_of(named.train), ElementsAre(5.1, 4.9, 7));
  EXPECT_THAT(input_of(named, named.train, 1), ElementsAre(1, 0, 0));
  EXPECT_THAT(error("", {.header = TableHeader::no}), HasSubstr("there is no row"));
}

TEST_F(CsvSamples, LeavesOutTheColumnsThatAreIgnored) {
  const std::string table = "id,name,km/h,a,y\n7,Ann,3,5,0\n8,,x,6,1\n";
  const DataSets data = read(table, {.ignore = {"id", "name", "km", "h"}});
  EXPECT_THAT(input_of(data, data.train, 1), ElementsAre(6));
  EXPECT_EQ(data.left_out, 0) << "what is missing in them does not count";
  EXPECT_THAT(data.table->ignored, ElementsAre("id", "name", "km/h"));
  EXPECT_EQ(read("a,y,id\n5,0,1\n6,1,2\n", {.ignore = {"id"}}).classes, 2) << "y is the last";
  EXPECT_THAT(error(table, {.ignore = {"nam"}}), HasSubstr("unknown column 'nam'"));
  EXPECT_THAT(error(table, {.label = "y", .ignore = {"y"}}),
              HasSubstr("ignore: column 'y' is that of the labels"));
  EXPECT_THAT(error(table, {.types = {{"id", ColumnKind::numbers}}, .ignore = {"id"}}),
              HasSubstr("types: column 'id' is ignored"));
  EXPECT_THAT(error("a,y\n1,0\n", {.ignore = {"a"}}), HasSubstr("there is one column"));
}

TEST_F(CsvSamples, SaysLineAndColumnOfWhatIsMissing) {
  for (const char* const missing : {"", " ", "NA", "n/a", "NaN", "null", "?"}) {
    EXPECT_THAT(
        error(std::string("a,b,y\n1,2,0\n1,") + missing + ",1\n"),
        HasSubstr("table.csv:3: column 'b' has no value; accepted: a value in every field"));
  }
  EXPECT_THAT(error("a,b,y\n1,2\n"), HasSubstr(":2: 2 fields; accepted: 3, as the header has"));
  EXPECT_THAT(error("a,a,y\n1,2,3\n"), HasSubstr(":1: column 'a' occurs twice"));
  EXPECT_THAT(error("a,,y\n1,2,3\n"), HasSubstr(":1: column 2 has no name"));
  EXPECT_THAT(error("y\n1\n"), HasSubstr("there is one column"));
  EXPECT_THAT(error("a,y\n"), HasSubstr("there is no row"));
  EXPECT_THAT(error(""), HasSubstr("there is no header"));
  EXPECT_THAT(error("a,y\n\"1,0\n"), HasSubstr("a quote is not closed"));
  EXPECT_THAT(error("a,y\n1e300,0\n"), HasSubstr("column 'a' is too large"));
  std::string names = "name,y\n";
  for (int i = 0; i < 1001; ++i) names += "person" + std::to_string(i) + ",0\n";
  EXPECT_THAT(error(names), HasSubstr("column 'name' has more than 1000 different values in 1001 "
                                      "rows, such as 'person0'; accepted: ignore=name"));
}

}  // namespace
}  // namespace rubato
