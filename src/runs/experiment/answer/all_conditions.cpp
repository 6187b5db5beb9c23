// Summary works on a matrix of cells, a row for each choice and a column for each condition. It
// keeps only choices that have a cell in every condition, so that all are judged by the same pairs,
// and then adds one statistic after the other to them. Values are oriented so that greater is
// better, and a lost run has -infinity, with which ranks and interquartile means can be computed.
// The bootstrap draws the same seeds for all choices, from a stream of random numbers with a fixed
// key, so that an answer is the same whenever it is computed.

#include "all_conditions.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <rubato/steps/random.hpp>

#include "answer.hpp"
#include "base/core/vectors.hpp"

namespace rubato {

namespace {

using AnswerCell = Answer::Cell;

constexpr double kWorst = -std::numeric_limits<double>::infinity();
// Differences that are equal in decimal digits may differ in their last bits.
constexpr double kRounding = 1 + 1e-9;

// Summarizes an answer, part by part.
class Summary {
 public:
  explicit Summary(const Answer& answer) : answer_(answer) {}

  std::optional<AllConditions> summary() &&;

 private:
  // The choice's cell in a condition; null if there is none. A baseline may have the same labels
  // and other options, and gives way.
  [[nodiscard]] const AnswerCell* cell_of(std::size_t condition,
                                          const std::vector<std::string>& labels) const;
  // The final value of a run, such that greater is better; the worst for a lost one.
  [[nodiscard]] double value_of(const AnswerCell& cell, std::size_t seed) const;
  void take_conditions();
  void take_choices();
  void rank();
  void measure_distances();
  void score();

