// read_text_samples(): refuses a text with an Error, or reads what a training reads of it. The
// first byte is the length of the pieces, and chooses the tokens.

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
    const auto tokens = rubato::kTextTokens[*data % rubato::kTextTokens.size()].value;
    rubato::fuzz::read_samples(
        rubato::read_text_samples(file.path(), {.length = 1 + *data, .tokens = tokens}));
  } catch (const rubato::Error&) {
    // As it should be.
  }
  return 0;
}
