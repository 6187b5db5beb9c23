#pragma once

#include <array>
#include <string_view>

namespace rubato::app {

/// What the programs answer the shell. 21 is the original's.
enum class ExitCode {
  good = 0,
  /// A bug, or something the program knows no name for.
  internal = 1,
  /// A mistake in the options or files; nothing was trained.
  usage = 2,
  /// The final test accuracy is below --target-accuracy.
  target_missed = 21,
  /// The loss or the gradient became NaN or infinite.
  diverged = 22,
  /// `rubato verify` found a difference.
  differs = 23,
  /// What was computed could not be written: a full disk, a folder that has gone.
  output_lost = 24,
  /// Memory that could not be had, before or in a run.
  memory = 25,
  /// `rubato doctor` found a problem.
  unwell = 26,
  /// `rubato compare` has an answer without some of its runs, which were killed, or could not be
  /// written or held in memory: it can go on with them.
  incomplete = 27,
  /// Another host is gone, or silent for too long.
  host_lost = 28,
  /// A host has come to a run that has ended at the others.
  run_ended = 29,
  /// There were no devices for the rest of the training any more.
  out_of_devices = 30,
  /// A server did not answer `rubato data get`, or with something else.
  not_fetched = 31,
  /// Ended by a signal, after a checkpoint: 128 and the signal, as a shell has it. That of a lost
  /// terminal, Ctrl-C, a request to terminate; exit_code_of_signal() has the others.
  hung_up = 129,
  interrupted = 130,
  terminated = 143,
};

/// What each says, in the order of docs/runs.md.
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
