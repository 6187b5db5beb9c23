#pragma once

#include <cstdlib>
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

inline bool python_has_torch() {
  static const bool has = std::system("/usr/bin/python3 -c 'import torch' >/dev/null 2>&1") == 0;
  return has;
}

/// Runs a program of Python in the folder, expects that it succeeds, and returns what it prints.
inline std::string run_python(const TempFolder& folder, const std::string& program) {
  folder.write("program.py", program);
  const std::string command =
      "cd '" + folder.path().string() + "' && /usr/bin/python3 program.py >out 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_file(folder.path() / "out");
  return read_file(folder.path() / "out");
}

}  // namespace rubato::test
