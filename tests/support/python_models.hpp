#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "support/temp_folder.hpp"

namespace rubato::test {

/// The source of the built-in models as modules of PyTorch, without the package around it.
inline std::string python_models(const std::filesystem::path& file) {
  constexpr std::string_view kImport = "from ._rubato import Error\n";
  std::string source = read_file(file);
  const std::size_t place = source.find(kImport);
  EXPECT_NE(place, std::string::npos);
  if (place != std::string::npos) source.replace(place, kImport.size(), "Error = ValueError\n");
  return source;
}

}  // namespace rubato::test
