// A search and a list are walked in the same way: all values so far are put in ascending order, the
// best of them are found, and the next values lie beside these. Nothing is remembered between two
// calls, so what a search has done is read off its values: which rates are coarse, which is the
// lowest, and whether the fine ones are there. A search works with whole numbers k instead of
// rates, in which neighbours are exact, and its coarse numbers have no gaps, as each call adds only
// to the ends. Rates of equal scores that stand beside each other are one plateau (Best): a search
// goes on until it has left the plateau on both sides, and takes its middle, and a list does not
// grow beyond one.

#include "rate_search.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/vectors.hpp"
#include "runs/config/run_option.hpp"

namespace rubato {

namespace {

bool are_numbers(std::span<const Tried> tried) {
  return std::ranges::all_of(tried, [](const Tried& one) { return is_number(one.value); });
}

bool is_better(const Tried& one, const Tried& other) {
  if (one.is_lost != other.is_lost) return other.is_lost;
  if (!one.score || !other.score) return one.score.has_value() && !other.score.has_value();
  return *one.score > *other.score;
}

// The first and the last of the best, which stand beside each other in ascending order.
struct Best {
  std::size_t first = 0;
  std::size_t last = 0;
};
Best best_in(std::span<const Tried> tried, std::span<const std::size_t> order) {
  const auto at = [&](std::size_t place) -> const Tried& { return tried[order[place]]; };
  Best best;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (is_better(at(i), at(best.first))) best.first = i;
  }
  best.last = best.first;
  while (best.last + 1 < order.size() && !is_better(at(best.first), at(best.last + 1))) ++best.last;
  return best;
}

// The text of a value as all others use it; empty if the option does not accept it.
std::string value_text(const RunOption& option, const std::string& text) {
  RunConfiguration read;
  try {
    option.set(read, text);
  } catch (const Error&) {
    return {};
  }
  return option.text(read).value_or("");
}

// --- Searches: the number k stands for the rate 10^(k/4) ---

constexpr double kPerDecade = 4;
constexpr int kCoarse = 2;

int lattice_number(double rate) {
  return static_cast<int>(std::lround(kPerDecade * std::log10(rate)));
}

std::string rate_text(int number) {
  return value_text(run_option(kRateOption),
                    fmt::format("{:.2g}", std::pow(10, number / kPerDecade)));
}

std::vector<std::string> rate_texts(const std::vector<int>& numbers) {
  return vector_of(numbers, rate_text);
}

// The next coarse numbers, given all coarse ones in ascending order; empty if the search for them
// is over.
std::vector<int> next_coarse(int lowest, std::span<const Tried> coarse, Best best) {
  const int highest = lowest + kCoarse * (static_cast<int>(coarse.size()) - 1);
  std::vector<int> next;
  if (coarse[best.first].is_lost) {
    next = {lowest - kCoarse};
    // Its numbers are finite, so that it may also have been too small.
    if (coarse.back().score) next.push_back(highest + kCoarse);
  } else {
    if (best.first == 0) next.push_back(lowest - kCoarse);
    if (best.last + 1 == coarse.size()) next.push_back(highest + kCoarse);
  }
  const bool none_is_better = std::ranges::none_of(
      coarse, [&](const Tried& one) { return !one.is_lost && is_better(coarse[best.first], one); });
  const std::size_t most = none_is_better ? kMostUntrained : kMostCoarse;
  next.resize(std::min(next.size(), most - std::min(most, coarse.size())));
  return next;
}

std::vector<std::string> next_rates(double start, std::span<const Tried> tried) {
  const int middle = lattice_number(start);
  if (tried.empty()) return rate_texts({middle - kCoarse, middle, middle + kCoarse});
  std::map<int, Tried> all;
  for (const Tried& one : tried) all.emplace(lattice_number(std::stod(one.value)), one);
  std::vector<Tried> coarse;
  std::optional<int> lowest;
  for (const auto& [number, one] : all) {
    if ((number - middle) % kCoarse != 0) continue;
    if (!lowest) lowest = number;
    coarse.push_back(one);
  }
  const std::vector<std::size_t> order = ascending(coarse);
  const Best best = best_in(coarse, order);
  const std::vector<int> next = next_coarse(*lowest, coarse, best);
  const bool is_inside = best.first > 0 && best.last + 1 < coarse.size();
  if (!is_inside || coarse[best.first].is_lost) return rate_texts(next);
  const int chosen = *lowest + kCoarse * static_cast<int>((best.first + best.last) / 2);
  std::vector<int> fine{chosen - 1, chosen + 1};
  std::erase_if(fine, [&](int number) { return all.contains(number); });
  return rate_texts(fine);
}

// --- Lists ---

// Returns whether the values of an option are positive numbers without an upper limit.
bool has_open_range(const RunOption& option) {
  return option.kind == OptionKind::real && !value_text(option, "1e-30").empty() &&
         !value_text(option, "1e30").empty();
}

std::vector<std::string> next_of_list(const Tuning& tuning, std::span<const Tried> tried) {
  if (tried.empty()) return tuning.values;
  const RunOption& option = run_option(tuning.option);
  if (tuning.is_closed || tried.size() >= tuning.values.size() + kMostGrown ||
      !has_open_range(option) || !are_numbers(tried)) {
    return {};
  }
  auto list = vector_of(tuning.values, [](const std::string& value) { return std::stod(value); });
  std::ranges::sort(list);
  if (list.front() <= 0) return {};
  const std::vector<std::size_t> order = ascending(tried);
  const Best best = best_in(tried, order);
  if (best.first != best.last || tried[order[best.first]].is_lost) return {};
  const double chosen = std::stod(tried[order[best.first]].value);
  double next = 0;
  if (best.first == 0) next = chosen * (list[0] / list[1]);
  if (best.last + 1 == order.size()) next = chosen * (list.back() / list[list.size() - 2]);
  if (next == 0) return {};
  std::string text = value_text(option, fmt::format("{:.3g}", next));
  if (text.empty() || std::ranges::find(tried, text, &Tried::value) != tried.end()) return {};
  return {std::move(text)};
}

}  // namespace

std::vector<std::size_t> ascending(std::span<const Tried> tried) {
  std::vector<std::size_t> order(tried.size());
  std::iota(order.begin(), order.end(), 0);
  if (!are_numbers(tried)) return order;
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::stod(tried[i].value); });
  return order;
}

std::optional<std::size_t> best_of(std::span<const Tried> tried) {
  if (tried.empty()) return std::nullopt;
  const std::vector<std::size_t> order = ascending(tried);
  const auto [first, last] = best_in(tried, order);
  const std::size_t best = order[are_numbers(tried) ? (first + last) / 2 : first];
  return tried[best].score ? std::optional(best) : std::nullopt;
}

std::vector<std::string> next_values(const Tuning& tuning, double start,
                                     std::span<const Tried> tried) {
  return tuning.is_search() ? next_rates(start, tried) : next_of_list(tuning, tried);
}

}  // namespace rubato
