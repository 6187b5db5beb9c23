// docs/findings.md: its commands run, in a short form (a real one takes an hour and a half), and
// print tables as it has them.

#include <filesystem>
#include <regex>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "app/run_program.hpp"
#include "support/idx_images.hpp"
#include "support/sanitizers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using testing::HasSubstr;

TEST(FindingsDoc, HasCommandsThatRun) {
  if (test::kSanitized) GTEST_SKIP() << "takes minutes with a sanitizer";
  const std::filesystem::path shared = RUBATO_SHARED_DIR "/data";
  if (!std::filesystem::exists(shared / "traces")) {
    GTEST_SKIP() << "no " << (shared / "traces").string();
  }
  const std::string doc = test::read_file(RUBATO_FINDINGS_MD);
  ASSERT_THAT(doc, HasSubstr("\n$ bench/findings/run build/release/rubato DATA findings\n"));
  ASSERT_THAT(doc, HasSubstr("\n$ bench/findings/tables findings\n"));

  const test::TempFolder folder;
  // Few and small images, under the names of the real ones: every run reads them again.
  for (const char* name : {"data/mnist", "data/fashion-mnist"}) {
    test::write_idx_images(folder, name, "train", 4096, 12);
    test::write_idx_images(folder, name, "t10k", 100, 12);
  }
  std::filesystem::create_directory_symlink(shared / "traces", folder.path() / "data/traces");
  const test::ProgramResult run =
      test::shell(fmt::format("'{}/run' \"$0\" data findings --model softmax --engine eigen --seed "
                              "1 --rule root --epochs 1 --quiet",
                              RUBATO_FINDINGS),
                  folder.path());
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* name : {"epochs", "iterations", "rates"}) {
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "findings" / name / "answer.md")) << name;
  }

  if (test::shell("command -v python3").code != 0) GTEST_SKIP() << "no python3 for the tables";
  const test::ProgramResult tables =
      test::shell(fmt::format("'{}/tables' findings", RUBATO_FINDINGS), folder.path());
  ASSERT_EQ(tables.code, 0) << tables.err;
  const std::regex header("\n(\\|[^\n]*\\| constant-2048 \\|[^\n]*)\n\\|---");
  int headers = 0;
  for (std::sregex_iterator it(doc.begin(), doc.end(), header), end; it != end; ++it) {
    EXPECT_THAT(tables.out, HasSubstr((*it)[1].str()));
    ++headers;
  }
  EXPECT_EQ(headers, 5);
}

}  // namespace
}  // namespace rubato
