#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>

#include "base/core/seconds.hpp"
#include "base/core/terminal/drawn_lines.hpp"
#include "base/core/terminal/terminal.hpp"
#include "base/core/text/text.hpp"
#include "base/core/vectors.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/exit_code.hpp"
#include "clients/app/line/output.hpp"
#include "fetch_data.hpp"

namespace rubato::app {

namespace {

constexpr double kMegabyte = 1e6;

std::vector<std::string> known_names() {
  return vector_of<std::string>(published_data(), &PublishedData::name);
}

// A progress bar on stderr if that is a terminal; nothing elsewhere.
class FetchLine {
 public:
  void show(std::string_view file, std::int64_t bytes, std::int64_t size) {
    if (!shown_ || (drawn_.drawn() && since_.seconds() < kSecondsBetween)) return;
    since_ = {};
    const double done = static_cast<double>(bytes) / static_cast<double>(size);
    drawn_.draw(
        line_with_bar({{std::string(file), 3},
                       {fmt::format("{:.1f} of {:.1f} MB", static_cast<double>(bytes) / kMegabyte,
                                    static_cast<double>(size) / kMegabyte),
                        2}},
                      drawable_columns(STDERR_FILENO), done, kNarrowest));
  }
  ~FetchLine() { drawn_.clear(); }
  FetchLine() = default;
  FetchLine(const FetchLine&) = delete;
  FetchLine& operator=(const FetchLine&) = delete;

 private:
  static constexpr double kSecondsBetween = 0.1;
  static constexpr int kNarrowest = 5;

  bool shown_ = can_redraw(STDERR_FILENO);
  DrawnLine drawn_{redraw_error};
  Stopwatch since_;
};

int get_data(std::span<const std::string> arguments) {
  const PublishedData* wanted = nullptr;
  std::filesystem::path to;
  std::string from;
  CommandLine line("rubato data get",
                   "Fetches a known data set, so that --data takes it by its name. A download that "
                   "was cut off continues; the size and SHA-256 of each file are compared with the "
                   "published ones before it is used.");
  line.operands(
      OperandCount::one, "NAME", fmt::format("the data set: {}", fmt::join(known_names(), ", ")),
      [&](const std::string& text) { wanted = &find_row("data set", text, published_data()); },
      known_names());
  line.option("to", "DIR", "the folder for its files; --data then takes it as KIND:DIR",
              "rubato/data/NAME in the cache, which is ~/.cache or $XDG_CACHE_HOME",
              [&](const std::string& text) {
                if (text.empty()) throw Error("'' is empty; accepted: a folder");
                to = text;
              });
  line.text("from", "URL", "the address of the folder with its files, instead of the publisher's",
            "", from);
  line.footer(
      "Examples:\n"
      "  rubato data get mnist\n"
      "  rubato data get cifar10 --to cifar\n"
      "Exit codes: 2 for a mistake in the options, 24 if files could not be written,\n"
      "31 for a server that does not answer, or not with the published files.");
  line.parse(arguments);
  const PublishedData& data = *wanted;
  const std::filesystem::path folder = to.empty() ? cached_folder(data.name) : to;
  const std::string use =
      to.empty() ? std::string(data.name) : fmt::format("{}:{}", data.kind, folder.string());
  const bool is_there = has_data(data, folder);
  if (!is_there) {
    try {
      FetchLine shown;
      fetch_data(data, from.empty() ? std::string(data.address) : from, folder,
                 [&](std::string_view file, std::int64_t bytes, std::int64_t size) {
                   shown.show(file, bytes, size);
                 });
    } catch (const FetchError& error) {
      print_error(fmt::format("rubato data get: {}\n", error.what()));
      return static_cast<int>(ExitCode::not_fetched);
    }
  }
  print_text(fmt::format("{} is {}in {}: rubato train --data {}\n", data.name,
                         is_there ? "already " : "", folder.string(), shell_quoted(use)));
  return 0;
}

constexpr std::array kDataCommands{Command{"get", "fetch a known data set", get_data}};

}  // namespace

constinit const CommandGroup kData{.name = "rubato data",
                                   .description = "Fetches known data sets.",
                                   .kind = "command",
                                   .commands = kDataCommands,
                                   .footer = "`rubato data get --help` says more."};

}  // namespace rubato::app
