// The values to which the states of a training are bound, and what a fork may do with them.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/loop/objective.hpp>
#include <rubato/loop/trainer.hpp>

namespace rubato {

/// All values that decide the bits of a training, as lines "name = value": those of the parts of a
/// step (StepPart::bound), of the objective, and of the training as a whole. The contents of the
/// trace and the data are bound apart from them (bind_data()). The number of epochs is not among
/// them, and neither are the options that decide who computes what.
class BoundValues {
 public:
  BoundValues(const TrainOptions& options, const Objective& objective);

  [[nodiscard]] std::string text() const;

  /// Throws Error, naming all values that differ, if the state with the text `saved` has others.
  void require_same(const std::string& saved) const;
  /// The parts that begin anew (BoundValue::memory) in a fork of the state with the text `saved`.
  /// Throws Error, naming all values that differ and may not, such as the size of a minibatch.
  [[nodiscard]] std::set<std::string_view> forgotten(const std::string& saved) const;

 private:
  struct Change;
  // In the order of the names.
  [[nodiscard]] std::vector<Change> changes_of(const std::string& saved) const;
  [[nodiscard]] static std::string text_of(const std::vector<Change>& changes);

  std::vector<BoundValue> values_;
};

}  // namespace rubato