  const Answer& answer_;
  std::size_t seeds_ = 0;
  AllConditions all_;
  // For each choice its cell in each condition.
  std::vector<std::vector<const AnswerCell*>> cells_;
};

double Summary::value_of(const AnswerCell& cell, std::size_t seed) const {
  constexpr double kPercent = 100;
  const RunResult& result = answer_.runs[cell.members[seed]].result;
  if (is_lost(result.end) || !result.final_value) return kWorst;
  return answer_.is_accuracy ? *result.final_value * kPercent : -*result.final_value;
}

void Summary::take_conditions() {
  const std::set<std::size_t> own = answer_.own_conditions();
  all_.conditions.assign(own.begin(), own.end());
  for (const std::size_t condition : all_.conditions) {
    const AnswerCell* const reference = answer_.reference_of(condition);
    all_.units.push_back(reference == nullptr ? std::nullopt
                                              : std::optional(reference->value->deviation));
  }
}

const AnswerCell* Summary::cell_of(std::size_t condition,
                                   const std::vector<std::string>& labels) const {
  const AnswerCell* found = nullptr;
  for (const AnswerCell& cell : answer_.cells) {
    if (cell.condition != condition || answer_.choice_of(cell) != labels) continue;
    if (found == nullptr || found->is_baseline) found = &cell;
  }
  return found;
}

void Summary::take_choices() {
  std::vector<std::vector<std::string>> all;
  for (const AnswerCell& cell : answer_.cells) {
    std::vector<std::string> labels = answer_.choice_of(cell);
    if (std::ranges::find(all, labels) == all.end()) all.push_back(std::move(labels));
  }
  for (std::vector<std::string>& labels : all) {
    auto cells = vector_of(all_.conditions,
                           [&](std::size_t condition) { return cell_of(condition, labels); });
    if (std::ranges::find(cells, nullptr) != cells.end()) continue;
    AllConditions::Choice choice{.labels = std::move(labels)};
    for (const AnswerCell* const cell : cells) {
      choice.lost += answer_.lost_in(*cell);
      const auto is_near = [](const std::optional<Answer::AgainstMargin>& test, Verdict own) {
        return test && (test->verdict == Verdict::non_inferior || test->verdict == own) ? 1 : 0;
      };
      choice.non_inferior_to_best += is_near(cell->margin_to_best, Verdict::best);
      choice.non_inferior_to_baseline += is_near(cell->margin_to_baseline, Verdict::baseline);
    }
    all_.choices.push_back(std::move(choice));
    cells_.push_back(std::move(cells));
  }
}

void Summary::rank() {
  for (std::size_t condition = 0; condition < all_.conditions.size(); ++condition) {
    for (std::size_t seed = 0; seed < seeds_; ++seed) {
      const std::vector<double> ranks = ranks_of(
          vector_of(cells_, [&](const auto& cells) { return value_of(*cells[condition], seed); }));
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        all_.choices[i].mean_rank += ranks[i];
      }
    }
  }
  for (AllConditions::Choice& choice : all_.choices) {
    choice.mean_rank /= static_cast<double>(all_.pairs);
  }
}

void Summary::measure_distances() {
  for (std::size_t condition = 0; condition < all_.conditions.size(); ++condition) {
    for (std::size_t seed = 0; seed < seeds_; ++seed) {
      double best = kWorst;
      for (const AnswerCell& cell : answer_.cells) {
        if (cell.condition != all_.conditions[condition]) continue;
        best = std::max(best, value_of(cell, seed));
      }
      for (std::size_t i = 0; i < cells_.size(); ++i) {
        const double value = value_of(*cells_[i][condition], seed);
        if (value != kWorst) all_.choices[i].behind.push_back(best - value);
      }
    }
  }
  for (AllConditions::Choice& choice : all_.choices) std::ranges::sort(choice.behind);
}

void Summary::score() {
  if (std::ranges::any_of(all_.units, [](const auto& unit) { return !unit; })) return;
  const auto pairs = static_cast<std::size_t>(all_.pairs);
  // The scores of each choice, pair by pair.
  std::vector<std::vector<double>> scores(cells_.size());
  for (std::size_t condition = 0; condition < all_.conditions.size(); ++condition) {
    const AnswerCell& reference = *answer_.reference_of(all_.conditions[condition]);
    for (std::size_t seed = 0; seed < seeds_; ++seed) {
      const double base = value_of(reference, seed);
      for (std::size_t i = 0; i < cells_.size(); ++i) {
        const double value = value_of(*cells_[i][condition], seed);
        scores[i].push_back((value - base) / *all_.units[condition]);
      }
    }
  }
  std::vector<std::vector<double>> resampled(cells_.size());
  for (std::int64_t resample = 0; resample < kResamples; ++resample) {
    const NormalNumbers numbers({.step = resample});
    std::vector<std::size_t> drawn(pairs);
    for (std::size_t i = 0; i < pairs; ++i) {
      // The seeds of a condition follow each other.
      drawn[i] = i / seeds_ * seeds_ +
                 static_cast<std::size_t>(numbers.uniform(i) * static_cast<double>(seeds_));
    }
    for (std::size_t i = 0; i < scores.size(); ++i) {
      std::vector<double> sample(pairs);
      std::ranges::transform(drawn, sample.begin(),
                             [&](std::size_t pair) { return scores[i][pair]; });
      resampled[i].push_back(interquartile_mean(std::move(sample)));
    }
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    all_.choices[i].score = interquartile_mean(std::move(scores[i]));
    all_.choices[i].interval = middle_interval(std::move(resampled[i]));
  }
}

std::optional<AllConditions> Summary::summary() && {
  take_conditions();
  take_choices();
  if (all_.conditions.size() < 2 || all_.choices.size() < 2) return std::nullopt;
  seeds_ = cells_.front().front()->members.size();
  all_.pairs = static_cast<std::int64_t>(all_.conditions.size() * seeds_);
  rank();
  measure_distances();
  score();
  return std::move(all_);
}

}  // namespace

std::vector<double> AllConditions::grid() const {
  double most = 0;
  for (const Choice& choice : choices) {
    if (!choice.behind.empty()) most = std::max(most, choice.behind.back());
  }
  std::vector<double> grid{0};
  if (most == 0) return grid;
  // Decimal digits give the same numbers on every machine.
  const std::string text = fmt::format("{:e}", most);
  const int power = std::atoi(text.substr(text.find('e') + 1).c_str());
  for (int exponent = power - 2;; ++exponent) {
    for (const char* const digits : {"1", "1.5", "2", "3", "5", "7"}) {
      grid.push_back(std::strtod(fmt::format("{}e{}", digits, exponent).c_str(), nullptr));
      if (most <= grid.back() * kRounding) return grid;
    }
  }
}

double AllConditions::share_within(const Choice& choice, double distance) const {
  const auto within = std::ranges::upper_bound(choice.behind, distance * kRounding);
  return static_cast<double>(within - choice.behind.begin()) / static_cast<double>(pairs);
}

std::optional<AllConditions> all_conditions(const Answer& answer) {
  return Summary(answer).summary();
}

}  // namespace rubato
