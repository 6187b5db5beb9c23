#include "findings.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/machine/kernels.hpp"

namespace rubato::doctor {

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
// libtorch alone maps this much before anything is trained.
constexpr std::int64_t kLeastMemory = kGiB / 2;
constexpr std::int64_t kEnoughMemory = 2 * kGiB;
constexpr std::int64_t kLeastDisk = 100 * kMiB;
constexpr std::int64_t kEnoughDisk = kGiB;

constexpr std::string_view kInstallOpenBlas =
    "install an OpenBLAS (Debian: apt-get install libopenblas0-pthread), or choose it: "
    "update-alternatives --config libblas.so.3-x86_64-linux-gnu";

std::string size_text(std::int64_t bytes) {
  if (bytes < kGiB) return fmt::format("{} MiB", bytes / kMiB);
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(kGiB));
}

Finding cannot_say(std::string subject, const Facts& facts) {
  return {.subject = std::move(subject),
          .health = Health::note,
          .what = fmt::format("cannot be seen: {}", facts.no_training)};
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

}  // namespace

Finding judge_processor(const Facts& facts) {
  Finding finding{.subject = "processor",
                  .what = fmt::format("{}, with {}", facts.processor,
                                      choice_name(kInstructionSets, facts.instruction_set))};
  if (!has_fma(facts.instruction_set)) {
    finding.health = Health::note;
    finding.what += ": the fast kernels of the libraries need AVX2 and FMA";
    finding.advice = "in a virtual machine, pass the CPU's own features on (cpu=host)";
  }
  return finding;
}

Finding judge_blas(const Facts& facts) {
  if (!facts.training) return cannot_say("BLAS", facts);
  const TrainingProcess& training = *facts.training;
  Finding finding{.subject = "BLAS",
                  .what = fmt::format("{} ({}), {:.0f} GFLOP/s on one thread",
                                      training.blas.empty()
                                          ? "a BLAS that does not say its name"
                                          : training.blas.substr(0, training.blas.find(" NO_")),
                                      training.blas_file, training.gflops)};
  if (!training.blas_is_fast) {
    finding.health = Health::problem;
    finding.what += "; it is not known to be fast, and may make training ten times slower";
    finding.advice = kInstallOpenBlas;
  }
  return finding;
}

