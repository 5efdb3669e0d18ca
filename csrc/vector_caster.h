// Vectors as arguments and results. As nanobind/stl/vector.h, whose conversion of an argument is noexcept: a vector that
// finds no memory would end the process there instead of raising MemoryError.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/detail/nb_list.h>

#include <vector>

namespace nanobind::detail {

template <class Entry>
struct type_caster<std::vector<Entry>> : list_caster<std::vector<Entry>, Entry> {
  bool from_python(handle source, auto flags, cleanup_list* cleanup) {
    this->value.clear();
    if (!PyList_Check(source.ptr()) && !PyTuple_Check(source.ptr())) return false;
    const auto size = PySequence_Fast_GET_SIZE(source.ptr());
    this->value.reserve(static_cast<size_t>(size));
    make_caster<Entry> entry;
    for (Py_ssize_t k = 0; k < size; ++k) {
      const handle item = PySequence_Fast_GET_ITEM(source.ptr(), k);
      if (!entry.from_python(item, flags_for_local_caster<Entry>(flags), cleanup)) return false;
      if (!entry.template can_cast<Entry>()) return false;
      this->value.push_back(entry.operator cast_t<Entry>());
    }
    return true;
  }
};

}  // namespace nanobind::detail
