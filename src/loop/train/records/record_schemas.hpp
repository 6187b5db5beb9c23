#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rubato/loop/faults.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/loop/records.hpp>

#include "record_column.hpp"

namespace rubato {

/// A part of a step, and of which.
template <class Part>
struct OfStep {
  StepIndex step{};
  Part part{};
};

/// A core that died, and on how many the step is redone.
struct FaultOfStep {
  StepIndex step{};
  FaultRecord fault{};
  std::int64_t cores_left = 0;
};

// The schemas of what training reports. All that writes, shows, keeps or documents a record reads
// these rows: a new number is a new row here, and whatever computes it.

/// A step; its `decision` and `seconds` are objects in JSON.
[[nodiscard]] const RecordSchema<StepRecord>& step_schema();
[[nodiscard]] const RecordSchema<OfStep<MinibatchRecord>>& minibatch_schema();
[[nodiscard]] const RecordSchema<EpochRecord>& epoch_schema();
[[nodiscard]] const RecordSchema<FaultOfStep>& fault_schema();
[[nodiscard]] const RecordSchema<OfStep<TensorStatistics>>& monitor_schema();
/// What a model does on a data set; its columns but the number of samples are those of epochs, with
/// "test_" before their names, and of results, with "final_test_".
[[nodiscard]] const RecordSchema<Evaluation>& evaluation_schema();
/// An object `clock` in JSON.
[[nodiscard]] const RecordSchema<ClockTime>& clock_schema();
/// What training came to.
[[nodiscard]] const RecordSchema<TrainResult>& result_schema();

}  // namespace rubato
