// Tables that are written in other ways than with commas, and what new tables may have that the
// training table did not.

#include <cstdint>
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
using testing::IsEmpty;

class TableFormats : public test::TableFiles {
 protected:
  // Reads another table for a model that was trained on `data`.
  SampleSet again(const DataSets& data, const std::string& table, const CsvOptions& options = {},
                  std::int64_t* unseen = nullptr) const {
    const DataRecord record = parse_data_record(to_json(record_of(data, "csv")), "data.json");
    return read_new_csv_samples(folder_.write("new.csv", table), record, /*labels=*/false, options,
                                unseen);
  }
};

TEST_F(TableFormats, MayHaveAnySeparator) {
  for (const auto& [separator, table] : std::vector<std::pair<std::string, std::string>>{
           {"|", "a|c|y\n1|\"u|v\"|0\n2| w |1\n"},
           {"::", "a::c::y\n1::\"u::v\"::0\n2::w::1\n"},
           {" ", "  a \t c   y\n1 \"u v\" 0\n 2\tw 1  \n"},
           {"\t", "a\tc\ty\n1\tu v\t0\n2\tw\t1\n"},
           {",", "a,c,y\n1,u;v,0\n2,w,1\n"}}) {
    const DataSets data = read(table, {.separator = separator});
    EXPECT_THAT(data.table->columns[1].categories, ElementsAre(testing::MatchesRegex("u.+v"), "w"));
    EXPECT_THAT(input_of(data, data.train, 1), ElementsAre(2, 0, 1)) << separator;
    EXPECT_THAT(data.notes, IsEmpty());
  }
  EXPECT_THAT(error("a b\n1 2 3\n", {.separator = " "}), HasSubstr(":2: 3 fields; accepted: 2"));
  EXPECT_THAT(error("a b\n\"1\"2 3\n", {.separator = " "}),
              HasSubstr("something follows a closing quote"));
}

