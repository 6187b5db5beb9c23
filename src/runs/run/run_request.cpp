#include "run_request.hpp"

#include <system_error>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <rubato/base/error.hpp>

#include "base/core/system/file.hpp"
#include "runs/config/file/resume.hpp"

namespace rubato {

namespace {

using std::filesystem::path;

// The nearest folder above `folder` that exists.
path existing_parent(const path& folder) {
  std::error_code ignored;
  path parent = absolute_path(folder).parent_path();
  while (parent.has_relative_path() && !std::filesystem::exists(parent, ignored)) {
    parent = parent.parent_path();
  }
  return parent;
}

}  // namespace

void require_one_folder(const RunRequest& request) {
  if (request.continues && (request.resume || !request.out)) {
    throw Error(
        "--continue: it begins the run in a folder, or continues it there; accepted: with --out "
        "FOLDER, "
        "without --resume");
  }
  if (!request.resume || !request.out) return;
  throw Error("--out: a resumed run stays in its folder; accepted: --resume alone");
}

bool is_complete(const RunRequest& request) {
  std::error_code ignored;
  const path file = request.continues ? *request.out / "summary.json" : path();
  if (file.empty() || !std::filesystem::exists(file, ignored)) return false;
  const auto summary = nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  const auto epochs = summary.is_object() ? summary.find("epochs") : summary.end();
  if (epochs == summary.end() || !epochs->is_number_integer() || *epochs < request.run.epochs) {
    return false;
  }
  const RunConfiguration before = read_configuration(*request.out / "config.toml", {}, request.run);
  require_resumable(with_paths_from(*request.out, before),
                    with_paths_from(*request.out, request.run), ResumeFrom::checkpoint);
  return true;
}

RunLocation location_of(const RunRequest& request, const Tell& tell) {
  require_one_folder(request);
  if (request.resume) {
    RunLocation location = RunLocation::resume(*request.resume, request.run, request.checkpoint);
    for (const std::string& why : location.rejected()) tell(why);
    return location;
  }
  if (!request.out) return {};
  if (request.continues && is_there(*request.out)) {
    RunLocation location = RunLocation::continue_in(*request.out, request.run);
    for (const std::string& why : location.rejected()) tell(why);
    return location;
  }
  check_run_folder(*request.out);
  return RunLocation::create(*request.out);
}

void check_run_folder(const path& folder) {
  constexpr const char* kAccepted = "accepted: a folder that does not exist yet";
  if (folder.empty()) throw Error(fmt::format("--out: '' is empty; {}", kAccepted));
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(folder, ignored))) {
    throw Error(fmt::format("--out: '{}' exists already; {}", folder.string(), kAccepted));
  }
  const path parent = existing_parent(folder);
  if (!std::filesystem::is_directory(parent, ignored)) {
    throw Error(fmt::format("--out: cannot make '{}', '{}' is not a folder; {}", folder.string(),
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

void ask_to_resume(RunRequest& request, const std::string& text) {
  const path file(text);
  request.resume = file;
  request.checkpoint.reset();
  if (file.extension() != ".safetensors") return;
  const path folder = file.parent_path();
  // If the name has too few parts, the folders are relative to the working folder.
  request.resume = folder.empty() || folder == "." ? path("..")
                   : folder.has_parent_path()      ? folder.parent_path()
                                                   : path(".");
  request.checkpoint = file;
}

}  // namespace rubato
