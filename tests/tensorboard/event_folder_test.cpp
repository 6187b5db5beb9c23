#include "runs/tensorboard/event_folder.hpp"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "support/temp_folder.hpp"

namespace rubato {
namespace {

// TensorBoard reads files in the order of their names.
TEST(EventFolder, NamesItsFilesInTheirOrder) {
  const test::TempFolder temp;
  EventFolder folder(temp.path());
  const std::filesystem::path first = folder.next();
  temp.write(first.filename(), "events");
  const std::filesystem::path second = folder.next();
  EXPECT_TRUE(is_event_file_name(second.filename().string()));
  EXPECT_LT(first, second);
}

// A file of the year 2286 is there: the clock was set back since.
TEST(EventFolder, NamesItsFilesInTheirOrderThoughTheClockWasSetBack) {
  const test::TempFolder temp;
  const std::filesystem::path late =
      temp.write("events.out.tfevents.9999999998.0000.rubato", "events");
  EventFolder folder(temp.path());
  EXPECT_GT(folder.next(), late);
  EXPECT_THAT(folder.next().filename().string(),
              testing::StartsWith("events.out.tfevents.9999999998."));
}

}  // namespace
}  // namespace rubato
