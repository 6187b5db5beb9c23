#pragma once

#include <array>
#include <string_view>

namespace rubato::app {

/// The exit codes of the programs. 21 is that of the original program.
enum class ExitCode {
  good = 0,
  /// A bug, or an error of an unknown kind.
  internal = 1,
  /// A mistake in the options or files; nothing was trained.
  usage = 2,
  /// The final test accuracy is below --target-accuracy.
  target_missed = 21,
  /// The loss or the gradient became NaN or infinite.
  diverged = 22,
  /// `rubato verify` found a difference.
  differs = 23,
  /// A result could not be written: the disk is full, or the folder is gone.
  output_lost = 24,
  /// There was too little memory, before or during a run.
  memory = 25,
  /// `rubato doctor` found a problem.
  unwell = 26,
  /// `rubato compare` has an answer without some of its runs, which were killed or failed for lack
  /// of disk space or memory. The same command continues with them.
  incomplete = 27,
  /// Another host is gone, or was silent for too long.
  host_lost = 28,
  /// A host joined a run that had ended on the other hosts.
  run_ended = 29,
  /// The trace ran out of devices before the training was complete.
  out_of_devices = 30,
  /// A server did not answer `rubato data get`, or did not send the published files.
  not_fetched = 31,
  /// The program was ended by a signal, after a checkpoint: 128 plus its number, as in a shell.
  /// These are a lost terminal, Ctrl-C and a request to terminate; exit_code_of_signal() computes
  /// the others.
  hung_up = 129,
  interrupted = 130,
  terminated = 143,
};

/// The meaning of an exit code; exit_codes() lists them in the order of docs/runs.md.
struct ExitMeaning {
  ExitCode code;
  std::string_view meaning;
};
[[nodiscard]] constexpr std::array<ExitMeaning, 17> exit_codes() {
  return {{{ExitCode::good, "success"},
           {ExitCode::usage, "a mistake in options or files"},
           {ExitCode::target_missed, "a missed target (`--target-accuracy`)"},
           {ExitCode::diverged, "a loss that became NaN or infinite"},
           {ExitCode::differs, "a difference found by `rubato verify`"},
           {ExitCode::output_lost,
            "output that it could not write: a full disk, a file-size limit, a closed pipe as in "
            "`rubato train | head`"},
           {ExitCode::memory, "too little memory, or a limit that allows no further thread"},
           {ExitCode::unwell, "a problem found by `rubato doctor`"},
           {ExitCode::incomplete,
            "an answer of `rubato compare` that lacks runs, because they were killed"},
           {ExitCode::host_lost, "another host, or the rendezvous, lost"},
           {ExitCode::run_ended, "a host that joined a run that had already ended"},
           {ExitCode::out_of_devices, "no more devices before training was complete"},
           {ExitCode::not_fetched,
            "a server that did not answer `rubato data get`, or with something else than was "
            "published"},
           {ExitCode::hung_up, "a lost terminal"},
           {ExitCode::interrupted, "Ctrl-C"},
           {ExitCode::terminated, "a request to terminate"},
           {ExitCode::internal, "any other error"}}};
}

}  // namespace rubato::app
