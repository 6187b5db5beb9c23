#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rubato/loop/faults.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/loop/records.hpp>

#include "record_column.hpp"

namespace rubato {

/// A part of a step, with the step.
template <class Part>
struct OfStep {
  StepIndex step{};
  Part part{};
};

/// A core that died, and the number of cores on which the step is redone.
struct FaultOfStep {
  StepIndex step{};
  FaultRecord fault{};
  std::int64_t cores_left = 0;
};

// The schemas of everything that training reports. All code that writes, shows, stores or documents
// a record reads these rows: a new number needs only a new row, and the code that computes it.

/// The record of a step; its `decision` and `seconds` are objects in JSON.
[[nodiscard]] const RecordSchema<StepRecord>& step_schema();
[[nodiscard]] const RecordSchema<OfStep<MinibatchRecord>>& minibatch_schema();
[[nodiscard]] const RecordSchema<EpochRecord>& epoch_schema();
[[nodiscard]] const RecordSchema<FaultOfStep>& fault_schema();
[[nodiscard]] const RecordSchema<OfStep<TensorStatistics>>& monitor_schema();
/// The result of a model on a data set; its columns except the number of samples also belong to
/// epochs, with the prefix "test_", and to results, with "final_test_".
[[nodiscard]] const RecordSchema<Evaluation>& evaluation_schema();
/// The clock of modelled time: an object `clock` in JSON.
[[nodiscard]] const RecordSchema<ClockTime>& clock_schema();
/// The result of training.
[[nodiscard]] const RecordSchema<TrainResult>& result_schema();

}  // namespace rubato
