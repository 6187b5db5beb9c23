// The facts come from two processes. gather_facts() reads /proc, /sys and the environment in the
// program `rubato`, which is linked without libtorch. probe_this_process() runs in rubato-train,
// where dlsym() finds the BLAS and the malloc that training uses, and measures a product of
// matrices; its result is printed as JSON, which `rubato` reads through a pipe (output_of()). A
// file that cannot be read gives an empty value and no error.

#include "facts.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <nlohmann/json.hpp>
#include <oneapi/tbb/version.h>
#include <openssl/crypto.h>
#include <openssl/opensslv.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <rubato/base/error.hpp>
#include <rubato/base/machine.hpp>

#include "base/core/process.hpp"
#include "base/core/seconds.hpp"
#include "base/core/text/json.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/machine/kernels.hpp"
#include "base/machine/machine_facts.hpp"

namespace rubato::doctor {

namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Parses "0-3,8" as 0, 1, 2, 3, 8.
std::vector<int> numbers_of(const std::string& list) {
  constexpr int kMost = 1 << 16;
  std::vector<int> numbers;
  for (const std::string_view range : split_at(list, ',')) {
    std::istringstream ends{std::string(range)};
    int first = 0;
    if (!(ends >> first)) continue;
    int last = first;
    char dash = 0;
    if (ends >> dash && dash == '-') ends >> last;
    for (int i = first; i <= std::min(last, kMost); ++i) numbers.push_back(i);
  }
  return numbers;
}

fs::path folder_of_cpus(const fs::path& root) {
  return root / "sys/devices/system/cpu";
}

// Hardware threads of the same core have the same list of siblings.
int cores(const fs::path& root, const std::vector<int>& online) {
  std::set<std::string> siblings;
  for (const int cpu : online) {
    const std::string list = first_line(folder_of_cpus(root) / fmt::format("cpu{}", cpu) /
                                        "topology/thread_siblings_list");
    if (!list.empty()) siblings.insert(list);
  }
  return static_cast<int>(siblings.size());
}

std::optional<double> load(const fs::path& root) {
  std::ifstream in(root / "proc/loadavg");
  double minute = 0;
  return in >> minute ? std::optional(minute) : std::nullopt;
}

// The choice in brackets, as in "always [madvise] never".
std::string chosen_in(const std::string& choices) {
  const std::size_t begin = choices.find('[');
  const std::size_t end = choices.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return choices.substr(begin + 1, end - begin - 1);
}

}  // namespace

Facts gather_facts(const fs::path& root) {
  const std::vector<int> online = numbers_of(first_line(folder_of_cpus(root) / "online"));
  const fs::path first =
      folder_of_cpus(root) / fmt::format("cpu{}", online.empty() ? 0 : online.front()) / "cpufreq";
  Facts facts{
      .processor = processor_name(root),
      .instruction_set = cpu_instruction_set(),
      .online = static_cast<int>(online.size()),
      .cores = cores(root, online),
      .cpus = cpus(root),
      .threads = 1,
      .load = load(root),
      .huge_pages = chosen_in(first_line(root / "sys/kernel/mm/transparent_hugepage/enabled")),
      .governor = first_line(first / "scaling_governor"),
      .frequency_driver = first_line(first / "scaling_driver"),
      .coretype = variable("OPENBLAS_CORETYPE"),
      .preloaded = variable("LD_PRELOAD"),
      .training = std::nullopt,
      .no_training = {}};
  facts.threads = facts.cpus.usable();
  return facts;
}

namespace {

using Json = nlohmann::json;

// The file that contains a function.
std::string file_of(void* function) {
  Dl_info info{};
  if (function == nullptr || dladdr(function, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  const auto file = std::filesystem::canonical(info.dli_fname, ignored);
  return ignored ? std::string(info.dli_fname) : file.string();
}

// SGEMM of the Fortran BLAS.
using Sgemm = void(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                   const int* k, const float* alpha, const float* a, const int* lda, const float* b,
                   const int* ldb, const float* beta, float* c, const int* ldc);

// The best of several runs, so that other work of the machine has little effect.
double measure_gflops(Sgemm* sgemm) {
  constexpr int kSize = 512;
  constexpr int kRuns = 6;
  constexpr double kGiga = 1e9;
  constexpr std::size_t kElements = std::size_t{kSize} * kSize;
  const std::vector<float> a(kElements, 0.5F);
  const std::vector<float> b(kElements, 0.25F);
  std::vector<float> c(kElements);
  const float one = 1;
  const float zero = 0;
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Stopwatch watch;
    sgemm("N", "N", &kSize, &kSize, &kSize, &one, a.data(), &kSize, b.data(), &kSize, &zero,
          c.data(), &kSize);
    best = std::max(best, 2.0 * kElements * kSize / std::max(watch.seconds(), 1e-9) / kGiga);
  }
  return best;
}

bool has(const char* function) {
  return dlsym(RTLD_DEFAULT, function) != nullptr;
}

std::vector<Version> versions() {
  return {
      {"oneTBB", fmt::format("{}.{}", TBB_VERSION_MAJOR, TBB_VERSION_MINOR), TBB_runtime_version()},
      {"zlib", ZLIB_VERSION, zlibVersion()},
      {"OpenSSL", OPENSSL_VERSION_STR, OpenSSL_version(OPENSSL_VERSION_STRING)},
      {"glibc", fmt::format("{}.{}", __GLIBC__, __GLIBC_MINOR__), gnu_get_libc_version()}};
}

}  // namespace

TrainingProcess probe_this_process() {
  if (auto* const set_threads =
          reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) {
    set_threads(1);
  }
  TrainingProcess process;
  if (const auto openblas = loaded_openblas()) {
    const auto start = kernel_start();
    process.blas = openblas->config;
    process.openblas_core = openblas->core;
    process.openblas_by_itself = start ? start->openblas_before : openblas->core;
  }
  process.blas_is_fast =
      !process.openblas_core.empty() || has("bli_info_get_version_str") || has("mkl_get_version");
  if (void* const sgemm = dlsym(RTLD_DEFAULT, "sgemm_")) {
    process.blas_file = file_of(sgemm);
    process.gflops = measure_gflops(reinterpret_cast<Sgemm*>(sgemm));
  }
  process.malloc_file = file_of(dlsym(RTLD_DEFAULT, "malloc"));
  process.versions = versions();
  return process;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Version, library, built, runs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingProcess, blas_file, blas, blas_is_fast, openblas_core,
                                   openblas_by_itself, aten, onednn, gflops, malloc_file, versions)

std::string probe_text(const TrainingProcess& process) {
  return json_text(Json(process));
}

TrainingProcess parse_probe(const std::string& text) try {
  return Json::parse(text).get<TrainingProcess>();
} catch (const Json::exception& error) {
  throw_error("rubato does not understand the answer of rubato-train: {}", error.what());
}

std::string output_of(const std::filesystem::path& program, const std::string& argument) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw Error("cannot make a pipe");
  const pid_t child = start_child(program, {program, argument}, [&](pid_t /*parent*/) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
  });
  close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  while (child > 0) {
    const ssize_t count = read(ends[0], buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  const int status = child < 0 ? -1 : await_child(child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw_error("{} cannot run, or fails", program.string());
  }
  return text;
}

}  // namespace rubato::doctor
