// `rubato data get`, and the data sets that --data then takes by name.

#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "app/run_program.hpp"
#include "loop/data/published_data.hpp"
#include "support/http_server.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::HttpServer;
using test::ProgramResult;

namespace fs = std::filesystem;

class DataGet : public testing::Test {
 protected:
  DataGet() {
    setenv("XDG_CACHE_HOME", (folder_.path() / "cache").c_str(), 1);
    setenv("no_proxy", "127.0.0.1", 1);
  }
  ~DataGet() override { unsetenv("XDG_CACHE_HOME"); }

  [[nodiscard]] ProgramResult run(const test::Words& arguments) const {
    return test::rubato(arguments, folder_.path());
  }

  test::TempFolder folder_;
};

TEST_F(DataGet, SaysWhatIsWrong) {
  EXPECT_EQ(run("data get").err,
            "rubato data get: no NAME is given; accepted: one of mnist, fashion-mnist, cifar10\n");
  const ProgramResult unknown = run("data get minst");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err,
              HasSubstr("rubato data get: unknown data set 'minst'; did you mean 'mnist'?"));
  EXPECT_THAT(run("data gte").err, StartsWith("rubato data: unknown command 'gte'"));
  EXPECT_EQ(run("data get mnist cifar10").code, 2);
  const ProgramResult nobody = run("data get mnist --from http://127.0.0.1:1/");
  EXPECT_EQ(nobody.code, 31);
  EXPECT_THAT(nobody.err, AllOf(StartsWith("rubato data get: http://127.0.0.1:1/train-images"),
                                HasSubstr("after 0 of 9912422 bytes; the same command continues")));
  folder_.write("file", "");
  EXPECT_EQ(run("data get mnist --to file/x --from http://127.0.0.1:1/").code, 24);
}

TEST_F(DataGet, IsToldWhereDataAreNotThereYet) {
  for (const PublishedData& known : published_data()) {
    const std::string name(known.name);
    const ProgramResult missing = run("train --model softmax --data " + name);
    EXPECT_EQ(missing.code, 2);
    EXPECT_EQ(missing.err,
              fmt::format("rubato train: --data: {0} is not in {1}; accepted: after "
                          "`rubato data get {0}`\n",
                          name, (folder_.path() / "cache/rubato/data" / name).string()));
  }
}

TEST_F(DataGet, LiesInTheCacheOfTheUser) {
  EXPECT_EQ(cached_folder("mnist"), folder_.path() / "cache/rubato/data/mnist");
  const std::string home = std::getenv("HOME");
  // A relative path is to be ignored.
  setenv("XDG_CACHE_HOME", "cache", 1);
  setenv("HOME", "/home/user", 1);
  EXPECT_EQ(cached_folder("mnist"), "/home/user/.cache/rubato/data/mnist");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(cached_folder("mnist"), "/home/user/.cache/rubato/data/mnist");
  setenv("HOME", home.c_str(), 1);
}

// The real files, from a server of the test.
TEST_F(DataGet, BringsFashionMnistAndTrainsOnIt) {
  const fs::path shared = fs::path(RUBATO_SHARED_DIR) / "data/fashion-mnist";
  if (!fs::exists(shared)) GTEST_SKIP() << "there is no " << shared;
  HttpServer server;
  for (const PublishedFile& file : find_published_data("fashion-mnist")->files) {
    server.put(std::string(file.name), {.content = test::read_file(shared / file.name)});
  }
  const std::string folder = folder_.path() / "cache/rubato/data/fashion-mnist";
  const std::string doc = test::read_file(RUBATO_DATA_MD);
  EXPECT_THAT(doc, HasSubstr("\nrubato data get fashion-mnist\n"
                             "rubato train --data fashion-mnist --model softmax --epochs 1\n"));
  ProgramResult result = run("data get fashion-mnist --from " + server.url());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, "fashion-mnist is in " + folder + ": rubato train --data fashion-mnist\n");
  result = run("data get fashion-mnist --from http://127.0.0.1:1");
  EXPECT_EQ(result.out,
            "fashion-mnist is already in " + folder + ": rubato train --data fashion-mnist\n");
  result = run("train --model softmax --epochs 1 --samples 5000 --data fashion-mnist --out run");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("softmax on fashion-mnist: 60000 training and 10000 test images"));
  // It is known by its name, not by where it lies.
  EXPECT_THAT(test::read_file(folder_.path() / "run/config.toml"),
              HasSubstr("data = \"fashion-mnist\""));
}

}  // namespace
}  // namespace rubato
