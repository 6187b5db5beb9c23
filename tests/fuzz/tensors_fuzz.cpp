// read_tensor_samples(): refuses a file with an Error, or reads what a training reads of it.

#include <cstddef>
#include <cstdint>

#include <rubato/base/error.hpp>

#include "loop/data/data_files.hpp"
#include "memory_file.hpp"
#include "read_samples.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const rubato::fuzz::MemoryFile file({data, size});
  try {
    rubato::fuzz::read_samples(rubato::read_tensor_samples(file.path()));
  } catch (const rubato::Error&) {
    // As it should be.
  }
  return 0;
}
