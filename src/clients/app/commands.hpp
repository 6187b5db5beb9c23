#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "clients/app/help/help.hpp"

namespace rubato::app {

/// `rubato bench`: measures parts of training.
extern const CommandGroup kBench;

/// `rubato compare`: runs an experiment and prints its result. Returns the exit code; throws Error
/// for a mistake of the user.
[[nodiscard]] int compare_command(std::span<const std::string> arguments);

/// `rubato completion`: prints the script of a shell, or writes those of all shells into a folder.
/// Returns the exit code; throws Error for a mistake of the user, and OutputError.
[[nodiscard]] int completion_command(std::span<const std::string> arguments);

/// `rubato conform`: checks elastic training in Python. Becomes Python, and does not return. Throws
/// Error for a mistake of the user, and if there is no Python.
[[noreturn]] int conform_command(std::span<const std::string> arguments);

/// `rubato data`: fetches known data sets.
extern const CommandGroup kData;

/// `rubato doctor`: reports what would make training on this machine slow or wrong. Returns an
/// ExitCode; throws Error for a mistake of the user.
[[nodiscard]] int doctor_command(std::span<const std::string> arguments);

/// `rubato hosts HOST:PORT/NAME`: prints the state of a run on elastic hosts. Returns the exit
/// code; throws Error for a mistake of the user, and HostLost if the rendezvous does not answer.
[[nodiscard]] int show_hosts(std::span<const std::string> arguments);

/// `rubato launch --hosts N -- train ...`: starts the hosts of a training on this machine. Returns
/// the exit code of the first host that failed, or 0; of elastic hosts, that of the last one that
/// ended. Throws Error for a mistake of the user.
[[nodiscard]] int launch_command(std::span<const std::string> arguments);

/// `rubato list`: prints the strategies that options take by name, with their arguments, or the
/// records that rubato writes. Returns the exit code; throws Error for a mistake of the user.
[[nodiscard]] int list_command(std::span<const std::string> arguments);

/// `rubato metrics RUN`: prints the metrics of a run as CSV. Returns the exit code; throws Error
/// for a mistake of the user and for files that are not metrics.
[[nodiscard]] int metrics_command(std::span<const std::string> arguments);

/// `rubato plan`: prints what a trace will do before anything is trained. Returns the exit code;
/// throws Error for a mistake of the user.
[[nodiscard]] int plan_command(std::span<const std::string> arguments);

/// `rubato plot`: plots curves of runs, in the terminal or as a picture. Returns the exit code;
/// throws Error for a mistake of the user and for files that do not belong to a run, and
/// OutputError.
[[nodiscard]] int plot_command(std::span<const std::string> arguments);

/// `rubato rendezvous`: serves until a signal asks it to end, and returns the exit code. Throws
/// Error if the port is not available.
[[nodiscard]] int serve_rendezvous(std::span<const std::string> arguments);

/// `rubato report`: writes a page of HTML about runs, or about an experiment. Returns the exit
/// code; throws Error for a mistake of the user.
[[nodiscard]] int report_command(std::span<const std::string> arguments);

/// `rubato simulate`: predicts how long trainings would take on imagined clusters. Returns the exit
/// code; throws Error for a mistake of the user.
int simulate_command(std::span<const std::string> arguments);

/// `rubato trace`: reads, makes and shows traces and the availability of devices over time.
extern const CommandGroup kTrace;

/// `rubato train`: checks the options and the trace, and trains models that need no libtorch. For
/// others it becomes the program rubato-train, and does not return. Returns the exit code; throws
/// Error for a mistake of the user, and if there is no rubato-train.
[[nodiscard]] int train_front(std::span<const std::string> arguments);

/// `rubato serve-runs`, which no help mentions (serve_runs()), in the same way.
[[nodiscard]] int serve_front(std::span<const std::string> arguments);

/// `rubato verify` and `rubato calibrate`, in the same way.
[[nodiscard]] int verify_front(std::span<const std::string> arguments);
[[nodiscard]] int calibrate_front(std::span<const std::string> arguments);

/// The commands that repeat steps of runs, in the same way.
[[nodiscard]] int diff_front(std::span<const std::string> arguments);
[[nodiscard]] int doom_front(std::span<const std::string> arguments);
[[nodiscard]] int replay_front(std::span<const std::string> arguments);
[[nodiscard]] int whatif_front(std::span<const std::string> arguments);

/// `rubato eval` and `rubato predict`, which check the options and become rubato-train.
[[nodiscard]] int evaluate_front(std::span<const std::string> arguments);
[[nodiscard]] int predict_front(std::span<const std::string> arguments);

/// Replaces a --config that is not a regular file (a pipe, /dev/stdin) by a copy in memory, which
/// can be read again, also by programs that this one starts or becomes. Throws Error if it cannot
/// be read.
[[nodiscard]] std::vector<std::string> with_kept_configuration(
    std::span<const std::string> arguments);

/// The file of the program rubato-train: beside this program in a build, or where an installation
/// puts it. Throws Error if there is none.
[[nodiscard]] std::filesystem::path train_program();

/// `rubato watch`: shows runs from their folders until they have ended. Returns the exit code;
/// throws Error for a mistake of the user, and for files that do not belong to a run.
[[nodiscard]] int watch_command(std::span<const std::string> arguments);

/// The program itself, as the command that contains all others.
extern const Command kProgram;

}  // namespace rubato::app
