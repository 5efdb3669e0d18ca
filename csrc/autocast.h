// Autocast regions, in which operations choose the dtype of their floating operands by the policies of their entries.
#pragma once

#include <vector>

#include "recorder.h"

namespace twofold {

// The arguments of one call, cast by the policy of its operation; calls that it records itself are not cast again.
class Autocast {
 public:
  static bool applies(AutocastPolicy policy) { return policy != AutocastPolicy::kNone && Recorder::current().autocast; }
  // On failure `arguments` is null, with a Python error set.
  Autocast(AutocastPolicy policy, PyObject* const* arguments, size_t count);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  PyObject* const* arguments() const { return failed_ ? nullptr : cast_.data(); }

 private:
  Recorder& recorder_;
  std::vector<PyObject*> cast_;  // owned
  bool failed_ = false;
};

// call_operation in an autocast region.
PyObject* call_in_region(Operation* op, Attributes* attributes, PyObject* const* arguments, size_t count);
int add_autocast_type(PyObject* module);

}  // namespace twofold
