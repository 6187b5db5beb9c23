#include "tensors.hpp"

#include <string>

#include <pybind11/pybind11.h>
// Python's headers come after pybind11's.
#include <torch/csrc/autograd/python_variable.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/dataset.hpp>

namespace rubato::python {

namespace py = pybind11;

namespace {

py::object object_of(const at::Tensor& tensor) {
  return py::reinterpret_steal<py::object>(THPVariable_Wrap(tensor));
}

}  // namespace

Tensors tensors_in(const py::list& list) {
  Tensors tensors;
  for (const py::handle item : list) {
    if (!THPVariable_Check(item.ptr())) {
      throw Error(std::string(Py_TYPE(item.ptr())->tp_name) +
                  " is not a tensor; accepted: torch.Tensor");
    }
    tensors.push_back(THPVariable_Unpack(item.ptr()).detach());
  }
  return tensors;
}

std::vector<NamedTensor> copies_of(std::span<const NamedArray> arrays) {
  std::vector<NamedTensor> copies = tensors_of(arrays);
  for (NamedTensor& copy : copies) copy.tensor = copy.tensor.clone();
  return copies;
}

py::list list_of(std::span<const at::Tensor> tensors) {
  py::list list;
  for (const at::Tensor& tensor : tensors) list.append(object_of(tensor));
  return list;
}

py::dict dict_of(std::span<const NamedTensor> tensors) {
  py::dict dict;
  for (const NamedTensor& named : tensors) dict[py::str(named.name)] = object_of(named.tensor);
  return dict;
}

}  // namespace rubato::python
