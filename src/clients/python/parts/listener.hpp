#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pybind11/pybind11.h>

#include <rubato/loop/observer.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/runs/run.hpp>

#include "beside_python.hpp"
#include "clients/python/results/table.hpp"

namespace rubato::python {

/// What Python brings that is called in training, on the calling thread alone.
struct Callbacks {
  /// Where progress is shown.
  struct Shown {
    pybind11::object write{};
    int descriptor = -1;
    bool redraws = false;
  };

  /// Each may be None.
  pybind11::object on_step{};
  pybind11::object on_epoch{};
  std::optional<Shown> progress{};
};
/// Of the dictionary that train() is given. With the GIL.
[[nodiscard]] Callbacks callbacks_of(const pybind11::dict& dict);

/// Keeps what happens, tells the callbacks, and does what they ask for: ends training, sets its
/// rate, keeps their metrics. Ends a training that nobody waits for any more.
class Listener final : public Observer {
 public:
  /// All of it outlives the training.
  Listener(CallingThread& calling, const Callbacks& callbacks, Run& run);

  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  /// Throws where the training is abandoned: before it is evaluated, and before there is a
  /// checkpoint.
  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  void between_steps(Training& training) override;
  /// For a Monitor.
  void keep(const StepPlan& step, std::span<const TensorStatistics> tensors);

  [[nodiscard]] const Table& steps() const { return steps_; }
  [[nodiscard]] const Table& epochs() const { return epochs_; }
  [[nodiscard]] const Table& minibatches() const { return minibatches_; }
  [[nodiscard]] const Table& faults() const { return faults_; }
  [[nodiscard]] const Table& monitored() const { return monitored_; }

 private:
  // What a callback has answered.
  struct Answer {
    bool stop = false;
    std::optional<double> learning_rate{};
    std::vector<MetricValue> metrics{};
  };
  static Answer answer_of(const pybind11::object& answered);
  // Tells a callback what is in `row`, and does what it asks for; its metrics are those `of` a
  // "step" or an "epoch", and are added to `row`.
  void tell(Training& training, const pybind11::object& callback, std::string_view of,
            std::int64_t index, Row& row);

  CallingThread& calling_;
  const Callbacks& callbacks_;
  Run& run_;
  // Looked at while the GIL was held.
  bool hears_steps_;
  bool hears_epochs_;
  // Why a callback wants training to end; empty where none does.
  std::string reason_;
  Table steps_;
  Table epochs_;
  Table minibatches_;
  Table faults_;
  Table monitored_;
};

}  // namespace rubato::python
