// What a backward pass has found goes to the hooks of leaves and into `.grad`.
#include <Python.h>

#include "gradient.h"
#include "owned.h"
#include "tensor.h"

namespace twofold {
namespace {

PyTensor* as_tensor(PyObject* self) { return reinterpret_cast<PyTensor*>(self); }

bool run_after(GradientSlot* slot) {
  if (!slot->after) return true;
  const Owned called(PyList_AsTuple(slot->after));  // a hook may remove itself, or add one
  bool done = static_cast<bool>(called);
  for (Py_ssize_t i = 0; done && i < PyTuple_GET_SIZE(called.object); ++i) {
    const Owned result(PyObject_CallNoArgs(PyTuple_GET_ITEM(called.object, i)));
    done = static_cast<bool>(result);
  }
  return done;
}

// Gives the tensor `.grad` a new value. Gradients that keep their graph are another tensor each time, as in PyTorch, and so are those
// of values in between, which calls of a pass with create_graph may read.
bool replace_gradient(GradientSlot* slot, ValueRef value) {
  if (slot->gradient && !slot->intermediate && !Recorder::current().grad_enabled) {
    const Owned held(Py_NewRef(slot->gradient));  // a finaliser may set `.grad` to None
    return assign(as_tensor(held.object), std::move(value));
  }
  PyObject* made = wrap(std::move(value));
  if (made) Py_XSETREF(slot->gradient, made);
  return made != nullptr;
}

// Sets `.grad` if no hook reads the gradient of the pass alone.
bool keep_total(FoundGradient& item) {
  GradientSlot* slot = item.watch.slot;
  slot->sparse = item.sparse && (slot->sparse || !slot->gradient);
  if (slot->gradient) return replace_gradient(slot, std::move(item.total));
  return (slot->gradient = wrap(std::move(item.total))) != nullptr;
}

// Accumulates into `.grad`; of a value that is no leaf, only with retain_grad.
bool gather(FoundGradient item, bool asked) {
  GradientSlot* slot = item.watch.slot;
  if (slot->intermediate && !slot->retains && !asked) return true;
  PyObject* gradient = item.is_undefined() ? Py_NewRef(Py_None) : wrap(item.gradient);
  if (!gradient || !(slot->intermediate || run_hooks(slot, &gradient))) {
    Py_XDECREF(gradient);
    return false;
  }
  if (gradient == Py_None) {
    Py_DECREF(gradient);
    return run_after(slot);
  }
  slot->sparse = item.sparse && (slot->sparse || !slot->gradient);
  if (item.total && slot->gradient) {
    const Value* seen = current_value(as_tensor(gradient));
    const Value* held = seen ? current_value(as_tensor(slot->gradient)) : nullptr;
    const bool as_before = seen == item.gradient.get() && held == item.start.get();  // hooks and other leaves left both alone
    if (!held || as_before) {
      Py_DECREF(gradient);
      return held && replace_gradient(slot, std::move(item.total)) && run_after(slot);
    }
  }
  if (!slot->gradient) {
    if (Py_REFCNT(gradient) > 1) {
      // Gradients that a hook has stored do not change when later passes accumulate into `.grad`.
      Value* kept = current_value(as_tensor(gradient));
      Py_SETREF(gradient, kept ? wrap(share(kept)) : nullptr);
      if (!gradient) return false;
    }
    slot->gradient = gradient;
    return run_after(slot);
  }
  static Operation* const accumulate = operation_of(hooks.accumulate);
  const Owned held(Py_NewRef(slot->gradient));
  PyObject* both[2] = {held.object, gradient};
  PyObject* sum = call_operation(accumulate, no_attributes(), both, 2);
  Py_DECREF(gradient);
  if (!sum) return false;
  ValueRef value = share(as_tensor(sum)->value);
  Py_DECREF(sum);
  return replace_gradient(slot, std::move(value)) && run_after(slot);
}

}  // namespace

bool gather_all(std::vector<FoundGradient>& found, bool create, bool asked) {
  bool done = true;
  {
    GradientScope scoped(create);
    // Before hooks run, which may change `.grad` of other leaves.
    for (FoundGradient& item : found) done = done && (item.gradient || item.is_undefined() || keep_total(item));
    for (FoundGradient& item : found) {
      if (done) done = item.gradient || item.is_undefined() ? gather(std::move(item), asked) : run_after(item.watch.slot);
    }
  }
  found.clear();  // a run may overwrite unreferenced memory
  Recorder& recorder = Recorder::current();
  return done && (!recorder.runs_at_once() || recorder.flush());
}

}  // namespace twofold
