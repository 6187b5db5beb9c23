#pragma once

#include <rubato/runs/workload.hpp>

#include "clients/app/line/exit_code.hpp"
#include "evaluate_arguments.hpp"

namespace rubato::app {

/// `rubato eval`: prints the loss and the accuracy of the model on the test set. Throws Error for
/// data, a model or weights that cannot be read or do not fit.
ExitCode evaluate(const EvaluateArguments& arguments, const LoadWorkload& load);

/// `rubato predict`: writes the outputs of the model for the samples. Throws Error in the same
/// cases, and OutputError if the file cannot be written.
ExitCode predict(const EvaluateArguments& arguments, const LoadWorkload& load);

}  // namespace rubato::app
