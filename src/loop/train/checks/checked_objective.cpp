#include "checked_objective.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato {

namespace {

void require_once(const std::vector<NamedArray>& arrays, std::string_view what) {
  std::set<std::string_view> names;
  for (const NamedArray& array : arrays) {
    if (names.insert(array.name).second) continue;
    throw Error(fmt::format("the objective has two {} called '{}'; accepted: names that differ",
                            what, array.name));
  }
}

// Throws Error unless each array in training lies in the flat parameters, beginning at the end of
// the one before it.
template <class T>
void require_laid_out(ObjectiveOf<T>& objective) {
  const std::span<T> flat = objective.flat_parameters();
  std::size_t begin = 0;
  for (const TrainedArray& of : objective.trained()) {
    const NamedArray& array = of.array;
    if (array.type != objective.type()) {
      throw Error(fmt::format("the objective trains '{}' of type {} among {}; accepted: {}",
                              array.name, name_of(array.type), name_of(objective.type()),
                              name_of(objective.type())));
    }
    const bool fits = begin <= of.end && of.end <= flat.size() && array.size() <= of.end - begin;
    if (!fits || (array.size() > 0 && array.data != flat.data() + begin)) {
      throw Error(
          fmt::format("the objective trains '{}', {} values that end at {} of {}, which is not "
                      "where its data are; accepted: in flat_parameters(), each array from the end "
                      "of the one before it",
                      array.name, array.size(), of.end, flat.size()));
    }
    begin = of.end;
  }
  if (begin != flat.size() || flat.empty()) {
    throw Error(
        fmt::format("the objective has {} parameters, and its arrays in training end at {}; "
                    "accepted: at least one, and arrays that cover all",
                    flat.size(), begin));
  }
}

template <class T>
void require_typed(Objective& objective) {
  auto* const typed = dynamic_cast<ObjectiveOf<T>*>(&objective);
  if (typed == nullptr) {
    throw Error(
        "an objective that derives from Objective itself; accepted: one that derives from "
        "ObjectiveOf");
  }
  require_laid_out(*typed);
}

}  // namespace

std::unique_ptr<Objective> checked_objective(std::unique_ptr<Objective> objective) {
  if (objective == nullptr) throw Error("a trainer needs an objective; accepted: any but null");
  switch (objective->type()) {
    case ElementType::f64:
      require_typed<double>(*objective);
      break;
    case ElementType::f32:
      require_typed<float>(*objective);
      break;
    default:
      throw Error(fmt::format("the objective trains parameters of type {}; accepted: F32, F64",
                              name_of(objective->type())));
  }
  require_once(objective->parameters(), "parameters");
  require_once(objective->buffers(), "buffers");
  return objective;
}

}  // namespace rubato
