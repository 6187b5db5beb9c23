#include "resume.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>

#include "runs/config/options/run_option.hpp"

namespace rubato {

void require_resumable(const RunConfiguration& before, const RunConfiguration& now,
                       ResumeFrom from) {
  std::vector<std::string> differences;
  std::vector<std::string> free;
  for (const RunOption& option : run_options()) {
    if (option.resume == OnResume::free) free.push_back("--" + option.name);
    const auto then = option.text(before);
    const auto is = option.text(now);
    if (option.resume == OnResume::free) continue;
    if (bound_text(option, before) == bound_text(option, now)) continue;
    // The checkpoint contains the contents of these files.
    const bool of_files = option.resume == OnResume::by_file && then && is &&
                          names_file(option, *then) && names_file(option, *is);
    const bool by_content = option.resume == OnResume::by_content || of_files;
    if (by_content && from == ResumeFrom::checkpoint) continue;
    differences.push_back(fmt::format("--{} was {}, is {}", option.name, then.value_or("not set"),
                                      is.value_or("not set")));
  }
  if (differences.empty()) return;
  throw Error(fmt::format(
      "the run was trained with other options: {}\nmay be changed: {}{}",
      fmt::join(differences, ", "), fmt::join(free, ", "),
      from == ResumeFrom::checkpoint ? ", and rows of the trace that no step has used" : ""));
}

}  // namespace rubato