TEST_F(TableFormats, FindTheSeparatorThatTheFirstRowsShowForCertain) {
  for (const auto& [table, name] : std::vector<std::pair<std::string, std::string>>{
           {"a|c|y\n1|u|0\n2|\"v|w\"|1\n", "'|'"},
           {"a | c | y\n1 | u | 0\n2 | v | 1\n", "'|'"},
           {"a   c  y\n1   u  0\n2   v  1\n", "blanks"},
           {"# of 2024, by hand\na c y\n1 u 0\n# the end\n2 v 1", "blanks"},
           {"\"a, b, or c\";c;y\n1;u;0\n2;v;1\n", "semicolon"}}) {
    const DataSets data = read(table, {.comment = "#"});
    EXPECT_THAT(input_of(data, data.train, 1), ElementsAre(2, 0, 1)) << table;
    EXPECT_THAT(data.notes, ElementsAre("fields separated by " + name));
  }
  const DataSets unnamed = read("1 u 0\n2 v 1\n", {.header = TableHeader::no});
  EXPECT_THAT(input_of(unnamed, unnamed.train, 0), ElementsAre(1, 1, 0));
  // What is wrong beyond the first hundred rows is an error of its row.
  std::string table = "a|y\n";
  for (int i = 0; i < 100; ++i) table += fmt::format("{}|{}\n", i, i % 2);
  EXPECT_THAT(error(table + "5|6|7\n"), HasSubstr("table.csv:102: 3 fields; accepted: 2"));
  const std::string tail(70'000, '\n');
  EXPECT_EQ(error(table + tail + "5|1\n"), "no error");
}

TEST_F(TableFormats, DoNotGuessASeparator) {
  for (const char* const table :
       {"a|b\n1 2\n", "a|b\n1|2|3\n", "a|b\n", "a|b;\"c,,,\"\n1|2;3\n", "ab\n1\n", "a b\n1\n"}) {
    EXPECT_THAT(error(table),
                testing::AnyOf(HasSubstr("there is one column; accepted: at least one feature and "
                                         "the label, or separator= where"),
                               HasSubstr("a quote is not closed")))
        << table;
  }
  // Commas, semicolons and tabs are what they always were.
  const DataSets usual = read("a b,c|y\n1,5|0\n2,6|1\n", {.targets = CsvTargets::classes});
  EXPECT_EQ(usual.table->columns[0].name, "a b");
  EXPECT_EQ(usual.table->columns[1].name, "c|y");
  EXPECT_EQ(usual.table->format.separator, "");
  EXPECT_THAT(usual.notes, IsEmpty());
}

TEST_F(TableFormats, AreKeptForOtherTables) {
  const DataSets found = read("a|c|y\n1|u|0\n2|v|1\n");
  EXPECT_THAT(input_of(found, again(found, "c|a\nv|7\n"), 0), ElementsAre(7, 0, 1));
  EXPECT_THAT(error_of([&] { return again(found, "c,a\nv,7\n"); }),
              HasSubstr("the columns are 'c,a'"));
  const SampleSet other = again(found, "! by hand\nc,a\nv,7\n", {.separator = ",", .comment = "!"});
  EXPECT_THAT(input_of(found, other, 0), ElementsAre(7, 0, 1));
  // One column of texts is no table of several, whatever its texts have.
  const DataSets usual = read("light red,0\ndark red,1\n", {.header = TableHeader::no});
  EXPECT_EQ(again(usual, "light red\ndark red\n").size(), 2);
  EXPECT_THAT(to_json(record_of(usual, "csv")),
              testing::AllOf(Not(HasSubstr("separator")), Not(HasSubstr("comment")),
                             Not(HasSubstr("missing_words"))))
      << "as earlier versions wrote it";
}

TEST_F(TableFormats, PassOverComments) {
  const std::string table = "# a,b\n#\na,c,y\n1,#,0\n\n#2,w,1\n3,\"the\n# end\",1\n";
  const DataSets data = read(table, {.comment = "#"});
  EXPECT_EQ(data.train.size(), 2);
  EXPECT_THAT(data.table->columns[1].categories, ElementsAre("#", "the\n# end"));
  EXPECT_EQ(again(data, "#\na,c\n#\n1,#\n").size(), 1);
  EXPECT_THAT(error("# one\na,y\n#\n1\n", {.comment = "#"}), HasSubstr("table.csv:4: 1 fields"));
  EXPECT_THAT(error("#\n", {.comment = "#"}), HasSubstr("there is no header"));
}

TEST_F(TableFormats, MayBePacked) {
  const std::string table = "# packed\na|y\n1|0\n2.5|1\n";
  const auto packed = test::gzipped({table.begin(), table.end()});
  const auto file = folder_.write("table.csv.gz", std::string(packed.begin(), packed.end()));
  const DataSets data = read_csv_samples(file, {.comment = "#"});
  EXPECT_THAT(input_of(data, data.train, 1), ElementsAre(2.5F));
}

TEST_F(TableFormats, KeepTheTextsThatStandForNothingMissing) {
  const std::string table = "country,a,y\nNA,1,0\nNaN,-,1\nNA,3,0\n";
  const DataSets data = read(table, {.missing = MissingValues::mean, .missing_words = {"", "-"}});
  EXPECT_THAT(data.table->columns[0].categories, ElementsAre("NA", "NaN"));
  EXPECT_THAT(input_of(data, data.train, 1), ElementsAre(0, 1, 2)) << "the mean";
  EXPECT_THAT(input_of(data, again(data, "country,a\nNA,-\n"), 0), ElementsAre(1, 0, 2));
  const SampleSet other = again(data, "country,a\n?,?\n", {.missing_words = {"", "?"}});
  EXPECT_THAT(error_of([&] { return again(data, "country,a\n?,?\n"); }), HasSubstr("has '?'"));
  EXPECT_EQ(other.size(), 1);
  EXPECT_THAT(error(table), HasSubstr("table.csv:2: column 'country' has no value; accepted: a "
                                      "value in every field, missing=mean or missing=drop, or "
                                      "missing=error:empty where 'NA' is a text"));
  EXPECT_THAT(error("a,y\n,0\n"), Not(HasSubstr("is a text")));
  EXPECT_THAT(error("a,y\n,0\n", {.missing_words = {""}}), HasSubstr("has no value"));
}

TEST_F(TableFormats, CountTheRowsWithACategoryThatTrainingDidNotHave) {
  const DataSets data = read("a,b,c,y\n1,r,u,0\n2,s,v,1\n");
  const std::string table = "a,b,c\n5,r,u\n6,x,z\n7,r,z\n8,s,v\n";
  EXPECT_THAT(error_of([&] { return again(data, "\n" + table); }),
              HasSubstr("new.csv:4: column 'b' has 'x' in row 2; accepted: --unseen missing, or a "
                        "value that is in"));
  std::int64_t unseen = 0;
  const SampleSet set = again(data, table, {}, &unseen);
  EXPECT_EQ(unseen, 2);
  EXPECT_THAT(input_of(data, set, 0), ElementsAre(5, 1, 0, 1, 0));
  EXPECT_THAT(input_of(data, set, 1), ElementsAre(6, 0, 0, 0, 0));
  EXPECT_THAT(input_of(data, set, 2), ElementsAre(7, 1, 0, 0, 0));
  again(data, "a,b,c\n5,r,u\n", {}, &unseen);
  EXPECT_EQ(unseen, 0);
}

}  // namespace
}  // namespace rubato
