#include "app/run_folder_name.hpp"

#include <system_error>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <rubato/core/error.hpp>

#include "core/file.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

// The nearest folder above `folder` that exists.
path existing_parent(const path& folder) {
  std::error_code ignored;
  path parent = std::filesystem::absolute(folder).lexically_normal().parent_path();
  while (parent.has_relative_path() && !std::filesystem::exists(parent, ignored)) {
    parent = parent.parent_path();
  }
  return parent;
}

}  // namespace

void check_run_folder(const path& folder) {
  constexpr const char* kAccepted = "accepted: a folder that does not exist yet";
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(folder, ignored))) {
    throw Error(fmt::format("--out: '{}' exists already; {}", folder.string(), kAccepted));
  }
  const path parent = existing_parent(folder);
  if (!std::filesystem::is_directory(parent, ignored)) {
    throw Error(fmt::format("--out: cannot make '{}', '{}' is no folder; {}", folder.string(),
                            parent.string(), kAccepted));
  }
  if (access(parent.c_str(), W_OK | X_OK) != 0) {
    throw Error(fmt::format("--out: cannot make '{}', '{}' may not be written to; {}",
                            folder.string(), parent.string(), kAccepted));
  }
}

path default_run_folder(std::chrono::system_clock::time_point now) {
  const std::string name = fmt::format("runs/{:%Y-%m-%dT%H-%M-%SZ}",
                                       fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
  return unused_path(name);
}

ResumePoint resume_point(const std::string& text) {
  const path file(text);
  if (file.extension() != ".safetensors") return {.run = file, .checkpoint = {}};
  const path folder = file.parent_path();
  // Where too little of the name is there, the folders above are those of this process.
  const path run = folder.empty() || folder == "." ? path("..")
                   : folder.has_parent_path()      ? folder.parent_path()
                                                   : path(".");
  return {.run = run, .checkpoint = file};
}

}  // namespace rubato::app
