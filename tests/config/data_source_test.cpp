// --data: names of data sets with their arguments.

#include "runs/config/values/data_source.hpp"

#include <string>

#include <gmock/gmock.h>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using testing::IsEmpty;
using testing::Pair;

TEST(DataSource, HasTheTypesOfColumns) {
  const auto types = [](const std::string& text) { return Parsed<DataSource>(text)->csv.types; };
  const auto number = ColumnKind::numbers;
  const auto category = ColumnKind::categories;
  EXPECT_THAT(types("csv:t.csv,types=age:number,zip:category"),
              ElementsAre(Pair("age", number), Pair("zip", category)));
  EXPECT_THAT(types("csv:t.csv,types=age:number/zip:category,label=y"),
              ElementsAre(Pair("age", number), Pair("zip", category)));
  EXPECT_THAT(types("csv:t.csv,types=km/h:number,zip:category,a b:number,missing=mean"),
              ElementsAre(Pair("a b", number), Pair("km/h", number), Pair("zip", category)));
  EXPECT_THAT(types("csv:t.csv,types=a:b:number"), ElementsAre(Pair("a:b", number)));
  const DataSource source =
      *Parsed<DataSource>("csv:my,file.csv,label=y,types=a:number,b:category");
  EXPECT_EQ(source.path, "my,file.csv");
  EXPECT_EQ(source.csv.label, "y");
  EXPECT_EQ(source.csv.missing, MissingValues::refuse);
  EXPECT_EQ(Parsed<DataSource>("csv:t.csv,missing=drop")->csv.missing, MissingValues::drop);
  // What no argument is before is the file's name.
  EXPECT_EQ(Parsed<DataSource>("csv:t,b:category")->path, "t,b:category");
  EXPECT_THAT(error_of([&] { types("csv:t.csv,types=age"); }),
              HasSubstr("csv: types: 'age' gives no column a type; accepted: NAME:number or "
                        "NAME:category"));
  EXPECT_THAT(error_of([&] { types("csv:t.csv,types=age:text"); }), HasSubstr("'age:text'"));
  EXPECT_THAT(error_of([&] { types("csv:t.csv,types=:number"); }), HasSubstr("':number'"));
  EXPECT_THAT(error_of([&] { types("csv:t.csv,types=a:number/a:category"); }),
              HasSubstr("'a' is there twice"));
  EXPECT_THAT(error_of([&] { types("csv:t.csv,missing=median"); }),
              HasSubstr("accepted: error, mean, drop"));
}

TEST(DataSource, HasTheColumnsThatAreIgnored) {
  const auto ignored = [](const std::string& text) { return Parsed<DataSource>(text)->csv.ignore; };
  EXPECT_THAT(ignored("csv:t.csv,ignore=id,name"), ElementsAre("id", "name"));
  EXPECT_THAT(ignored("csv:t.csv,ignore=id/name,types=a:number,b:category"),
              ElementsAre("id", "name"));
  EXPECT_THAT(ignored("csv:t.csv,ignore=id,the name,decimal=comma"), ElementsAre("id", "the name"));
  const auto source = Parsed<DataSource>("csv:my,ignore,t.csv,header=no,decimal=comma");
  EXPECT_EQ(source->path, "my,ignore,t.csv");
  EXPECT_EQ(source->csv.header, TableHeader::no);
  EXPECT_EQ(source->csv.decimal, Decimal::comma);
  EXPECT_THAT(error_of([&] { ignored("csv:t.csv,ingore=id"); }),
              HasSubstr("unknown argument of csv 'ingore'; did you mean 'ignore'?"));
  EXPECT_THAT(error_of([&] { ignored("csv:t.csv,decimal=coma"); }),
              HasSubstr("did you mean 'comma'?"));
}

TEST(DataSource, SaysHowATableIsWritten) {
  const auto csv = [](const std::string& arguments) {
    return Parsed<DataSource>("csv:t.csv" + arguments)->csv;
  };
  EXPECT_EQ(csv("").separator, "");
  EXPECT_EQ(csv(",separator=|").separator, "|");
  EXPECT_EQ(csv(",separator= || ").separator, "||");
  EXPECT_EQ(csv(",separator=;,comment=;;").separator, ";");
  EXPECT_EQ(csv(",separator=comma").separator, ",");
  EXPECT_EQ(csv(",separator=tab").separator, "\t");
  EXPECT_EQ(csv(",separator=\t").separator, "\t");
  EXPECT_EQ(csv(",separator=blanks").separator, " ");
  EXPECT_EQ(csv(",separator=  ").separator, " ");
  EXPECT_EQ(csv(",comment=#,label=y").comment, "#");
  EXPECT_THAT(error_of([&] { csv(",separator=\"a"); }),
              HasSubstr("csv: separator: '\"a' has a quote or a line end; accepted: comma, "
                        "semicolon, tab, blanks, or a text without these"));
  EXPECT_THAT(error_of([&] { csv(",separator=#,comment=#"); }),
              HasSubstr("csv: comment: separates the fields, too"));
}

TEST(DataSource, HasTheWordsForMissingValues) {
  const auto csv = [](const std::string& missing) {
    return Parsed<DataSource>("csv:t.csv,missing=" + missing)->csv;
  };
  EXPECT_THAT(csv("mean").missing_words, IsEmpty());
  EXPECT_EQ(csv("mean:-").missing, MissingValues::mean);
  EXPECT_THAT(csv("mean:-+N/A+-999").missing_words, ElementsAre("", "-", "N/A", "-999"));
  EXPECT_THAT(csv("drop:empty").missing_words, ElementsAre(""));
  EXPECT_THAT(error_of([&] { csv("-"); }),
              HasSubstr("csv: missing: unknown value '-'; accepted: error, mean, drop"));
}

TEST(DataSource, HasTheNamesOfArrays) {
  const auto source = Parsed<DataSource>("tensors:t.npz,x=images,y=labels,layout=hwc");
  EXPECT_EQ(source->tensors.x, "images");
  EXPECT_EQ(source->tensors.y, "labels");
  EXPECT_EQ(source->tensors.x_test, "");
  EXPECT_EQ(source->tensors.layout, ImageLayout::hwc);
  EXPECT_EQ(Parsed<DataSource>("tensors:t.npz,x-test=held")->tensors.x_test, "held");
  EXPECT_THAT(error_of([&] { return Parsed<DataSource>("tensors:t.npz,layout=nhwc"); }),
              HasSubstr("did you mean 'hwc'?"));
}

// A path may look like an argument.
TEST(DataSource, IsMappedFileByFile) {
  const auto moved = [](const std::string& text) {
    return map_data(text, [](const std::filesystem::path& path) { return "/data" / path; });
  };
  EXPECT_EQ(moved("digits"), "digits");
  EXPECT_EQ(moved("mnist:images"), "mnist:/data/images");
  EXPECT_EQ(moved("csv:t.csv,test=held.csv,label=y"),
            "csv:/data/t.csv,test=/data/held.csv,label=y");
  EXPECT_EQ(moved("csv:t,test=1,b.csv,label=y,test=held.csv"),
            "csv:/data/t,test=1,b.csv,label=y,test=/data/held.csv");
}

}  // namespace
}  // namespace rubato
