// parse() works in stages: it replaces spellings that everybody tries (kOtherNames), lets CLI11
// collect the texts of all values, sets the options marked by first(), reads the configuration
// file, sets all other options, and at last takes the operands. Setters are therefore called in the
// order of the options' names, not in that in which they were typed; only the values of one list
// keep their order. A message about an unknown option names its counterpart here if other programs
// have that option (kForeignOptions), and otherwise the nearest name. run_reporting_errors(), which
// every program calls around its command, maps exceptions to exit codes.

#include "command_line.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/loop/hosts.hpp>

#include "base/core/file.hpp"
#include "base/core/limits.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "clients/app/help/help.hpp"
#include "exit_code.hpp"
#include "output.hpp"

namespace rubato::app {

namespace {

// No argument after this one is an option.
constexpr std::string_view kBorder = "--";

// Options that everybody tries, and the option that each means wherever there is one of that name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOtherNames{
    {{"-o", "--out"}, {"-q", "--quiet"}, {"--learning-rate", "--lr"}}};

// Options of other programs, with what has their meaning in commands with a certain option.
struct ForeignOption {
  std::string_view name;
  std::string_view where;
  std::string_view meant;
};
constexpr std::string_view kBatchSize =
    "--trace N has the samples of a step, --minibatch N those of one pass of a core";
constexpr std::string_view kCores = "--cores N has the number of emulated cores";
constexpr std::array<ForeignOption, 9> kForeignOptions{
    {{"batch-size", "minibatch", kBatchSize},
     {"batch", "minibatch", kBatchSize},
     {"global-batch-size", "minibatch", kBatchSize},
     {"gpus", "cores", kCores},
     {"num-gpus", "cores", kCores},
     {"world-size", "cores", kCores},
     {"nproc-per-node", "cores", kCores},
     {"dry-run", "only-plan", "--only-plan trains nothing"},
     {"dry-run", "resume", "rubato plan shows what a trace will do, rubato simulate its time"}}};

// Puts the place of a wrong value in front of the message about it.
void set_from(std::string_view place, const CommandLine::Setter& set, const std::string& text) {
  try {
    set(text);
  } catch (const Error& error) {
    throw_error("{}: {}", place, error.what());
  }
}

}  // namespace

CommandLine::CommandLine(std::string name, std::string description)
    : app_(std::make_unique<CLI::App>(std::move(description), std::move(name))) {
  app_->set_help_flag();
}

CommandLine::CommandLine(const CommandTexts& texts) : CommandLine(texts.name, texts.description) {
  footer(texts.footer);
}

CommandLine::~CommandLine() = default;

void CommandLine::footer(std::string text) {
  app_->footer(std::move(text));
}

void CommandLine::add(const std::string& name, Entry entry) {
  entry.option->group(group_)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  entries_.emplace(name, std::move(entry));
}

void CommandLine::option(const std::string& name, const std::string& value, const std::string& help,
                         const std::string& shown_default, Setter set) {
  CLI::Option* const option = app_->add_option("--" + name, CLI::callback_t{}, help);
  option->type_name(value)->default_str(shown_default);
  add(name, {.option = option, .set = std::move(set)});
}

void CommandLine::flag(const std::string& name, const std::string& help, Setter set) {
  add(name, {.option = app_->add_flag("--" + name, help), .set = std::move(set)});
}

void CommandLine::flag(const std::string& name, const std::string& help, bool& target) {
  flag(name, help, [&target](const std::string& text) { target = parse_flag(text); });
}

void CommandLine::list(const std::string& name, const std::string& value, const std::string& help,
                       const std::string& shown_default, Setter set) {
  option(name, value, help, shown_default, std::move(set));
  entries_.at(name).each = true;
}

void CommandLine::flag_list(const std::string& name, const std::string& help, Setter set) {
  // CLI11 passes the empty default if there is no value.
  list(name, "true|false", help, "",
       [set = std::move(set)](const std::string& text) { set(text.empty() ? "true" : text); });
  entries_.at(name).option->expected(0, 1);
}

void CommandLine::operands(OperandCount count, const std::string& value, const std::string& help,
                           Setter take, std::vector<std::string> names) {
  // The option has a fixed name, which is never shown, because not every CLI11 accepts the
  // placeholder of a value as a name.
  CLI::Option* const option = app_->add_option("operands", CLI::callback_t{}, help);
  option->type_name(value)->expected(CLI::detail::expected_max_vector_size)->group(group_);
  operands_ = {.option = option, .set = std::move(take)};
  operand_count_ = count;
  operand_names_ = std::move(names);
}

void CommandLine::config(FileReader read) {
  // parse() reads the file before all other options.
  option("config", "FILE",
         "read options from FILE, TOML with a line 'name = value' for each; the arguments override "
         "it",
         "", [](const std::string&) {});
  read_file_ = std::move(read);
}

