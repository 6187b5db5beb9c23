#pragma once

#include <rubato/runs/run_configuration.hpp>

#include "clients/python/parts/own_parts.hpp"

namespace rubato::python {

/// What a model was trained on, for as long as somebody may ask what it does on other samples.
/// Keeps the tensors that Python brought.
struct TrainedOn {
  RunConfiguration run{};
  OwnParts parts{};
  bool has_real_targets = false;
};

}  // namespace rubato::python
