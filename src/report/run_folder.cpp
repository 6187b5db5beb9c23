#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/report/run_folder.hpp>

namespace rubato {

namespace fs = std::filesystem;

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  if (fs::exists(path_, error)) {
    throw Error(
        fmt::format("{}: the run folder exists; accepted is a path that does not", path_.string()));
  }
  fs::create_directories(path_, error);
  if (error) {
    throw Error(fmt::format("{}: cannot make the run folder: {}", path_.string(), error.message()));
  }
}

void RunFolder::write(std::string_view name, std::string_view content) const {
  const fs::path final_path = file(name);
  fs::path beside = final_path;
  beside += ".part";
  std::ofstream out(beside, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  std::error_code error(out ? 0 : errno, std::generic_category());
  if (out) fs::rename(beside, final_path, error);
  if (error) {
    throw Error(fmt::format("{}: cannot write: {}", final_path.string(), error.message()));
  }
}

}  // namespace rubato
