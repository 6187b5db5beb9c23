// Each judgement is a function of the facts in the table kJudges, whose order is that of the
// report. It begins with a good finding that states a fact, and complain() lowers the health and
// adds the reason and the advice, so that every fact is shown whether or not it is a problem. The
// judgements that ask the training process are called only if it has answered, and are notes
// otherwise.

#include "findings.hpp"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/machine/kernels.hpp"

namespace rubato::doctor {

namespace {

// Says of what was found why it matters, and what to do.
void complain(Finding& finding, Health health, std::string_view why, std::string advice) {
  finding.health = health;
  finding.what += why;
  finding.advice = std::move(advice);
}

// Whether the version `runs` is older than `built`, so that functions may be missing.
bool is_older(std::string_view runs, std::string_view built) {
  const auto take_number = [](std::string_view& text) {
    while (!text.empty() && (text.front() < '0' || text.front() > '9')) text.remove_prefix(1);
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc() ? number : -1;
  };
  while (!runs.empty() && !built.empty()) {
    const int left = take_number(runs);
    const int right = take_number(built);
    if (left < 0 || right < 0) return false;
    if (left != right) return left < right;
  }
  return false;
}

Finding judge_processor(const Facts& facts) {
  Finding finding{.what = fmt::format("{}, with {}", facts.processor,
                                      choice_name(kInstructionSets, facts.instruction_set))};
  if (!has_fma(facts.instruction_set)) {
    complain(finding, Health::note, ": the fast kernels of the libraries need AVX2 and FMA",
             "in a virtual machine, pass the CPU's own features on (cpu=host)");
  }
  return finding;
}

Finding judge_blas(const Facts& facts) {
  const TrainingProcess& training = *facts.training;
  Finding finding{.what = fmt::format("{} ({}), {:.0f} GFLOP/s on one thread",
                                      training.blas.empty()
                                          ? "a BLAS that does not say its name"
                                          : training.blas.substr(0, training.blas.find(" NO_")),
                                      training.blas_file, training.gflops)};
  if (!training.blas_is_fast) {
    complain(finding, Health::problem,
             "; it is not known to be fast, and may make training ten times slower",
             "install an OpenBLAS (Debian: apt-get install libopenblas0-pthread), or choose it: "
             "update-alternatives --config libblas.so.3-x86_64-linux-gnu");
  }
  return finding;
}

Finding judge_kernels(const Facts& facts) {
  const TrainingProcess& training = *facts.training;
  const auto known = [](const std::string& name) { return name.empty() ? "unknown" : name; };
  Finding finding{
      .what = fmt::format("ATen {}, oneDNN {}", known(training.aten), known(training.onednn))};
  if (training.openblas_core.empty()) return finding;
  finding.what += fmt::format(", OpenBLAS {}", training.openblas_core);
  const auto set = openblas_instruction_set(training.openblas_core);
  if (!set || *set >= facts.instruction_set) {
    if (training.openblas_by_itself != training.openblas_core) {
      finding.what +=
          fmt::format(" (by itself it took {}; rubato corrects that)", training.openblas_by_itself);
    }
    return finding;
  }
  const bool is_old = *set < InstructionSet::avx2 && facts.instruction_set >= InstructionSet::avx2;
  complain(finding, is_old ? Health::problem : Health::note,
           fmt::format(", which uses {} where the CPU has {}", choice_name(kInstructionSets, *set),
                       choice_name(kInstructionSets, facts.instruction_set)),
           facts.coretype.empty()
               ? "install an OpenBLAS that was built with DYNAMIC_ARCH"
               : fmt::format("unset OPENBLAS_CORETYPE, which is {}, or set it to {}",
                             facts.coretype, openblas_core(facts.instruction_set)));
  return finding;
}

Finding judge_allocator(const Facts& facts) {
  const std::string& file = facts.training->malloc_file;
  Finding finding{.what = fmt::format("malloc is that of {}", file)};
  for (const char* good : {"tbbmalloc", "tcmalloc", "mimalloc", "jemalloc"}) {
    if (file.find(good) != std::string::npos) return finding;
  }
  complain(finding, Health::problem, ", which costs up to two fifths of the speed",
           facts.preloaded.empty() ? "build rubato-train with oneTBB's tbbmalloc_proxy"
                                   : fmt::format("unset LD_PRELOAD, which is {}", facts.preloaded));
  return finding;
}

Finding judge_threads(const Facts& facts) {
  const Cpus& cpus = facts.cpus;
  const std::string right = fmt::format("--threads {}", cpus.usable());
  Finding finding{.what = fmt::format("{} thread{} on {} CPU{}", facts.threads,
                                      facts.threads == 1 ? "" : "s", cpus.allowed,
                                      cpus.allowed == 1 ? "" : "s")};
  if (cpus.quota) {
    finding.what += fmt::format(", of which the control group grants {:g}", *cpus.quota);
  }
  if (facts.threads > cpus.usable()) {
    complain(finding, Health::problem,
             ": threads will wait for CPUs, and steps for the last thread", right);
  } else if (facts.threads < cpus.usable()) {
    complain(finding, Health::note, ": CPUs will be idle", right);
  } else if (cpus.usable() < facts.online) {
    complain(finding, Health::note, fmt::format("; the machine has {}", facts.online),
             cpus.allowed < facts.online
                 ? "to use all of them, start it with another affinity (taskset, cpuset)"
                 : "to use all of them, raise the CPU quota (docker --cpus, CPUQuota=)");
  }
  return finding;
}

Finding judge_load(const Facts& facts) {
  // An idle system uses up to half a CPU.
  constexpr double kIdle = 0.5;
  if (!facts.load || facts.online == 0) return {.what = "the machine does not say how busy it is"};
  Finding finding{
      .what = fmt::format("{:.1f} threads wanted a CPU in the last minute, of which there {} {}",
                          *facts.load, facts.online == 1 ? "is" : "are", facts.online)};
  if (*facts.load > kIdle && facts.threads + *facts.load > facts.online + kIdle) {
    complain(finding, Health::note,
             ": training will share them, and steps wait for the last thread",
             "end other programs or wait for them, or take fewer --threads");
  }
  return finding;
}

Finding judge_hyper_threads(const Facts& facts) {
  if (facts.cores == 0) return {.what = "the machine does not say which CPUs share a core"};
  Finding finding{.what = fmt::format("{} CPUs are {} cores", facts.online, facts.cores)};
  if (facts.cores < facts.online && facts.threads > facts.cores) {
    complain(finding, Health::note, ": two threads on one core share its arithmetic units",
             fmt::format("see whether --threads {} is as fast", facts.cores));
  }
  return finding;
}

Finding judge_huge_pages(const Facts& facts) {
  Finding finding{.what = facts.huge_pages.empty()
                              ? "the machine does not say whether it has transparent huge pages"
                              : fmt::format("transparent huge pages: {}", facts.huge_pages)};
  if (facts.huge_pages == "never") {
    complain(finding, Health::note, "; sums over large models miss the TLB more often",
             "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  }
  return finding;
}

Finding judge_frequency(const Facts& facts) {
  const std::string& driver = facts.frequency_driver;
  if (facts.governor.empty()) {
    return {.what = "the governor cannot be seen, as in most virtual machines"};
  }
  Finding finding{.what = fmt::format("governor {} ({})", facts.governor, driver)};
  // These drivers choose the frequency themselves, and call that "powersave".
  const bool by_hardware = driver == "intel_pstate" || driver.starts_with("amd-pstate-epp") ||
                           driver == "amd_pstate_epp";
  if (facts.governor == "powersave" && !by_hardware) {
    complain(finding, Health::problem, ": the CPU stays at its lowest frequency",
             "as root: cpupower frequency-set --governor performance");
  }
  return finding;
}

Finding judge_versions(const Facts& facts) {
  std::vector<std::string> names;
  std::vector<std::string> older;
  for (const Version& version : facts.training->versions) {
    names.push_back(fmt::format("{} {}", version.library, version.runs));
    if (is_older(version.runs, version.built)) {
      older.push_back(
          fmt::format("{} {} (built with {})", version.library, version.runs, version.built));
    }
  }
  if (older.empty()) return {.what = fmt::to_string(fmt::join(names, ", "))};
  return {.health = Health::problem,
          .what = fmt::format("it runs with libraries older than it was built with: {}",
                              fmt::join(older, ", ")),
          .advice = "build it again on this machine, or unset LD_LIBRARY_PATH"};
}

struct Judge {
  const char* subject;
  bool asks_training;
  Finding (*judge)(const Facts& facts);
};
constexpr std::array<Judge, 10> kJudges{{{"processor", false, judge_processor},
                                         {"BLAS", true, judge_blas},
                                         {"kernels", true, judge_kernels},
                                         {"allocator", true, judge_allocator},
                                         {"threads", false, judge_threads},
                                         {"load", false, judge_load},
                                         {"hyper-threads", false, judge_hyper_threads},
                                         {"huge pages", false, judge_huge_pages},
                                         {"frequency", false, judge_frequency},
                                         {"versions", true, judge_versions}}};

}  // namespace

std::vector<Finding> findings(const Facts& facts) {
  std::vector<Finding> all;
  for (const auto& [subject, asks_training, judge] : kJudges) {
    all.push_back(asks_training && !facts.training
                      ? Finding{.health = Health::note,
                                .what = fmt::format("cannot be seen: {}", facts.no_training)}
                      : judge(facts));
    all.back().subject = subject;
  }
  return all;
}

}  // namespace rubato::doctor
