#include "value_forms.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include <rubato/runs/run_configuration.hpp>

#include "base/core/text/split.hpp"

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

}  // namespace rubato::app