Finding judge_kernels(const Facts& facts) {
  if (!facts.training) return cannot_say("kernels", facts);
  const TrainingProcess& training = *facts.training;
  const auto known = [](const std::string& name) { return name.empty() ? "unknown" : name; };
  Finding finding{
      .subject = "kernels",
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
  finding.health = *set < InstructionSet::avx2 && facts.instruction_set >= InstructionSet::avx2
                       ? Health::problem
                       : Health::note;
  finding.what +=
      fmt::format(", which uses {} where the CPU has {}", choice_name(kInstructionSets, *set),
                  choice_name(kInstructionSets, facts.instruction_set));
  const std::string_view right = openblas_core(facts.instruction_set);
  finding.advice = facts.coretype.empty()
                       ? fmt::format("install an OpenBLAS that was built with DYNAMIC_ARCH")
                       : fmt::format("unset OPENBLAS_CORETYPE, which is {}, or set it to {}",
                                     facts.coretype, right);
  return finding;
}

Finding judge_allocator(const Facts& facts) {
  if (!facts.training) return cannot_say("allocator", facts);
  const std::string& file = facts.training->malloc_file;
  Finding finding{.subject = "allocator", .what = fmt::format("malloc is that of {}", file)};
  for (const char* good : {"tbbmalloc", "tcmalloc", "mimalloc", "jemalloc"}) {
    if (file.find(good) != std::string::npos) return finding;
  }
  finding.health = Health::problem;
  finding.what += ", which costs up to two fifths of the speed";
  finding.advice = facts.preloaded.empty()
                       ? "build rubato-train with oneTBB's tbbmalloc_proxy"
                       : fmt::format("unset LD_PRELOAD, which is {}", facts.preloaded);
  return finding;
}

Finding judge_threads(const Facts& facts) {
  const Cpus& cpus = facts.cpus;
  Finding finding{.subject = "threads"};
  finding.what =
      fmt::format("{} thread{} on {} CPU{}", facts.threads, facts.threads == 1 ? "" : "s",
                  cpus.allowed, cpus.allowed == 1 ? "" : "s");
  if (cpus.quota)
    finding.what += fmt::format(", of which the control group grants {:g}", *cpus.quota);
  if (facts.threads > cpus.usable()) {
    finding.health = Health::problem;
    finding.what += ": threads will wait for CPUs, and steps for the last thread";
    finding.advice = fmt::format("--threads {}", cpus.usable());
  } else if (facts.threads < cpus.usable()) {
    finding.health = Health::note;
    finding.what += ": CPUs will be idle";
    finding.advice = fmt::format("--threads {}", cpus.usable());
  } else if (cpus.usable() < facts.online) {
    finding.health = Health::note;
    finding.what += fmt::format("; the machine has {}", facts.online);
    finding.advice = cpus.allowed < facts.online
                         ? "to use all of them, start it with another affinity (taskset, cpuset)"
                         : "to use all of them, raise the CPU quota (docker --cpus, CPUQuota=)";
  }
  return finding;
}

Finding judge_load(const Facts& facts) {
  // An idle system uses up to half a CPU.
  constexpr double kIdle = 0.5;
  Finding finding{.subject = "load"};
  if (!facts.load || facts.online == 0) {
    finding.what = "the machine does not say how busy it is";
    return finding;
  }
  finding.what = fmt::format("{:.1f} threads wanted a CPU in the last minute, of which there {} {}",
                             *facts.load, facts.online == 1 ? "is" : "are", facts.online);
  if (*facts.load <= kIdle || facts.threads + *facts.load <= facts.online + kIdle) return finding;
  finding.health = Health::note;
  finding.what += ": training will share them, and steps wait for the last thread";
  finding.advice = "end other programs or wait for them, or take fewer --threads";
  return finding;
}

Finding judge_hyper_threads(const Facts& facts) {
  Finding finding{.subject = "hyper-threads"};
  if (facts.cores == 0) {
    finding.what = "the machine does not say which CPUs share a core";
    return finding;
  }
  finding.what = fmt::format("{} CPUs are {} cores", facts.online, facts.cores);
  if (facts.cores < facts.online && facts.threads > facts.cores) {
    finding.health = Health::note;
    finding.what += ": two threads on one core share its arithmetic units";
    finding.advice = fmt::format("see whether --threads {} is as fast", facts.cores);
  }
  return finding;
}

Finding judge_memory(const Facts& facts) {
  const Memory& memory = facts.memory;
  const auto usable = memory.usable();
  Finding finding{.subject = "memory"};
  if (!usable) {
    finding.what = "the machine does not say how much there is";
    return finding;
  }
  finding.what = fmt::format("{} available", size_text(*usable));
  if (memory.total) finding.what += fmt::format(" of {}", size_text(*memory.total));
  if (memory.cgroup_limit) {
    finding.what += fmt::format("; the control group allows {}", size_text(*memory.cgroup_limit));
  }
  if (memory.address_space) {
    finding.what +=
        fmt::format("; the address space is limited to {}", size_text(*memory.address_space));
  }
  if (*usable >= kEnoughMemory) return finding;
  finding.health = *usable < kLeastMemory ? Health::problem : Health::note;
  if (memory.address_space == usable) {
    finding.advice = "raise the limit: ulimit -v unlimited";
  } else if (memory.cgroup_left == usable) {
    finding.advice = "raise the limit of the control group (docker --memory, MemoryMax=)";
  } else {
    finding.advice = "end other programs, or take fewer --threads: each has a network of its own";
  }
  return finding;
}

Finding judge_disk(const Facts& facts) {
  const Disk& disk = facts.disk;
  Finding finding{.subject = "disk",
                  .what = fmt::format("{} free in {}", size_text(disk.free), disk.folder.string())};
  if (!disk.writable) {
    finding.health = Health::problem;
    finding.what += ", which cannot be written to";
    finding.advice = "--out DIR in a folder of your own";
  } else if (disk.free < kEnoughDisk) {
    finding.health = disk.free < kLeastDisk ? Health::problem : Health::note;
    finding.advice = "make room, keep fewer checkpoints (--keep), or write elsewhere (--out)";
  }
  return finding;
}

Finding judge_huge_pages(const Facts& facts) {
  Finding finding{.subject = "huge pages"};
  finding.what = facts.huge_pages.empty()
                     ? "the machine does not say whether it has transparent huge pages"
                     : fmt::format("transparent huge pages: {}", facts.huge_pages);
  if (facts.huge_pages == "never") {
    finding.health = Health::note;
    finding.what += "; sums over large models miss the TLB more often";
    finding.advice = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  }
  return finding;
}

Finding judge_frequency(const Facts& facts) {
  Finding finding{.subject = "frequency"};
  if (facts.governor.empty()) {
    finding.what = "the governor cannot be seen, as in most virtual machines";
    return finding;
  }
  finding.what = fmt::format("governor {} ({})", facts.governor, facts.frequency_driver);
  // These drivers choose the frequency themselves, and call that "powersave".
  const bool by_hardware = facts.frequency_driver == "intel_pstate" ||
                           facts.frequency_driver.starts_with("amd-pstate-epp") ||
                           facts.frequency_driver == "amd_pstate_epp";
  if (facts.governor == "powersave" && !by_hardware) {
    finding.health = Health::problem;
    finding.what += ": the CPU stays at its lowest frequency";
    finding.advice = "as root: cpupower frequency-set --governor performance";
  }
  return finding;
}

Finding judge_versions(const Facts& facts) {
  if (!facts.training) return cannot_say("versions", facts);
  std::vector<std::string> names;
  std::vector<std::string> older;
  for (const Version& version : facts.training->versions) {
    names.push_back(fmt::format("{} {}", version.library, version.runs));
    if (is_older(version.runs, version.built)) {
      older.push_back(
          fmt::format("{} {} (built with {})", version.library, version.runs, version.built));
    }
  }
  Finding finding{.subject = "versions", .what = fmt::format("{}", fmt::join(names, ", "))};
  if (!older.empty()) {
    finding.health = Health::problem;
    finding.what = fmt::format("it runs with libraries older than it was built with: {}",
                               fmt::join(older, ", "));
    finding.advice = "build it again on this machine, or unset LD_LIBRARY_PATH";
  }
  return finding;
}

std::vector<Finding> findings(const Facts& facts) {
  std::vector<Finding> all;
  for (auto* const judge : {judge_processor, judge_blas, judge_kernels, judge_allocator,
                            judge_threads, judge_load, judge_hyper_threads, judge_memory,
                            judge_disk, judge_huge_pages, judge_frequency, judge_versions}) {
    all.push_back(judge(facts));
  }
  return all;
}

}  // namespace rubato::doctor
