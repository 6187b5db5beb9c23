#include "completions.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/runs/run_configuration.hpp>

#include "base/core/text/text.hpp"
#include "clients/app/commands.hpp"

namespace rubato::app {

namespace {

bool is_upper(char c) {
  return std::isupper(static_cast<unsigned char>(c)) != 0;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0 ||
           std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-';
  });
}

// Returns the kind of path that a placeholder in capitals ("FILE", "DIR") stands for.
Paths paths_of(std::string_view capitals) {
  if (capitals.find("FILE") != std::string_view::npos) return Paths::files;
  return capitals == "DIR" || capitals == "RUN" ? Paths::folders : Paths::none;
}

// Reads one form of a value: "digits", "csv:FILE", "FILE". Empty if there is nothing to complete.
std::optional<ValueForm> form_of(std::string_view text) {
  if (is_word(text)) return ValueForm{.word = std::string(text)};
  const std::size_t capitals =
      static_cast<std::size_t>(std::ranges::find_if(text, is_upper) - text.begin());
  const std::string_view word = text.substr(0, capitals);
  const bool leads = word.ends_with(':') && is_word(word.substr(0, word.size() - 1));
  if (!word.empty() && !leads) return std::nullopt;
  const Paths paths = paths_of(text.substr(capitals));
  if (word.empty() && paths == Paths::none) return std::nullopt;
  ValueForm form{.word = std::string(word), .paths = paths};
  // "RUN/checkpoints/FILE"
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    form.within = text.substr(slash, text.rfind('/') + 1 - slash);
  }
  return form;
}

// The word ends in ':' if the strategy has arguments that must be given.
std::optional<ValueForm> form_of(const Strategy& strategy) {
  auto form = form_of(strategy.name);
  if (!form) return std::nullopt;
  form->help = strategy.help;
  if (form->paths == Paths::none) form->arguments = strategy.arguments;
  const bool needs_more = std::ranges::any_of(
      strategy.arguments, [](const Argument& argument) { return !argument.example.empty(); });
  if (needs_more && is_word(form->word)) form->word += ':';
  return form;
}

class Forms {
 public:
  // Adds a form unless there is one of the same word and kind of path: the first counts.
  void add(std::optional<ValueForm> form) {
    if (!form) return;
    const auto same = [&](const ValueForm& known) {
      return known.word == form->word && known.paths == form->paths;
    };
    if (std::ranges::none_of(forms_, same)) forms_.push_back(*std::move(form));
  }
  void add(const Family& family) {
    for (const Strategy& strategy : family.strategies) add(form_of(strategy));
  }

  [[nodiscard]] std::vector<ValueForm> all() && { return std::move(forms_); }

 private:
  std::vector<ValueForm> forms_;
};

// Returns whether a placeholder stands for a name of the family, as "GENERATOR" does for
// generators.
bool stands_for(std::string_view capitals, const Family& family) {
  std::string lower;
  for (const char c : capitals) {
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return family.name == lower + 's';
}

}  // namespace

std::vector<ValueForm> value_forms(const OptionHelp& option) {
  Forms forms;
  // A flag takes an optional value.
  const std::string value = option.value.empty() ? "true|false" : option.value;
  const std::vector<std::string_view> parts = split_at(value, '|');
  for (const Family& family : families()) {
    const bool is_taken = !option.name.empty() && family.option == "--" + option.name;
    if (is_taken || std::ranges::any_of(
                        parts, [&](std::string_view part) { return stands_for(part, family); })) {
      forms.add(family);
    }
  }
  for (const std::string& name : option.names) forms.add(form_of(name));
  // A value with blanks is a phrase: "N steps|epochs".
  if (value.find(' ') == std::string::npos) {
    for (const std::string_view part : parts) forms.add(form_of(part));
  }
  return std::move(forms).all();
}

namespace {

using Words = std::span<const std::string>;

class Completing {
 public:
  explicit Completing(const std::string& word) : word_(word) {}

  void add(std::string candidate, std::string_view help) {
    if (candidate.starts_with(word_)) {
      found_.candidates.push_back({std::move(candidate), std::string(help)});
    }
  }

  // Adds the completions of the option's value, which begins at `begin` in the word.
  void add_value(const OptionHelp& option, std::size_t begin) {
    const std::vector<ValueForm> forms = value_forms(option);
    add_arguments(forms, begin);
    begin = last_of_several(option, forms, begin);
    const std::string before = word_.substr(0, begin);
    const std::string_view value = std::string_view(word_).substr(begin);
    for (const ValueForm& form : forms) {
      const bool is_whole = form.word.ends_with(':') && value.starts_with(form.word);
      if (!form.word.empty() && !is_whole) add(before + form.word, form.help);
      if (form.paths == Paths::none || (!form.word.empty() && !is_whole)) continue;
      const bool is_within = value.find(form.within) != std::string_view::npos;
      // A shell that completes files completes folders as well.
      found_.paths = std::max(found_.paths, is_within ? form.paths : Paths::folders);
      found_.before = before + form.word;
    }
  }

  [[nodiscard]] Completions found() && { return std::move(found_); }

