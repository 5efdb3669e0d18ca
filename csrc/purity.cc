#include "purity.h"

#include <utility>

#include "recorder.h"

namespace twofold {

PyObject* Purity::exchange(PyObject* refusal) {
  stamp_ = Recorder::current().stamp();
  entries_ = Recorder::current().size();
  return std::exchange(refusal_, refusal);
}

bool Purity::raise() {
  PyErr_SetNone(refusal_);
  return true;
}

bool Purity::is_made_inside(const Value* value) {
  return value->pending && value->owner == &Recorder::current() && value->stamp == stamp_ && value->index >= entries_;
}

}  // namespace twofold
