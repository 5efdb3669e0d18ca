// Owned references to Python objects, and tuples of integers.
#pragma once

#include <Python.h>

#include <iterator>
#include <utility>

namespace twofold {

// Released at the end of its scope.
struct Owned {
  PyObject* object;
  explicit Owned(PyObject* o) : object(o) {}
  Owned(const Owned&) = delete;
  Owned(Owned&& other) noexcept : object(std::exchange(other.object, nullptr)) {}
  ~Owned() { Py_XDECREF(object); }
  explicit operator bool() const { return object != nullptr; }
};

// A new reference; null with an error set.
template <class Numbers>
PyObject* integer_tuple(const Numbers& numbers) {
  PyObject* tuple = PyTuple_New(std::ssize(numbers));
  for (Py_ssize_t k = 0; tuple && k < std::ssize(numbers); ++k) {
    PyObject* number = PyLong_FromLongLong(static_cast<long long>(numbers[static_cast<size_t>(k)]));
    if (number) PyTuple_SET_ITEM(tuple, k, number);
    else Py_CLEAR(tuple);
  }
  return tuple;
}

}  // namespace twofold