 private:
  // Adds the arguments of the name before the last ':', as in "adascale:sm", or the values of the
  // last of these arguments.
  void add_arguments(const std::vector<ValueForm>& forms, std::size_t begin) {
    const std::size_t colon = word_.rfind(':');
    if (colon == std::string::npos || colon < begin) return;
    const std::size_t divided = word_.find_last_of(",+", colon);
    const std::size_t name_begin =
        divided == std::string::npos ? begin : std::max(begin, divided + 1);
    const std::string_view name = std::string_view(word_).substr(name_begin, colon - name_begin);
    const auto form = std::ranges::find_if(forms, [&](const ValueForm& candidate) {
      const std::string_view word = candidate.word;
      return word.substr(0, word.find(':')) == name;
    });
    if (form == forms.end()) return;
    const std::string given = word_.substr(colon + 1);
    const std::size_t comma = given.rfind(',');
    const std::string last = comma == std::string::npos ? given : given.substr(comma + 1);
    const std::string before = word_.substr(0, word_.size() - last.size());
    for (const Argument& argument : form->arguments) {
      const std::string key = argument.name + '=';
      if (last.starts_with(key)) {
        for (const std::string& choice : choices_of(argument))
          add((before + key).append(choice), "");
      } else if (given.find(key) == std::string::npos) {
        add(before + key, argument.accepted);
      }
    }
  }
  static std::vector<std::string> choices_of(const Argument& argument) {
    if (argument.kind == ArgumentKind::flag) return {"true", "false"};
    return argument.choices;
  }
  // Returns where the last value begins: after a comma if the option takes several values, or after
  // a '+', which joins names.
  [[nodiscard]] std::size_t last_of_several(const OptionHelp& option,
                                            const std::vector<ValueForm>& forms,
                                            std::size_t begin) const {
    const bool has_paths =
        std::ranges::any_of(forms, [](const ValueForm& form) { return form.paths != Paths::none; });
    for (std::size_t i = begin; i < word_.size(); ++i) {
      const bool divides =
          (word_[i] == ',' && option.takes_several) || (word_[i] == '+' && !has_paths);
      if (divides) begin = i + 1;
    }
    return begin;
  }

  const std::string& word_;
  Completions found_;
};

const OptionHelp* find_option(const CommandHelp& help, std::string_view name) {
  const auto found = std::ranges::find(help.options, name, &OptionHelp::name);
  return found == help.options.end() ? nullptr : &*found;
}

bool is_operand(const OptionHelp& option) {
  return option.operands.has_value();
}

// Returns the option in front of the last word if that word is its value, else null.
const OptionHelp* option_before(const CommandHelp& help, Words words) {
  if (words.size() == 1) return nullptr;
  const std::string& before = words[words.size() - 2];
  if (!before.starts_with("--")) return nullptr;
  const OptionHelp* const option = find_option(help, std::string_view(before).substr(2));
  return option != nullptr && !option->value.empty() ? option : nullptr;
}

void add_options(const CommandHelp& help, Completing& completing) {
  for (const OptionHelp& option : help.options) {
    if (!option.name.empty()) completing.add("--" + option.name, option.help);
  }
}

Completions options_and_values(const CommandHelp& help, Words words) {
  const std::string& word = words.back();
  Completing completing(word);
  if (word.starts_with("--") && word.find('=') != std::string::npos) {
    const std::size_t end = word.find('=');
    const OptionHelp* const option = find_option(help, std::string_view(word).substr(2, end - 2));
    if (option != nullptr) completing.add_value(*option, end + 1);
  } else if (word.starts_with('-')) {
    add_options(help, completing);
  } else if (const OptionHelp* const option = option_before(help, words)) {
    completing.add_value(*option, 0);
  } else if (const auto operand = std::ranges::find_if(help.options, &is_operand);
             operand != help.options.end()) {
    completing.add_value(*operand, 0);
  }
  return std::move(completing).found();
}

Completions commands_and_options(const Command& command, const std::string& word) {
  Completing completing(word);
  for (const Command& one : command.commands()) completing.add(std::string(one.name), one.summary);
  if (word.starts_with('-')) add_options(help_of(command), completing);
  return std::move(completing).found();
}

// Completes the arguments after "--", which are a command of this program. Its name is the first
// word of `help.rest`.
Completions passed_on(const CommandHelp& help, Words words) {
  if (words.size() > 1) return completions(program(), words);
  Completing completing(words.front());
  completing.add(help.rest.substr(0, help.rest.find(' ')), "");
  return std::move(completing).found();
}

}  // namespace

Completions completions(const Command& command, Words words) {
  if (words.empty()) return {};
  if (command.commands != nullptr) {
    if (words.size() == 1) return commands_and_options(command, words.front());
    const auto table = command.commands();
    const auto found = std::ranges::find(table, words.front(), &Command::name);
    return found == table.end() ? Completions() : completions(*found, words.subspan(1));
  }
  const CommandHelp help = help_of(command);
  const auto border = std::ranges::find(words.first(words.size() - 1), "--");
  const auto behind = static_cast<std::size_t>(border - words.begin()) + 1;
  if (behind < words.size() && !help.rest.empty()) return passed_on(help, words.subspan(behind));
  return options_and_values(help, words);
}

std::string lines_of(const Completions& completions) {
  std::string lines;
  for (const auto& [word, help] : completions.candidates)
    lines += fmt::format("{}\t{}\n", word, help);
  if (completions.paths != Paths::none) {
    lines += fmt::format("{}{}\n", completions.paths == Paths::files ? ":files " : ":folders ",
                         completions.before);
  }
  return lines;
}

}  // namespace rubato::app
