// Fetching data sets, from a server on this machine that answers well and badly.

#include "clients/app/inputs/fetch_data.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/core/file.hpp"
#include "base/state/sha256.hpp"
#include "support/error_of.hpp"
#include "support/http_server.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato::app {
namespace {

using test::HttpServer;

namespace fs = std::filesystem;

std::string some_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * i >> 3U);
  return bytes;
}

class FetchData : public testing::Test {
 protected:
  // Two files.
  FetchData() {
    server_.put("first", {.content = first_});
    server_.put("second", {.content = second_});
  }

  void fetch() {
    fetch_data(data_, server_.url(), folder(),
               [this](std::string_view file, std::int64_t bytes, std::int64_t size) {
                 progress_ = fmt::format("{} {} of {}", file, bytes, size);
               });
  }
  [[nodiscard]] std::string error() {
    try {
      fetch();
    } catch (const FetchError& error) {
      return error.what();
    }
    return "no FetchError";
  }
  [[nodiscard]] fs::path folder() const { return temp_.path() / "data/set"; }
  [[nodiscard]] std::string content(const std::string& name) const {
    return test::read_file(folder() / name);
  }

  std::string first_ = some_bytes(100'000);
  std::string second_ = some_bytes(1'000);
  std::string sum_first_ = Sha256::hex_of(first_);
  std::string sum_second_ = Sha256::hex_of(second_);
  std::array<PublishedFile, 2> files_{
      {{"first", 100'000, sum_first_}, {"second", 1'000, sum_second_}}};
  PublishedData data_{.name = "set", .files = files_};
  HttpServer server_;
  test::TempFolder temp_;
  std::string progress_;
};

TEST_F(FetchData, BringsFilesAndKeepsThem) {
  EXPECT_FALSE(has_data(data_, folder()));
  fetch();
  EXPECT_TRUE(has_data(data_, folder()));
  EXPECT_EQ(content("first"), first_);
  EXPECT_EQ(content("second"), second_);
  EXPECT_EQ(progress_, "second 1000 of 1000");
  EXPECT_FALSE(fs::exists(folder() / "first.part"));
  fetch();
  EXPECT_THAT(server_.requests(), ElementsAre("first", "second")) << "nothing comes twice";
}

TEST_F(FetchData, BringsADamagedFileAgain) {
  fetch();
  std::string damaged = second_;
  damaged[500] ^= 1;
  temp_.write("data/set/second", damaged);
  EXPECT_FALSE(has_data(data_, folder()));
  fetch();
  EXPECT_EQ(content("second"), second_);
  EXPECT_THAT(server_.requests(), ElementsAre("first", "second", "second"));
}

TEST_F(FetchData, ContinuesWhatWasCutOff) {
  server_.put("first", {.content = first_, .cut = 60'000});
  EXPECT_THAT(error(),
              AllOf(HasSubstr("/first: "), HasSubstr(" after 60000 of 100000 bytes; the same "
                                                     "command continues")));
  EXPECT_EQ(content("first.part"), first_.substr(0, 60'000));
  EXPECT_FALSE(fs::exists(folder() / "first"));
  fetch();
  EXPECT_EQ(content("first"), first_);
  EXPECT_THAT(server_.requests(), ElementsAre("first", "first from 60000", "second"));
}

TEST_F(FetchData, NoticesAnEndThatCameTooEarlyWhereNoLengthIsSaid) {
  server_.put("first", {.content = first_, .cut = 60'000, .has_no_length = true});
  EXPECT_THAT(error(), HasSubstr(" after 60000 of 100000 bytes"));
  fetch();
  EXPECT_EQ(content("first"), first_);
}

TEST_F(FetchData, BeginsAnewWhereTheServerGivesNoParts) {
  temp_.write("data/set/first.part", first_.substr(0, 10));
  server_.put("first", {.content = first_, .ignores_ranges = true});
  fetch();
  EXPECT_EQ(content("first"), first_);
  EXPECT_THAT(server_.requests(), ElementsAre("first from 10", "first", "second"));
}

TEST_F(FetchData, BeginsAnewWhereMoreIsThereThanThereShouldBe) {
  temp_.write("data/set/first.part", first_ + "more");
  fetch();
  EXPECT_EQ(content("first"), first_);
}

TEST_F(FetchData, RefusesAnotherContent) {
  std::string other = first_;
  other[7] ^= 1;
  server_.put("first", {.content = other});
  EXPECT_THAT(error(), AllOf(HasSubstr("/first: its SHA-256 is " + Sha256::hex_of(other)),
                             HasSubstr("accepted: " + sum_first_)));
  EXPECT_FALSE(fs::exists(folder() / "first"));
  EXPECT_FALSE(fs::exists(folder() / "first.part")) << "it would not get better";
}

// Its end is of another file, or its beginning was damaged.
TEST_F(FetchData, BeginsAnewWhereWhatWasContinuedIsWrong) {
  temp_.write("data/set/first.part", "damaged");
  fetch();
  EXPECT_EQ(content("first"), first_);
  EXPECT_THAT(server_.requests(), ElementsAre("first from 7", "first", "second"));
  // As long as it should be, nothing is asked for before.
  fs::remove(folder() / "first");
  temp_.write("data/set/first.part", std::string(first_.size(), 'x'));
  fetch();
  EXPECT_EQ(content("first"), first_);
}

// More of another file than the server has of this one.
TEST_F(FetchData, BeginsAnewWhereTheServerHasNoSuchPart) {
  server_.put("first", {.content = "<html>"});
  temp_.write("data/set/first.part", first_.substr(0, 60'000));
  EXPECT_THAT(error(), HasSubstr("the server answers with 6 bytes"));
  EXPECT_FALSE(fs::exists(folder() / "first.part"));
}

TEST_F(FetchData, RefusesAnotherSize) {
  server_.put("first", {.content = first_ + "x"});
  EXPECT_THAT(error(), HasSubstr("/first: is longer than 100000 bytes"));
  EXPECT_LE(content("first.part").size(), 100'000U);
  fs::remove(folder() / "first.part");
  server_.put("first", {.content = first_.substr(1)});
  EXPECT_THAT(error(), HasSubstr("the server answers with 99999 bytes"));
  EXPECT_FALSE(fs::exists(folder() / "first"));
}

TEST_F(FetchData, SaysThatThereIsNoFileOrNoServer) {
  data_.name = "other";
  files_[0].name = "third";
  EXPECT_THAT(error(), HasSubstr("/third: the server answers 404; accepted: another --from"));
  const std::string none =
      error_of([&] { fetch_data(data_, "http://127.0.0.1:1", folder(), [](auto, auto, auto) {}); });
  EXPECT_THAT(none, HasSubstr("http://127.0.0.1:1/third: "));
  EXPECT_THAT(
      error_of([&] { fetch_data(data_, "file:///etc", folder(), [](auto, auto, auto) {}); }),
      HasSubstr("file:///etc/third: Unsupported protocol"));
}

TEST_F(FetchData, SaysThatAFolderCannotBeWritten) {
  temp_.write("data", "a file");
  EXPECT_THROW(fetch(), OutputError);
}

class FetchArchive : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(temp_.path() / "made/set");
    temp_.write("made/set/readme", "words");
  }
  // Serves these bytes as the archive.
  void serve(const std::string& packed) {
    sum_ = Sha256::hex_of(packed);
    files_[0] = {"set.tar.gz", static_cast<std::int64_t>(packed.size()), sum_};
    server_.put("set.tar.gz", {.content = packed});
  }
  // What was written to made/set.
  [[nodiscard]] std::string packed() const {
    const fs::path file = temp_.path() / "packed";
    const std::string command =
        fmt::format("tar -C '{}' -czf '{}' set", (temp_.path() / "made").string(), file.string());
    EXPECT_EQ(std::system(command.c_str()), 0);
    return test::read_file(file);
  }
  void fetch() {
    fetch_data(data_, server_.url(), folder_, [](auto, auto, auto) {});
  }

  test::TempFolder temp_;
  fs::path folder_ = temp_.path() / "set";
  HttpServer server_;
  std::string sum_;
  std::array<PublishedFile, 1> files_{};
  std::array<std::string_view, 2> unpacked_{"a.bin", "b.bin"};
  PublishedData data_{.name = "set", .files = files_, .unpacked = unpacked_, .unpacked_size = 700};
};

TEST_F(FetchArchive, IsUnpacked) {
  temp_.write("made/set/a.bin", some_bytes(700));
  temp_.write("made/set/b.bin", some_bytes(700));
  serve(packed());
  fetch();
  EXPECT_TRUE(has_data(data_, folder_));
  EXPECT_EQ(test::read_file(folder_ / "a.bin"), some_bytes(700));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2) << "nothing else is left";
}

TEST_F(FetchArchive, ThatLacksFilesOrIsNoneIsRefused) {
  temp_.write("made/set/a.bin", some_bytes(700));
  temp_.write("made/set/b.bin", some_bytes(699));
  serve(packed());
  EXPECT_THAT(error_of([&] { fetch(); }), HasSubstr("set.tar.gz.part: cannot be unpacked"));
  EXPECT_FALSE(has_data(data_, folder_));
  serve(std::string(600, 'x'));
  fs::remove_all(folder_);
  EXPECT_THAT(error_of([&] { fetch(); }), HasSubstr("set.tar.gz.part: cannot be unpacked"));
}

}  // namespace
}  // namespace rubato::app