void CommandLine::config_of(const std::string& name, const std::string& value,
                            const std::string& help,
                            std::function<std::filesystem::path(const std::string&)> file,
                            bool is_operand) {
  // A name without dashes tells CLI11 that the value may be given without the option's name.
  CLI::Option* const option =
      app_->add_option((is_operand ? name + ",--" : "--") + name, CLI::callback_t{}, help);
  option->type_name(value);
  add(name, {.option = option, .set = [](const std::string&) {}});
  config_of(name, std::move(file));
}

void CommandLine::config_of(const std::string& name,
                            std::function<std::filesystem::path(const std::string&)> file) {
  files_of_.emplace(name, std::move(file));
}

void CommandLine::parse(std::span<const std::string> arguments) {
  std::vector<std::string> spelled(arguments.begin(), arguments.end());
  const auto border = std::ranges::find(spelled, kBorder);
  for (const auto& [tried, meant] : kOtherNames) {
    if (entries_.contains(tried.substr(tried.find_first_not_of('-')))) continue;
    if (!entries_.contains(meant.substr(2))) continue;
    for (auto argument = spelled.begin(); argument != border; ++argument) {
      if (argument->substr(0, argument->find('=')) == tried) {
        argument->replace(0, tried.size(), meant);
      }
    }
  }
  split(spelled);
  reject_missing_values();
  take_arguments(/*first=*/true);
  // The file comes first, so that the arguments override it.
  std::optional<std::filesystem::path> file;
  std::string of;
  const auto take = [&](const std::string& name, const auto& file_of) {
    if (!given_.contains(name)) return;
    if (file) {
      throw_error("--{}: --{} has a configuration of its own; accepted: one of them", of, name);
    }
    file = file_of(entries_.at(name).option->results().back());
    of = name;
  };
  take("config", [](const std::string& text) { return text; });
  for (const auto& [name, file_of] : files_of_) take(name, file_of);
  if (file) read_file_(*file);
  take_arguments(/*first=*/false);
  if (operands_.option != nullptr) take_operands();
}

void CommandLine::take_operands() const {
  const std::string& value = operands_.option->get_type_name();
  const std::vector<std::string>& given = operands_.option->results();
  const bool is_needed =
      operand_count_ == OperandCount::one || operand_count_ == OperandCount::some;
  const bool may_be_several =
      operand_count_ == OperandCount::any || operand_count_ == OperandCount::some;
  if (given.empty() && is_needed) {
    throw Error(operand_names_.empty() ? fmt::format("no {} is given; accepted: {} {}", value,
                                                     app_->get_name(), usage_of(help()))
                                       : fmt::format("no {} is given; accepted: one of {}", value,
                                                     fmt::join(operand_names_, ", ")));
  }
  if (given.size() > 1 && !may_be_several) {
    throw_error("'{}' and '{}'; accepted: one {}", short_line(given[0]), short_line(given[1]),
                value);
  }
  for (const std::string& operand : given) operands_.set(operand);
}

// Lets CLI11 collect the texts of the values.
void CommandLine::split(std::span<const std::string> arguments) {
  if (app_->get_help_ptr() == nullptr)
    app_->set_help_flag("-h,--help", "print this help")->group(group_);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app_->parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    throw HelpAsked(help());
  } catch (const CLI::ExtrasError&) {
    // An argument may be left over because the option before it took another option as its value.
    reject_missing_values();
    // The list may contain the border itself.
    const std::vector<std::string> extra = app_->remaining();
    const auto first = std::ranges::find_if(
        extra, [](const std::string& argument) { return argument != kBorder; });
    reject_extra(*first, std::ranges::find(extra.begin(), first, kBorder) != first);
  } catch (const CLI::ArgumentMismatch&) {
    // A value can be missing only at the end of the arguments.
    const std::string& last = arguments.back();
    reject_missing_value(entries_.find(last.substr(2, last.find('=') - 2))->first);
  } catch (const CLI::ParseError& error) {
    throw Error(error.what());
  }
  for (const auto& [name, entry] : entries_) {
    if (entry.option->count() > 0) given_.add(name);
  }
}

// Refuses options that were given another option as their value.
void CommandLine::reject_missing_values() const {
  for (const auto& [name, entry] : entries_) {
    if (entry.option->count() > 0 && entry.option->results().back().starts_with("--")) {
      reject_missing_value(name);
    }
  }
}

void CommandLine::take_arguments(bool first) {
  for (const auto& [name, entry] : entries_) {
    if (entry.first != first || entry.option->count() == 0) continue;
    const std::vector<std::string>& values = entry.option->results();
    for (std::size_t i = entry.each ? 0 : values.size() - 1; i < values.size(); ++i) {
      set_from("--" + name, entry.set, values[i]);
    }
  }
}

