// Purity checks of functions that are traced once and run many times without Python.
#pragma once

#include <Python.h>

#include <cstdint>

#include "value.h"

namespace twofold {

// Such a function may use its arguments, numbers, and values computed from these. If it reads, writes or computes with
// another tensor, or depends on other state of the core, `refusal` is raised.
class Purity {
 public:
  // Sets the exception type, or null, of this thread; returns the one before. Owned references.
  static PyObject* exchange(PyObject* refusal);
  static bool is_asked_for() { return refusal_ != nullptr; }
  // Whether an access is not allowed; the Python error is set then.
  static bool is_broken() { return refusal_ && raise(); }
  // The same of computing with a bound value.
  static bool is_broken_by(const Value* value) { return refusal_ && !is_made_inside(value) && raise(); }

 private:
  static bool raise();
  static bool is_made_inside(const Value* value);

  static inline thread_local PyObject* refusal_ = nullptr;
  static inline thread_local uint64_t stamp_ = 0;   // of the trace at the beginning, and its entries then
  static inline thread_local int64_t entries_ = 0;
};

}  // namespace twofold
