#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/core/process.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

// Lets Python find the package of a build folder or a wheel; that of Debian it finds by itself.
void add_package_to_path() {
  std::error_code ignored;
  const path folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const path& place : {folder / "python", folder / ".." / ".."}) {
    if (!exists(place / "rubato" / "conformance", ignored)) continue;
    const char* before = std::getenv("PYTHONPATH");  // NOLINT(concurrency-mt-unsafe): one thread
    const std::string after = before == nullptr ? "" : fmt::format(":{}", before);
    setenv("PYTHONPATH", (place.string() + after).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
}

}  // namespace

int conform_command(std::span<const std::string> arguments) {
  CommandLine line("rubato conform",
                   "Checks elastic training, yours or anybody's: a sampler, a training loop, or a "
                   "command that continues from checkpoints. Prints the smallest case in which a "
                   "check fails.");
  const auto leave_to_python = [](const std::string&) {};
  line.operands(OperandCount::optional, "MODULE:NAME",
                "a function or a command in a Python module of this folder", leave_to_python);
  line.option("level", "sampler|loop|process", "what it is; seen from its parameters if not given",
              "", leave_to_python);
  line.option("last", "short|drop", "what happens to the last samples of an epoch", "short",
              leave_to_python);
  line.option("schedule", "steps|samples|epochs", "what the schedule of rates counts", "steps",
              leave_to_python);
  line.option("batch", "any|fixed|per-rank", "whether the batch depends on the ranks", "any",
              leave_to_python);
  line.flag("divisible", "only batches that all ranks share equally", leave_to_python);
  line.flag("flat", "rates of one, for formats with few digits", leave_to_python);
  line.option("ranks", "N", "the most ranks of a case", "4", leave_to_python);
  line.option("cases", "N", "the number of cases", "200", leave_to_python);
  line.option("case", "CASE", "one case, as a report prints it", "", leave_to_python);
  line.option("seed", "N", "draw other cases", "", leave_to_python);
  line.option("trace", "FILE", "take the ranks of the cases from parts of this trace", "",
              leave_to_python);
  line.list("waive", "CHECK=REASON", "a check that need not pass, and why", "", leave_to_python);
  line.flag("list", "print the checks", leave_to_python);
  line.footer(
      "Python is python3, or what RUBATO_PYTHON names; it needs Hypothesis (Debian:\n"
      "python3-hypothesis).\n"
      "Exit codes: 0 if all checks pass, 32 if one fails.\n"
      "Example:\n"
      "  rubato conform my_training:train");
  line.parse(arguments);
  add_package_to_path();
  const char* chosen = std::getenv("RUBATO_PYTHON");  // NOLINT(concurrency-mt-unsafe): one thread
  const std::string python = chosen == nullptr ? "python3" : chosen;
  std::vector<std::string> words{python, "-m", "rubato.conformance"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  execvp(python.c_str(), exec_pointers(words).data());
  throw_error("cannot start {}: {}", python, std::generic_category().message(errno));
}

}  // namespace rubato::app
