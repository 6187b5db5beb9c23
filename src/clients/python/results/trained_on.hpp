#pragma once

#include <rubato/runs/run_configuration.hpp>

#include "clients/python/parts/own_parts.hpp"

namespace rubato::python {

/// The data that a model was trained on, kept for later questions about other samples. Keeps the
/// tensors that Python passed.
struct TrainedOn {
  RunConfiguration run{};
  OwnParts parts{};
  bool has_real_targets = false;
};

}  // namespace rubato::python
