#include <rubato/train/metric.hpp>

namespace rubato {

std::optional<double> value_of(Metric metric, const EpochRecord& epoch) {
  if (metric == Metric::train_loss) return epoch.train_loss;
  if (!epoch.test) return std::nullopt;
  return metric == Metric::test_loss ? epoch.test->loss : epoch.test->accuracy;
}

}  // namespace rubato
