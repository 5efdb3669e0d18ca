#include "open_graph.h"

#include <Python.h>

#include <utility>

#include "owned.h"
#include "tensor.h"
#include "template.h"

namespace twofold {

DeclaredCounts declared_counts{};

bool values_of(PyObject* tensors, std::vector<ValueRef>& out) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tensors, i);
    Value* value = is_tensor(item) ? current_value(reinterpret_cast<PyTensor*>(item)) : nullptr;
    if (!value) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a function is made of tensors");
      return false;
    }
    out.push_back(share(value));
  }
  return true;
}

std::shared_ptr<const OpenGraph> OpenGraph::read(PyObject* encoded) {
  auto made = std::make_shared<OpenGraph>();
  PyObject *inputs, *outputs, *sizes, *parts;
  const bool whole = PyArg_ParseTuple(encoded, "O!O!OO!", &PyTuple_Type, &inputs, &PyTuple_Type, &outputs, &sizes, &PyList_Type, &parts) &&
                     values_of(inputs, made->inputs_) && values_of(outputs, made->outputs_) && made->sizes_.read(sizes) &&
                     made->read_parts(parts);
  return whole ? made : nullptr;
}

bool OpenGraph::read_parts(PyObject* parts) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parts); ++i) {
    PyObject *tensor, *attributes;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(parts, i), "O!On", tensor_type, &tensor, &attributes, &count)) return false;
    Part part;
    part.value = share(reinterpret_cast<PyTensor*>(tensor)->value);
    part.numbers = static_cast<size_t>(count);
    if (attributes != Py_None) {
      part.attributes = std::shared_ptr<PyObject>(Py_NewRef(attributes), [](PyObject* tuple) { Py_DECREF(tuple); });
    }
    parts_.push_back(std::move(part));
  }
  return true;
}

// Evaluates what depends on sizes; false if a type does not match its input or a guard does not hold.
bool OpenGraph::evaluate(const std::vector<Type*>& types, std::vector<int64_t>& numbers) const {
  std::vector<int64_t> sizes;
  if (types.size() != inputs_.size()) return false;
  for (size_t i = 0; i < types.size(); ++i) {
    const Type *own = inputs_[i]->type, *given = types[i];
    if (own->dtype != given->dtype || own->weak != given->weak || own->shape.size() != given->shape.size()) return false;
    for (size_t axis = 0; axis < own->shape.size(); ++axis) {
      if (own->shape[axis] < 0) sizes.push_back(given->shape[axis]);
      else if (own->shape[axis] != given->shape[axis]) return false;
    }
  }
  return sizes.size() == sizes_.inputs() && sizes_.run(sizes.data(), numbers);
}

bool OpenGraph::takes(const std::vector<Type*>& types) const {
  std::vector<int64_t> numbers;
  return evaluate(types, numbers);
}

std::unique_ptr<Specialisation> OpenGraph::specialised(const std::vector<Type*>& types) const {
  std::vector<int64_t> numbers;
  if (!evaluate(types, numbers)) return nullptr;
  Sized sized;
  const int64_t* next = numbers.data();
  for (const Part& part : parts_) {
    if (!part.attributes) {
      sized.numbers[part.value.get()] = *next++;
      continue;
    }
    const int64_t* end = next + part.numbers;
    Owned tuple(with_numbers(part.attributes.get(), next));
    AttributesRef attributes = tuple ? attributes_of(tuple.object) : nullptr;
    if (!attributes) return nullptr;
    next = end;
    sized.attributes.emplace(part.value.get(), std::move(attributes));
  }
  return specialise(inputs_, outputs_, types, sized);
}

}  // namespace twofold
