#include "margins.hpp"

#include <cstddef>
#include <optional>
#include <vector>

#include "base/core/vectors.hpp"
#include "statistics.hpp"

namespace rubato {

namespace {

using AnswerCell = Answer::Cell;
using AgainstMargin = Answer::AgainstMargin;

// Empty if the margin is the deviation of a baseline that is null or does not vary.
std::optional<double> margin_of(const Answer& answer, const AnswerCell* baseline) {
  if (answer.margin->amount) return answer.margin->amount;
  if (baseline == nullptr || baseline->value->deviation == 0) return std::nullopt;
  return baseline->value->deviation;
}

AgainstMargin against_margin(const Answer& answer, const AnswerCell& cell, const AnswerCell& other,
                             double margin) {
  AgainstMargin test{.margin = margin};
  if (!answer.is_whole(cell)) {
    test.p = 1;
    test.verdict = Verdict::lost;
    return test;
  }
  const Estimate deficit = answer.is_accuracy ? answer.difference(other, cell).difference
                                              : answer.difference(cell, other).difference;
  if (const std::optional<MarginTest> found = margin_test(deficit, margin)) {
    test.bound = found->bound;
    test.seeds = found->pairs;
    test.p = found->p;
  }
  return test;
}

void judge(const std::vector<AgainstMargin*>& family) {
  correct(family);
  for (AgainstMargin* const test : family) {
    if (test->verdict == Verdict::lost || !test->adjusted) continue;
    test->verdict = *test->adjusted <= kLevel ? Verdict::non_inferior : Verdict::not_shown;
  }
}

void test_against_baselines(const Answer& answer, const std::vector<AnswerCell*>& cells) {
  std::vector<AgainstMargin*> family;
  for (AnswerCell* const cell : cells) {
    const AnswerCell* const baseline = answer.baseline_of(*cell);
    if (baseline == nullptr || !answer.is_whole(*baseline)) continue;
    const std::optional<double> margin = margin_of(answer, baseline);
    if (!margin) continue;
    if (baseline == cell) {
      cell->margin_to_baseline = {.margin = *margin, .verdict = Verdict::baseline};
      continue;
    }
    cell->margin_to_baseline = against_margin(answer, *cell, *baseline, *margin);
    family.push_back(&*cell->margin_to_baseline);
  }
  judge(family);
}

// The cell without lost runs that has the best mean; null if there is none.
const AnswerCell* best_of(const Answer& answer, const std::vector<AnswerCell*>& cells) {
  const AnswerCell* best = nullptr;
  for (const AnswerCell* const cell : cells) {
    if (!answer.is_whole(*cell)) continue;
    if (best == nullptr || answer.better(cell->value->mean, best->value->mean)) best = cell;
  }
  return best;
}

void test_against_best(const Answer& answer, const std::vector<AnswerCell*>& cells) {
  const AnswerCell* const best = best_of(answer, cells);
  if (cells.size() < 2 || best == nullptr) return;
  const std::optional<double> margin = margin_of(answer, answer.reference_of(best->condition));
  if (!margin) return;
  std::vector<AgainstMargin*> family;
  for (AnswerCell* const cell : cells) {
    if (cell == best) {
      cell->margin_to_best = {.margin = *margin, .verdict = Verdict::best};
      continue;
    }
    cell->margin_to_best = against_margin(answer, *cell, *best, *margin);
    family.push_back(&*cell->margin_to_best);
  }
  judge(family);
}

}  // namespace

void test_margins(Answer& answer) {
  if (!answer.margin) return;
  for (std::size_t condition = 0; condition < answer.conditions.size(); ++condition) {
    const auto cells = pointers_to(
        answer.cells, [&](const AnswerCell& cell) { return cell.condition == condition; });
    test_against_baselines(answer, cells);
    test_against_best(answer, cells);
  }
}

}  // namespace rubato
