#include "script_model.hpp"

#include <utility>

#include <rubato/libtorch/model.hpp>

#include "libtorch/model/script/script_instances.hpp"

namespace rubato {

void ScriptModel::begin_with(Begin begin) {
  begin_ = std::move(begin);
  begin_(make_model(module_));
}

ModelFactory ScriptModel::factory() {
  if (!read_) return script_factory(module_);
  if (std::exchange(forgotten_, false)) {
    module_ = read_();
    if (begin_) begin_(make_model(module_));
  }
  return sharing_script_factory(module_);
}

void ScriptModel::forget() {
  if (!read_) return;
  forget_parameters(module_);
  forgotten_ = true;
}

}  // namespace rubato