OptionHelp CommandLine::help_of(const CLI::Option& option) const {
  const bool is_operand = &option == operands_.option;
  const std::string name = is_operand ? "" : option.get_lnames().front();
  const bool stands_alone = !is_operand && option.get_positional();
  return {.group = option.get_group(),
          .name = name,
          .letter = option.get_snames().empty() ? "" : option.get_snames().front(),
          .value = option.get_type_name(),
          .help = option.get_description(),
          .shown_default = option.get_default_str(),
          .operands = is_operand     ? std::optional(operand_count_)
                      : stands_alone ? std::optional(OperandCount::optional)
                                     : std::nullopt,
          .names = is_operand ? operand_names_ : std::vector<std::string>()};
}

CommandHelp CommandLine::help() const {
  CommandHelp help{.name = app_->get_name(),
                   .description = app_->get_description(),
                   .rest = rest_,
                   .footer = app_->get_footer()};
  const CLI::App& app = *app_;
  for (const std::string& group : app.get_groups()) {
    for (const CLI::Option* option : app.get_options(
             [&](const CLI::Option* candidate) { return candidate->get_group() == group; })) {
      help.options.push_back(help_of(*option));
    }
  }
  return help;
}

std::vector<OptionHelp> CommandLine::descriptions() const {
  return vector_of(entries_, [this](const auto& named) { return help_of(*named.second.option); });
}

std::vector<std::string_view> CommandLine::option_names() const {
  return vector_of(entries_, [](const auto& named) -> std::string_view { return named.first; });
}

void CommandLine::reject_missing_value(const std::string& name) const {
  throw_error("--{} needs a value; accepted: --{} {}", name, name,
              entries_.at(name).option->get_type_name());
}

void CommandLine::reject_extra(const std::string& argument, bool is_behind_border) const {
  const bool option = argument.size() > 1 && argument.starts_with('-') && !is_behind_border;
  const std::string wrong = option ? unknown_option(argument.substr(0, argument.find('=')), "--")
                                   : fmt::format("unexpected argument '{}'", short_line(argument));
  throw_error("{}{} see {} --help", wrong, wrong.ends_with('?') ? "" : ";", app_->get_name());
}

std::string CommandLine::unknown_option(std::string_view typed, std::string_view dashes) const {
  for (const auto& [name, where, meant] : kForeignOptions) {
    if (typed == fmt::format("{}{}", dashes, name) && entries_.contains(where)) {
      return fmt::format("unknown option '{}'; {}", typed, meant);
    }
  }
  const auto names = vector_of(
      entries_, [&](const auto& named) { return fmt::format("{}{}", dashes, named.first); });
  const std::vector<std::string_view> views(names.begin(), names.end());
  return unknown_name_message("option", typed, views, false);
}

int run_reporting_errors(std::string_view program, const std::function<int()>& body) {
  const auto failed = [program](std::string_view message, ExitCode code) {
    print_error(fmt::format("{}: {}\n", program, message));
    return static_cast<int>(code);
  };
  const auto answered = [&] {
    try {
      return body();
    } catch (const HelpAsked& asked) {
      print_text(help_text(asked.help(), output_width()));
      return static_cast<int>(ExitCode::good);
    }
  };
  try {
    const int code = answered();
    // A command that returns output_lost has reported it, and after a signal the terminal may be
    // gone.
    constexpr int kOfSignals = 128;
    if (code != static_cast<int>(ExitCode::output_lost) && code <= kOfSignals) require_output();
    return code;
  } catch (const ReaderGone&) {
    // A reader such as `head` closes the pipe once it has what it wants.
    return static_cast<int>(ExitCode::output_lost);
  } catch (const OutputError& error) {
    return failed(error.what(), ExitCode::output_lost);
  } catch (const MemoryError& error) {
    return failed(error.what(), ExitCode::memory);
  } catch (const std::exception& error) {
    if (const auto memory = memory_failure(error, "smaller sizes or fewer threads need less")) {
      return failed(*memory, ExitCode::memory);
    }
    if (dynamic_cast<const HostLost*>(&error) != nullptr) {
      return failed(error.what(), ExitCode::host_lost);
    }
    if (dynamic_cast<const Error*>(&error) != nullptr) {
      return failed(error.what(), ExitCode::usage);
    }
    if (const auto* const refused =
            dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
      return failed(fmt::format("{}: {}", refused->path1().string(), refused->code().message()),
                    ExitCode::usage);
    }
    return failed(fmt::format("internal error: {}", error.what()), ExitCode::internal);
  } catch (...) {
    return failed("internal error: an exception that is not a std::exception", ExitCode::internal);
  }
}

void CommandLine::refuse_idle(std::string_view option, bool is_idle, std::string_view why,
                              std::string_view accepted) const {
  if (!is_idle || !given_.contains(option)) return;
  throw_error("--{}: {}; accepted: {}", option, why, accepted);
}

}  // namespace rubato::app
