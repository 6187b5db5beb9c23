// read_csv_samples(): refuses a table with an Error, or reads what a training reads of it. The
// first byte says how.

#include <array>
#include <cstddef>
#include <cstdint>

#include <rubato/base/error.hpp>

#include "loop/data/data_files.hpp"
#include "memory_file.hpp"
#include "read_samples.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const rubato::fuzz::MemoryFile file({data + 1, size - 1});
  try {
    rubato::fuzz::read_samples(rubato::read_csv_samples(
        file.path(),
        {.standardise = (*data & 4U) != 0,
         .targets = rubato::kCsvTargets[*data % rubato::kCsvTargets.size()].value,
         .missing = rubato::kMissingValues[*data / 8 % rubato::kMissingValues.size()].value,
         .decimal = (*data & 64U) != 0 ? rubato::Decimal::comma : rubato::Decimal::point,
         .header = (*data & 128U) != 0 ? rubato::TableHeader::no : rubato::TableHeader::automatic,
         .separator = (*data & 2U) != 0 && (*data & 64U) != 0 ? " " : "",
         .comment = (*data & 128U) != 0 ? "#" : ""}));
  } catch (const rubato::Error&) {
    // As it should be.
  }
  return 0;
}
