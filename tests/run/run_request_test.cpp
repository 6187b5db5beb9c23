#include "runs/run/run_request.hpp"

#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <unistd.h>

#include <rubato/runs/run_configuration.hpp>

#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

std::string error_with(const std::filesystem::path& folder) {
  return error_of([&] { check_run_folder(folder); });
}

TEST(RunFolder, MayNotExistNorLieInAFile) {
  const test::TempFolder folder;
  const auto file = folder.write("file", "");
  const auto link = folder.path() / "link";
  std::filesystem::create_symlink("nowhere", link);
  const std::string accepted = "; accepted: a folder that does not exist yet";
  for (const auto& path : {folder.path(), file, link}) {
    EXPECT_EQ(error_with(path), "--out: '" + path.string() + "' exists already" + accepted);
  }
  EXPECT_EQ(error_with(file / "a" / "b"), "--out: cannot make '" + (file / "a" / "b").string() +
                                              "', '" + file.string() + "' is not a folder" +
                                              accepted);
  EXPECT_EQ(error_with(""), "--out: '' is empty" + accepted);
  EXPECT_EQ(error_with(folder.path() / "a"), "no error");
  EXPECT_EQ(error_with(folder.path() / "a" / "b" / "c/"), "no error");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a"));
}

TEST(RunFolder, MayNotLieWhereNothingMayBeWritten) {
  const test::TempFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read);
  if (access(folder.path().c_str(), W_OK) == 0) GTEST_SKIP() << "this user may write everywhere";
  EXPECT_THAT(error_with(folder.path() / "a"), testing::HasSubstr("may not be written to"));
}

TEST(RunFolder, IsNamedAfterTheTimeAndNumberedWithinASecond) {
  const test::TempFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::chrono::system_clock::time_point time{std::chrono::seconds(1'717'156'805)};
  for (const char* const name : {"", "-2", "-3"}) {
    EXPECT_EQ(default_run_folder(time), std::string("runs/2024-05-31T12-00-05Z") + name);
    std::filesystem::create_directories(default_run_folder(time));
  }
  std::filesystem::current_path(before);
}

// RUN/checkpoints/FILE with as much of it as is typed in one of these folders.
TEST(RunRequest, GoesOnWithAFolderOrOneOfItsCheckpoints) {
  const auto asked = [](const std::string& text) {
    RunRequest request;
    ask_to_resume(request, text);
    return request;
  };
  EXPECT_EQ(asked("runs/a").resume, "runs/a");
  EXPECT_EQ(asked("runs/a").checkpoint, std::nullopt);
  for (const auto& [text, run] :
       std::map<std::string, std::string>{{"runs/a/checkpoints/step-9.safetensors", "runs/a"},
                                          {"checkpoints/step-9.safetensors", "."},
                                          {"./step-9.safetensors", ".."},
                                          {"step-9.safetensors", ".."}}) {
    EXPECT_EQ(asked(text).resume, run) << text;
    EXPECT_EQ(asked(text).checkpoint, text);
  }
}

TEST(RunRequest, IsCompleteWhereTheRunHasAllOfItsEpochs) {
  const test::TempFolder folder;
  RunRequest request{.out = folder.path(), .continues = true};
  request.run.epochs = 3;
  EXPECT_FALSE(is_complete(request)) << "nothing is there";
  folder.write("config.toml", to_toml(request.run));
  EXPECT_FALSE(is_complete(request)) << "it has not ended";
  folder.write("summary.json", R"({"epochs": 3})");
  EXPECT_TRUE(is_complete(request));
  request.run.epochs = 4;
  EXPECT_FALSE(is_complete(request));
  request.continues = false;
  request.run.epochs = 3;
  EXPECT_FALSE(is_complete(request)) << "a new run is asked for";
}

// The process was killed before it had written its configuration.
TEST(RunRequest, BeginsTheRunInAFolderThatHasNothingYet) {
  const test::TempFolder folder;
  const RunLocation location = location_of({.out = folder.path(), .continues = true}, {});
  EXPECT_EQ(location.path(), folder.path());
  EXPECT_FALSE(location.from());
}

TEST(RunRequest, IsForOneFolderOrNone) {
  const test::TempFolder folder;
  EXPECT_TRUE(location_of({}, {}).path().empty());
  EXPECT_EQ(location_of({.out = folder.path() / "a"}, {}).path(), folder.path() / "a");
  EXPECT_EQ(error_of([&] { return location_of({.out = folder.path() / "a", .resume = "b"}, {}); }),
            "--out: a resumed run stays in its folder; accepted: --resume alone");
}

}  // namespace
}  // namespace rubato
