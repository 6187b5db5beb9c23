#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "clients/app/line/command_line.hpp"
#include "clients/app/line/exit_code.hpp"
#include "clients/app/line/output.hpp"
#include "commands.hpp"
#include "runs/doctor/facts.hpp"
#include "runs/doctor/findings.hpp"

namespace rubato::app {

namespace {

constexpr std::int64_t kMaxThreads = 4096;

// Asks rubato-train, because only a process with libtorch knows which kernels it gets.
void ask_training(doctor::Facts& facts) {
  try {
    facts.training = doctor::parse_probe(doctor::output_of(train_program(), "doctor-probe"));
  } catch (const Error& error) {
    facts.no_training = error.what();
  }
}

}  // namespace

int doctor_command(std::span<const std::string> arguments) {
  bool json = false;
  CommandLine line("rubato doctor",
                   "Reports what would make training on this machine slow or wrong, and what to do "
                   "about it: the BLAS and its kernels, malloc, CPUs, load, versions.");
  std::optional<std::int64_t> threads;
  line.whole("threads", "N", "the number of threads for training", "all that it may use", threads,
             1, kMaxThreads);
  line.flag("json", "print JSON: what was found, and the facts behind it", json);
  line.footer("Exit codes: 0 when there is no problem, 26 when there is one.");
  line.parse(arguments);

  doctor::Facts facts = doctor::gather_facts("/");
  if (threads) facts.threads = static_cast<int>(*threads);
  ask_training(facts);
  const auto findings = doctor::findings(facts);
  print_out(json ? doctor::report_json(facts, findings)
                 : doctor::report_text(findings, output_width()));
  return static_cast<int>(doctor::is_well(findings) ? ExitCode::good : ExitCode::unwell);
}

}  // namespace rubato::app
