#pragma once

namespace rubato::app {

/// The exit codes of the programs, as docs/runs.md lists them. 21 is that of the original program.
enum class ExitCode {
  good = 0,
  /// A bug, or an error of an unknown kind.
  internal = 1,
  /// `rubato diff` found a difference, as diff(1) says it.
  parted = 1,
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
  /// of disk space or memory, or cannot do a run yet that needs others. The same command continues
  /// with them.
  incomplete = 27,
  /// Another host is gone, or was silent for too long.
  host_lost = 28,
  /// A host joined a run that had ended on the other hosts.
  run_ended = 29,
  /// The trace ran out of devices before the training was complete.
  out_of_devices = 30,
  /// A server did not answer `rubato data get`, or did not send the published files.
  not_fetched = 31,
  /// `rubato conform` found a check that fails.
  nonconforming = 32,
  /// `rubato compare` has found two results of one run that differ.
  results_differ = 33,
  /// The program was ended by a signal, after a checkpoint: 128 plus its number, as in a shell.
  /// These are a lost terminal, Ctrl-C and a request to terminate; exit_code_of_signal() computes
  /// the others.
  hung_up = 129,
  interrupted = 130,
  terminated = 143,
};

}  // namespace rubato::app
