#pragma once

#include <rubato/runs/workload.hpp>

#include "clients/app/line/exit_code.hpp"
#include "evaluate_arguments.hpp"

namespace rubato::app {

/// `rubato eval`: prints what the model does on the test set. Throws Error for data, a model or
/// weights that cannot be read or do not fit.
ExitCode evaluate(const EvaluateArguments& arguments, const LoadWorkload& load);

/// `rubato predict`: writes what it says of the samples. Throws Error in the same cases, and
/// OutputError where the file cannot be written.
ExitCode predict(const EvaluateArguments& arguments, const LoadWorkload& load);

}  // namespace rubato::app
