// What a run keeps of its data, and other data that are read by it.

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "data/archive_files.hpp"
#include "loop/data/data_files.hpp"
#include "loop/data/tables/text.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::npy_of;
using test::zip_of;

std::vector<float> row_of(const SampleRows& rows, std::int64_t i) {
  std::vector<float> values(static_cast<std::size_t>(rows.elements()));
  read_numbers(rows.type(), rows.row(i), values.data());
  return values;
}

TEST(Utf8, IsMadeOfEveryCharacter) {
  for (const char32_t character :
       std::initializer_list<char32_t>{0x00, 0x41, 0x7F, 0x80, 0xE9, 0x7FF, 0x800, 0x20AC, 0xD7FF,
                                       0xE000, 0xFFFF, 0x10000, 0x1F3BC, 0x10FFFF}) {
    const std::string bytes = utf8_of(character);
    std::string_view rest = bytes;
    EXPECT_TRUE(take_character(rest) == character);
    EXPECT_TRUE(rest.empty()) << bytes;
  }
}

// Cut off, too long for what it says, half a pair of UTF-16, beyond the last one; and what is none.
TEST(Utf8, IsNotMadeOfAnythingElse) {
  for (const std::string_view bytes :
       {"\x80", "\xC3", "\xC3\x41", "\xE2\x82", "\xF0\x9F\x8E", "\xC0\x80", "\xC1\xBF",
        "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80",
        "\xED\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    std::string_view rest = bytes;
    EXPECT_FALSE(take_character(rest)) << testing::PrintToString(bytes);
    EXPECT_EQ(rest, bytes) << "nothing is taken";
    EXPECT_EQ(end_of_utf8("\xC3\xA9" + std::string(bytes)), 2U);
  }
}

class DataRecords : public testing::Test {
 protected:
  // As a run keeps it and reads it again.
  static DataRecord kept(DataSets data, std::string_view kind) {
    normalise(data);
    const std::string json = to_json(record_of(data, kind));
    DataRecord record = parse_data_record(json, "data.json");
    EXPECT_EQ(to_json(record), json);
    return record;
  }
  DataRecord table(const std::string& text, const CsvOptions& options = {}) const {
    return kept(read_csv_samples(folder_.write("table.csv", text), options), "csv");
  }
  SampleSet of_csv(const DataRecord& record, const std::string& text, bool labels = false) const {
    return read_new_csv_samples(folder_.write("new.csv", text), record, labels);
  }

  test::TempFolder folder_;
};

TEST_F(DataRecords, ReadATableWithoutLabelsInAnyOrder) {
  const std::string text = "a,colour,y\n1,red,ant\n2,\"blue, dark\",bee\n6,red,ant\n";
  const DataRecord record = table(text, {.standardise = true});
  EXPECT_THAT(record.table->columns[2].categories, ElementsAre("ant", "bee"));
  ASSERT_EQ(record.features.size(), 3U);
  EXPECT_EQ(record.features[0].mean, 3);
  const SampleSet bare = of_csv(record, "colour,a\nred,5\n\"blue, dark\",7\n");
  EXPECT_THAT(row_of(bare.inputs, 0), ElementsAre(5, 0, 1));
  EXPECT_THAT(row_of(bare.inputs, 1), ElementsAre(7, 1, 0));
  EXPECT_EQ(bare.targets.count(), 2);
  EXPECT_THAT(row_of(bare.targets, 1), ElementsAre(0));
  // What stands in the labels' column is not looked at, unless it is asked for.
  EXPECT_THAT(row_of(of_csv(record, "a,y,colour\n5,?,red\n").inputs, 0), ElementsAre(5, 0, 1));
  EXPECT_THAT(row_of(of_csv(record, "y,a,colour\nbee,5,red\n", true).targets, 0), ElementsAre(1));
  const auto error = [&](const std::string& other, bool labels = false) {
    return error_of([&] { return of_csv(record, other, labels); });
  };
  EXPECT_THAT(error("colour,a\nred,5\n", true), HasSubstr("the columns are 'colour, a'; accepted: "
                                                          "those of "));
  EXPECT_THAT(error("a\n5\n"), HasSubstr("the columns are 'a'"));
  EXPECT_THAT(error("a,colour,b\n5,red,1\n"), HasSubstr("the columns are 'a, colour, b'"));
  EXPECT_THAT(error("a,colour\n5,green\n"), HasSubstr("new.csv:2: column 'colour' has 'green'"));
  EXPECT_THAT(error("a,colour,y\n5,red,cow\n", true), HasSubstr("column 'y' has 'cow'"));
}

// What a table looks like is kept, too.
TEST_F(DataRecords, ReadATableAsTheFirstOneWasWritten) {
  const DataRecord record =
      table("7;-1,5;ant\n8;2;bee\n",
            {.decimal = Decimal::comma, .header = TableHeader::no, .ignore = {"1"}});
  EXPECT_THAT(row_of(of_csv(record, "9;0,25\n").inputs, 0), ElementsAre(0.25F));
  EXPECT_THAT(row_of(of_csv(record, "9;0,25;bee\n", true).targets, 0), ElementsAre(1));
  const DataRecord named = table("id,a,y\n7,1,0\n8,2,1\n", {.ignore = {"id"}});
  EXPECT_THAT(row_of(of_csv(named, "a\n5\n").inputs, 0), ElementsAre(5)) << "it need not be there";
  EXPECT_THAT(row_of(of_csv(named, "a,id\n5,x\n").inputs, 0), ElementsAre(5));
  // Records of earlier versions do not say so.
  const std::string json = to_json(table("a,y\n1,0\n2,1\n"));
  const std::size_t begin = json.find("\"decimal\"");
  const std::string old = json.substr(0, begin) + json.substr(json.find("\"rows\""));
  EXPECT_EQ(to_json(parse_data_record(old, "data.json")), json);
}

TEST_F(DataRecords, HaveTheMeansOfWhatWasTrainedOn) {
  const DataRecord mean = table("a,y\n1,0\n,1\n6,0\n", {.missing = MissingValues::mean});
  EXPECT_EQ(mean.features[0].missing, 3.5);
  DataSets data{.train = of_csv(mean, "a\nNA\n100\n"), .features = mean.features};
  normalise(data);
  float value = 0;
  InputReader(data).read(data.train.input(0), &value);
  EXPECT_EQ(value, 3.5F);
  const DataRecord drop = table("a,y\n1,0\n,1\n6,0\n", {.missing = MissingValues::drop});
  EXPECT_THAT(error_of([&] { return of_csv(drop, "a\n1\n\"\"\n2\n"); }),
              HasSubstr("new.csv: rows without a value: 1; accepted"));
}

TEST_F(DataRecords, HaveClassesThatAreNumbersByValue) {
  const DataRecord record = table("a,y\n1,7\n2,3\n3,7.0\n");
  EXPECT_THAT(record.table->columns[1].categories, ElementsAre("3", "7"));
  EXPECT_THAT(row_of(of_csv(record, "a,y\n1,7.00\n", true).targets, 0), ElementsAre(1));
}

TEST_F(DataRecords, ReadTensorsWithoutLabels) {
  const auto write = [&](const std::string& name, const std::vector<test::Record>& arrays) {
    return folder_.write(name, zip_of(arrays));
  };
  const auto pixels = npy_of<std::uint8_t>("|u1", {2, 1, 2}, {0, 10, 20, 30});
  const auto classes = npy_of<std::int64_t>("<i8", {2}, {0, 4});
  const DataRecord record = kept(
      read_tensor_samples(write("old.npz", {{"x.npy", pixels}, {"y.npy", classes}})), "tensors");
  EXPECT_EQ(record.classes, 5);
  EXPECT_EQ(record.channels.size(), 1U);
  const auto bare = write("new.npz", {{"x.npy", pixels}});
  const SampleSet set = read_new_tensor_samples(bare, record, false);
  EXPECT_THAT(row_of(set.inputs, 1), ElementsAre(20, 30));
  EXPECT_EQ(set.targets.count(), 2);
  EXPECT_THAT(error_of([&] { return read_new_tensor_samples(bare, record, true); }),
              HasSubstr("and not 'y'"));
  const auto held =
      write("held.npz", {{"x.npy", pixels},
                         {"y.npy", classes},
                         {"x_test.npy", npy_of<std::uint8_t>("|u1", {1, 1, 2}, {7, 8})},
                         {"y_test.npy", npy_of<std::int64_t>("<i8", {1}, {3})}});
  const SampleSet test = read_new_tensor_samples(held, record, true);
  EXPECT_THAT(row_of(test.inputs, 0), ElementsAre(7, 8));
  EXPECT_THAT(row_of(test.targets, 0), ElementsAre(3));
  const auto without_test = [&] {
    static_cast<void>(read_new_tensor_samples(bare, record, false, {.x_test = "held"}));
  };
  EXPECT_THAT(error_of(without_test), HasSubstr("holds x, and not 'held'"));
  const auto real =
      write("real.npz", {{"x.npy", pixels}, {"y.npy", npy_of<float>("<f4", {2}, {0, 1})}});
  EXPECT_THAT(error_of([&] { return read_new_tensor_samples(real, record, true); }),
              HasSubstr("'y' is F32 of shape [] for each sample; accepted: classes"));
}

TEST_F(DataRecords, ReadATextByItsAlphabet) {
  const DataRecord record = kept(read_text_samples(folder_.write("old",
                                                                 "abca\xC3\xA9"
                                                                 "bcab"),
                                                   {.length = 2}),
                                 "text");
  EXPECT_EQ(record.text->alphabet, "abc\xC3\xA9");
  EXPECT_THAT(to_json(record), Not(HasSubstr("\"tokens\":"))) << "as earlier versions wrote it";
  const SampleSet set = read_new_text_samples(folder_.write("new",
                                                            "\xC3\xA9"
                                                            "cbabca"),
                                              record);
  EXPECT_THAT(row_of(set.inputs, 0), ElementsAre(3, 2));
  EXPECT_THAT(row_of(set.targets, 0), ElementsAre(2, 1));
  EXPECT_THAT(
      error_of([&] { return read_new_text_samples(folder_.write("other", "abxa"), record); }),
      HasSubstr("other: character 3 is 'x'; accepted: characters of the text"));
}

TEST_F(DataRecords, ReadATextByItsPairsAndByItsBytes) {
  const auto record_as = [&](TextTokens tokens) {
    return kept(read_text_samples(folder_.write("old", "abc abd abc"),
                                  {.length = 2, .tokens = tokens, .vocabulary = 258}),
                "text");
  };
  const DataRecord record = record_as(TextTokens::pairs);
  EXPECT_THAT(record.text->pairs, ElementsAre(TokenPair{'a', 'b'}, TokenPair{' ', 256}));
  // In this text "cd" would be the most frequent pair.
  const auto file = folder_.write("new", "ab cdcdcd");
  const SampleSet set = read_new_text_samples(file, record);
  EXPECT_THAT(row_of(set.inputs, 0), ElementsAre(256, ' '));
  EXPECT_THAT(row_of(set.targets, 0), ElementsAre(' ', 'c'));
  const SampleSet bytes = read_new_text_samples(file, record_as(TextTokens::bytes));
  EXPECT_THAT(row_of(bytes.inputs, 0), ElementsAre('a', 'b'));

  const std::string good = to_json(record);
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string json = good;
    json.replace(json.find(from), from.size(), to);
    return error_of([&] { return parse_data_record(json, "data.json"); });
  };
  EXPECT_THAT(error("256", "257"), HasSubstr("a pair of tokens that do not precede it"));
  DataRecord longer = record;
  longer.text = std::make_shared<const TextEncoding>(TextEncoding{
      .tokens = TextTokens::pairs,
      .pairs = {{97, 97}, {256, 256}, {257, 257}, {258, 258}, {259, 259}, {260, 260}, {261, 97}}});
  longer.vocabulary = 263;
  EXPECT_THAT(error_of([&] { return parse_data_record(to_json(longer), "data.json"); }),
              HasSubstr("a pair that is larger than a word"));
  EXPECT_THAT(error("\"vocabulary\": 258", "\"vocabulary\": 259"),
              HasSubstr("a text of other samples"));
  EXPECT_THAT(error("\"pairs\",", "\"syllables\","), HasSubstr("'syllables'"));
}

TEST_F(DataRecords, AreRefusedWhereTheyAreDamaged) {
  const std::string good = to_json(table("a,c,y\n1,u,0\n2,v,1\n", {.standardise = true}));
  const auto error = [&](const std::string& json) {
    return error_of([&] { return parse_data_record(json, "data.json"); });
  };
  EXPECT_EQ(error(good), "no error");
  for (std::size_t size = 0; size + 2 < good.size(); ++size) {
    ASSERT_THAT(error(good.substr(0, size)), HasSubstr("data.json: is not a record of data"))
        << size;
  }
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string json = good;
    return json.replace(json.find(from), from.size(), to);
  };
  EXPECT_THAT(error(changed("\"label\": \"y\"", "\"label\": \"z\"")),
              HasSubstr("no column of labels"));
  EXPECT_THAT(error(changed("\"classes\": 2", "\"classes\": 3")), HasSubstr("other samples"));
  EXPECT_THAT(error(changed("\"classes\": 2", "\"classes\": -2")), HasSubstr("negative"));
  EXPECT_THAT(error(changed("\"rows\": 2", "\"rows\": -2")), HasSubstr("negative"));
}

}  // namespace
}  // namespace rubato
