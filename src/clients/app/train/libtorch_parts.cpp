#include "libtorch_parts.hpp"

#include <string_view>

#include <ATen/Version.h>
#include <torch/version.h>

#include <rubato/libtorch/trainer.hpp>

#include "runs/doctor/facts.hpp"

namespace rubato::app {

namespace {

// Returns the text between `key` and one of `ends` in libtorch's description of its build.
std::string said_by_libtorch(std::string_view key, const char* ends) {
  static const std::string text = at::show_config();
  const std::size_t found = text.find(key);
  if (found == std::string::npos) return {};
  const std::size_t begin = found + key.size();
  return text.substr(begin, text.find_first_of(ends, begin) - begin);
}

}  // namespace

std::string doctor_probe() {
  use_one_intra_op_thread();
  doctor::TrainingProcess process = doctor::probe_this_process();
  const KernelsInUse kernels = kernels_in_use();
  process.aten = kernels.aten;
  process.onednn = kernels.onednn;
  process.versions.push_back(
      {"libtorch", TORCH_VERSION, said_by_libtorch("TORCH_VERSION=", ",\n")});
  process.versions.push_back({"oneDNN", "", said_by_libtorch("MKL-DNN v", " \n")});
  return doctor::probe_text(process);
}

void load_without_threads() {
  use_one_intra_op_thread();
}

}  // namespace rubato::app
