#include <algorithm>
#include <cstring>

#include "call_memo.h"
#include "gradient.h"
#include "guard.h"
#include "layout.h"
#include "location.h"
#include "owned.h"
#include "tensor.h"

namespace twofold {
namespace {

PyTensor* as_tensor(PyObject* self) { return reinterpret_cast<PyTensor*>(self); }

// A new reference. While a graph is declared over symbolic sizes, these are symbols.
PyObject* get_type(PyObject* self, void*) {
  const Type* type = as_tensor(self)->value->type;
  PyObject* found = python_type(as_tensor(self)->value->type);
  return found && type->unknown && hooks.symbolic_type ? PyObject_CallOneArg(hooks.symbolic_type, found) : Py_XNewRef(found);
}

PyObject* type_attribute(PyObject* self, const char* name) {
  Owned type(get_type(self, nullptr));
  return type ? PyObject_GetAttrString(type.object, name) : nullptr;
}

PyObject* get_shape(PyObject* self, void*) { return type_attribute(self, "size_object"); }
PyObject* get_dtype(PyObject* self, void*) { return type_attribute(self, "dtype"); }
PyObject* get_ndim(PyObject* self, void*) {
  return PyLong_FromSize_t(as_tensor(self)->value->type->shape.size());
}

// A detached handle without aliases gets new storage.
void drop_lonely_view(PyTensor* tensor) {
  View* view = tensor->view;
  if (!view || view->operation || view->parent != view->root || Py_REFCNT(reinterpret_cast<PyObject*>(view->root)) > 2 || view->root->view) return;
  leave_storage(tensor);
}

// The handle becomes a leaf of its own; the value it shared keeps its flags.
bool own_value(PyTensor* tensor) {
  const UsedValue value(tensor->value);
  if (!realise(value)) return false;
  ValueRef own(new_value(value->type));
  own->buffer = value->buffer;
  own->location = value->location;
  if (keeps_gradient(tensor)) keep_gradient(value, own.get());
  release(std::exchange(tensor->value, own.take()));
  tensor->detached = false;
  drop_lonely_view(tensor);
  return true;
}

PyObject* get_grad(PyObject* self, void*) {
  const UsedValue value(as_tensor(self)->value);
  const GradientSlot* slot = as_tensor(self)->detached ? nullptr : value->slot;
  bool empty = flows(as_tensor(self)) && !value->is_leaf && !is_symbolic(value) && !(slot && (slot->retains || slot->gradient));
  if (empty && PyErr_WarnEx(PyExc_UserWarning,
                            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. A backward pass does not "
                            "fill it: call retain_grad() on the tensor before, or look at the leaf.",
                            1) < 0) {
    return nullptr;
  }
  if (slot && slot->gradient && slot->sparse) return PyObject_CallOneArg(hooks.sparse_gradient, slot->gradient);
  return get_dense_grad(self, nullptr);
}

int set_grad(PyObject* self, PyObject* gradient, void*) {
  const UsedValue value(as_tensor(self)->value);
  if (gradient && gradient != Py_None && !is_tensor(gradient) && PyObject_HasAttrString(gradient, "is_sparse")) {
    const Owned dense(PyObject_CallMethod(gradient, "to_dense", nullptr));
    if (!dense || set_grad(self, dense.object, nullptr) < 0) return -1;
    return set_sparse_grad(self, Py_True, nullptr);
  }
  if (gradient && gradient != Py_None) {
    if (!is_tensor(gradient)) {
      PyErr_SetString(PyExc_TypeError, "grad: give a tensor or None");
      return -1;
    }
    Type* type = as_tensor(gradient)->value->type;
    if (type != value->type) {
      const std::string given = line_text(as_tensor(gradient)->value->location), made = line_text(value->location);
      PyErr_Format(PyExc_RuntimeError, "grad: a gradient %s (%s) does not fit the tensor %s (%s), at %s. Give one of its dtype and shape.",
                   type->text().c_str(), given.c_str(), value->type->text().c_str(), made.c_str(), location_text(capture_location()).c_str());
      return -1;
    }
  } else {
    gradient = nullptr;
    if (!value->slot || as_tensor(self)->detached) return 0;
  }
  if (as_tensor(self)->detached && !own_value(as_tensor(self))) return -1;
  Py_XINCREF(gradient);
  GradientSlot* slot = slot_of(as_tensor(self)->value);
  slot->sparse = false;
  const Owned old(std::exchange(slot->gradient, gradient));  // freed last: its finaliser may free the slot
  return 0;
}

PyObject* get_requires_grad(PyObject* self, void*) {
  if (!current_value(as_tensor(self))) return nullptr;
  return PyBool_FromLong(flows(as_tensor(self)));
}

int set_requires_grad(PyObject* self, PyObject* flag, void*) {
  PyTensor* tensor = as_tensor(self);
  const int wanted = flag ? PyObject_IsTrue(flag) : 0;
  const Owned handle(wanted > 0 ? PyWeakref_NewRef(self, nullptr) : nullptr);
  if (wanted < 0 || (wanted && !handle)) return -1;
  Value* value = current_value(tensor);
  if (!value) return -1;
  if (wanted && !is_differentiable(value->type->dtype)) {
    PyErr_Format(PyExc_RuntimeError, "requires_grad: only floating and complex tensors can require gradients, this is %s. Cast it first.",
                 value->type->text().c_str());
    return -1;
  }
  if (!wanted && value->requires_grad && !value->is_leaf && !tensor->detached) {
    PyErr_SetString(PyExc_RuntimeError, "requires_grad: you can only change requires_grad flags of leaf variables. Use detach().");
    return -1;
  }
  if (wanted && flows(tensor)) return 0;
  if (tensor->detached || (wanted && (value->pending || value->deferred))) {
    if (!own_value(tensor)) return -1;
    value = tensor->value;
  }
  value->requires_grad = wanted;
  value->is_leaf = true;
  if (!wanted) return 0;
  Py_XSETREF(slot_of(value)->handle, Py_NewRef(handle.object));
  return 0;
}

PyObject* get_is_leaf(PyObject* self, void*) {
  if (!current_value(as_tensor(self))) return nullptr;
  return PyBool_FromLong(!flows(as_tensor(self)) || as_tensor(self)->value->is_leaf);
}
PyObject* get_version(PyObject* self, void*) {
  const PyTensor* tensor = counting(as_tensor(self));
  return PyLong_FromUnsignedLong(tensor->version - tensor->silent);
}
PyObject* get_has_views(PyObject* self, void*) { return PyBool_FromLong(as_tensor(self)->views != 0); }
PyObject* get_location(PyObject* self, void*) { return location_frames(as_tensor(self)->value->location); }
PyObject* get_where(PyObject* self, void*) {
  return PyUnicode_FromString(line_text(as_tensor(self)->value->location).c_str());
}
PyObject* get_realised(PyObject* self, void*) { return PyBool_FromLong(static_cast<bool>(as_tensor(self)->value->buffer)); }
PyObject* get_symbolic(PyObject* self, void*) { return PyBool_FromLong(is_symbolic(as_tensor(self)->value)); }
PyObject* get_base(PyObject* self, void*) {
  View* view = as_tensor(self)->view;
  if (!view || view->parent->view) CallWatch::spoil();  // else it is a view whatever its shape
  PyObject* base = view ? reinterpret_cast<PyObject*>(view->root) : Py_None;
  Py_INCREF(base);
  return base;
}

PyObject* detached_view(PyObject* self, bool data) {
  PyTensor* tensor = as_tensor(self);
  Value* value = current_value(tensor);
  PyObject* made = value ? wrap(share(value)) : nullptr;
  if (!made) return nullptr;
  // A chain of detached handles would keep all of them alive.
  if (const View* shown = tensor->detached && !data ? tensor->view : nullptr; shown && !shown->operation && !shown->data) tensor = shown->parent;
  PyTensor* result = as_tensor(made);
  result->detached = true;
  result->view = new_view(tensor, nullptr, nullptr, PyTuple_New(0), data);
  return made;
}

PyObject* detach(PyObject* self, PyObject*) { return detached_view(self, false); }
PyObject* data_of(PyObject* self, PyObject*) { return detached_view(self, true); }

PyObject* item(PyObject* self, PyObject*) {
  PyTensor* tensor = as_tensor(self);
  if (!may_be_observed(tensor, "item()")) return nullptr;
  if (tensor->value->type->size != 1) {
    return PyErr_Format(PyExc_RuntimeError, "item: only a tensor of one element becomes a number, this is %s. Index it first.",
                        tensor->value->type->text().c_str());
  }
  return number_of(tensor);
}

// As observe, of a tensor whose memory is handed out.
bool observe_memory(PyTensor* tensor, const char* what) {
  if (!observe(tensor, what)) return false;
  const UsedValue value(tensor->value);
  Buffer* buffer = value->buffer.get();
  if (!Recorder::current().flush_readers(buffer)) return false;
  if (value != tensor->value) return observe_memory(tensor, what);  // what ran meanwhile has given the handle another one
  ++(buffer->whole ? buffer->whole : buffer)->handovers;
  return true;
}

// `observe_tensor` computes the elements: observe_memory where the array is handed out, observe where it is only read.
PyObject* array_by(PyObject* self, bool (*observe_tensor)(PyTensor*, const char*)) {
  PyTensor* tensor = as_tensor(self);
  if (flows(tensor)) {
    PyErr_SetString(PyExc_RuntimeError, "numpy: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    return nullptr;
  }
  const Owned held = shown_by(tensor);
  auto* const shown = as_tensor(held.object);
  if (shown->view) return observe(shown, "numpy()") ? PyObject_CallOneArg(hooks.view_array, reinterpret_cast<PyObject*>(shown)) : nullptr;
  return observe_tensor(shown, "numpy()") ? array_of(shown, false) : nullptr;
}

PyObject* numpy(PyObject* self, PyObject*) { return array_by(self, observe_memory); }

PyObject* values(PyObject* self, PyObject*) { return array_by(self, observe); }

PyObject* realise_method(PyObject* self, PyObject*) {
  if (!observe(as_tensor(self), "realise()")) return nullptr;
  Py_INCREF(self);
  return self;
}

PyObject* data_ptr(PyObject* self, PyObject*) {
  if (!observe_memory(as_tensor(self), "data_ptr()")) return nullptr;
  Buffer* buffer = as_tensor(self)->value->buffer.get();
  (buffer->whole ? buffer->whole : buffer)->is_pointed_at = true;
  return PyLong_FromVoidPtr(buffer->data);
}

// The value of a tensor; further objects are the operands that it was computed of beside this one.
PyObject* assign_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count == 0) return PyErr_Format(PyExc_TypeError, "assign: give a tensor");
  PyObject* other = arguments[0];
  if (!is_tensor(other)) return PyErr_Format(PyExc_TypeError, "assign: give a tensor, not %s", Py_TYPE(other)->tp_name);
  Value* value = current_value(as_tensor(other));
  if (!value) return nullptr;
  ValueRef given = share(value);
  if (!value->pending || value->references > 2 || value->requires_grad) {
    // Another handle has this value too: the cell gets a copy.
    static Operation* const copy = operation_of(hooks.copy);
    PyObject* made = copy ? call_operation(copy, no_attributes(), &other, 1) : nullptr;
    if (!made) return nullptr;
    given = share(as_tensor(made)->value);
    Py_DECREF(made);
  }
  const bool apart = count > 1 && std::all_of(arguments + 1, arguments + count, has_no_graph);
  if (!assign(as_tensor(self), std::move(given), false, apart)) return nullptr;
  Py_INCREF(self);
  return self;
}

PyObject* count_change_method(PyObject* self, PyObject*) {
  count_change(as_tensor(self));
  Py_RETURN_NONE;
}

PyObject* apart_method(PyObject* self, PyObject* object) { return apart_from(as_tensor(self), object); }

// The handle takes the value, whatever its type, and stays the leaf it was.
PyObject* replace_value(PyObject* self, PyObject* other) {
  if (!is_tensor(other)) return PyErr_Format(PyExc_TypeError, "data: give a tensor, not %s", Py_TYPE(other)->tp_name);
  PyTensor* tensor = as_tensor(self);
  const UsedValue value(current_value(as_tensor(other)));
  if (!value || !realise(value)) return nullptr;
  Value* old = tensor->value;
  ValueRef own(new_value(value->type));
  own->buffer = value->buffer;
  own->location = value->location;
  own->requires_grad = old->requires_grad && old->is_leaf;
  own->slot = own->requires_grad ? old->slot : nullptr;
  if (own->slot) ++own->slot->references;
  tensor->value = own.take();
  release(old);
  ++tensor->version;
  ++tensor->silent;
  Py_RETURN_NONE;
}

PyObject* share_storage_method(PyObject* self, PyObject* other) {
  if (!is_tensor(other)) return PyErr_Format(PyExc_TypeError, "data: give a tensor, not %s", Py_TYPE(other)->tp_name);
  if (!current_value(as_tensor(self)) || !share_storage(as_tensor(self), as_tensor(other), true)) return nullptr;
  Py_RETURN_NONE;
}

bool check_root(PyTensor* tensor, PyObject* seed, Py_ssize_t position) {
  if (!flows(tensor)) {
    const Owned message(PyObject_CallFunction(hooks.no_gradient, "On", reinterpret_cast<PyObject*>(tensor), position));
    if (message) PyErr_SetObject(PyExc_RuntimeError, message.object);
    return false;
  }
  Type* type = tensor->value->type;
  if (seed == Py_None && (type->size != 1 || is_complex(type->dtype))) {
    PyErr_Format(PyExc_RuntimeError,
                 "backward: grad can be implicitly created only for %sscalar outputs: %s (%s), at %s. "
                 "Reduce it with %s, or pass gradient= of shape %s.",
                 is_complex(type->dtype) ? "real " : "", type->text().c_str(), line_text(tensor->value->location).c_str(),
                 location_text(capture_location()).c_str(), is_complex(type->dtype) ? "abs() or real" : "sum() or mean()", type->text().c_str());
    return false;
  }
  if (seed != Py_None && (!is_tensor(seed) || as_tensor(seed)->value->type != type)) {
    const std::string given = is_tensor(seed) ? as_tensor(seed)->value->type->text() : Py_TYPE(seed)->tp_name;
    PyErr_Format(PyExc_RuntimeError, "backward: the gradient of %s (%s) is given as %s, at %s. Give a tensor of that shape and dtype.",
                 type->text().c_str(), line_text(tensor->value->location).c_str(), given.c_str(),
                 location_text(capture_location()).c_str());
    return false;
  }
  return true;
}

// With anomaly detection backward passes run at once, before `.grad` has a NaN; false with a Python error set.
bool look_over(Recorder& recorder) { return settings.anomaly != Anomaly::kBackward || recorder.flush(); }

// backward(gradient, retain_graph, create_graph)
PyObject* backward(PyObject* self, PyObject* arguments) {
  PyObject* seed;
  int retain, create;
  if (!PyArg_ParseTuple(arguments, "Opp", &seed, &retain, &create)) return nullptr;
  const uint32_t location = capture_location();
  PyTensor* tensor = as_tensor(self);
  const ValueRef root = held_value(tensor);
  if (!root || !check_root(tensor, seed, 0)) return nullptr;
  const ValueRef given = seed == Py_None ? ValueRef() : held_value(as_tensor(seed));
  if (!given && seed != Py_None) return nullptr;
  Recorder& recorder = Recorder::current();
  BackwardRequest request{root.get(), given.get(), retain != 0, create != 0, location, true, {}};
  std::vector<FoundGradient> found;
  if (!differentiate(recorder, request, &found) || !look_over(recorder) || !gather_all(found, create != 0, false)) return nullptr;
  Py_RETURN_NONE;
}

// Makes a list of hooks at its first use, unless a finaliser that the new list calls does; false with a Python error set.
bool make_list(PyObject*& list) {
  if (list) return true;
  PyObject* made = PyList_New(0);
  if (list) Py_XDECREF(made);
  else list = made;
  return list;
}

// The slot of a value that a backward pass is to look at; null with a Python error set.
GradientSlot* watched_slot(Value* value) {
  // its trace, which takes note of the slot, may be running in another thread
  if (value->pending && value->owner->in_flight(value) && !realise(value)) return nullptr;
  GradientSlot* slot = slot_of(value);
  if (value->requires_grad && !value->is_leaf) {
    slot->intermediate = true;
    Recorder::watch(value);
    // A predicted backward pass does not have the slot.
    Recorder::current().forget_prediction();
  }
  return slot;
}

PyObject* get_dict(PyObject* self, void*) {
  PyObject* found = PyObject_GenericGetDict(self, nullptr);
  if (found) track(as_tensor(self));
  return found;
}

int set_dict(PyObject* self, PyObject* dict, void*) {
  const int status = PyObject_GenericSetDict(self, dict, nullptr);
  if (!status) track(as_tensor(self));
  return status;
}

PyObject* get_retains_grad(PyObject* self, void*) {
  const UsedValue value(current_value(as_tensor(self)));
  if (!value) return nullptr;
  const GradientSlot* slot = Recorder::watched(value);
  return PyBool_FromLong(slot && slot->retains && !value->is_leaf && flows(as_tensor(self)));
}

PyObject* slot_object(PyObject* self, PyObject* flag) {
  const UsedValue value(current_value(as_tensor(self)));
  if (!value) return nullptr;
  if (flag == Py_None) {
    if (value->pending && value->owner->in_flight(value) && !realise(value)) return nullptr;
    const GradientSlot* slot = Recorder::watched(value);
    return Py_NewRef(slot && slot->hooks ? slot->hooks : Py_None);
  }
  GradientSlot* slot = watched_slot(value);
  if (!slot) return nullptr;
  track(as_tensor(self));
  if (value->requires_grad && !value->is_leaf) slot->retains = slot->retains || flag == Py_True;
  return make_list(slot->hooks) ? Py_NewRef(slot->hooks) : nullptr;
}

// The hooks on the gradients of the inputs of the call that made a value, and a dict of the program's for the call.
PyObject* call_state(PyObject* self, PyObject*) {
  const UsedValue value(current_value(as_tensor(self)));
  GradientSlot* slot = value ? watched_slot(value) : nullptr;
  if (!slot) return nullptr;
  track(as_tensor(self));
  if (!slot->metadata) {
    PyObject* made = PyDict_New();
    if (slot->metadata) Py_XDECREF(made);
    else slot->metadata = made;
  }
  return make_list(slot->call_hooks) && slot->metadata ? PyTuple_Pack(2, slot->call_hooks, slot->metadata) : nullptr;
}

PyObject* after_hooks(PyObject* self, PyObject*) {
  const UsedValue value(current_value(as_tensor(self)));
  if (!value) return nullptr;
  GradientSlot* slot = slot_of(value);
  track(as_tensor(self));
  return make_list(slot->after) ? Py_NewRef(slot->after) : nullptr;
}

bool add_roots(PyObject* outputs, PyObject* seeds, BackwardRequest& request, std::vector<ValueRef>& held) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i) {
    PyObject *output = PyTuple_GET_ITEM(outputs, i), *seed = PyTuple_GET_ITEM(seeds, i);
    const ValueRef root = held_value(as_tensor(output));
    if (!root || !check_root(as_tensor(output), seed, i)) return false;
    const ValueRef given = seed == Py_None ? ValueRef() : held_value(as_tensor(seed));
    if (!given && seed != Py_None) return false;
    held.push_back(root);
    if (given) held.push_back(given);
    if (i) request.more.emplace_back(root.get(), given.get());
    else request.root = root.get(), request.seed = given.get();
  }
  return true;
}

bool add_targets(PyObject* targets, BackwardRequest& request, std::vector<ValueRef>& held, std::vector<GradientSlot*>& slots) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(targets); ++i) {
    Value* value = current_value(as_tensor(PyTuple_GET_ITEM(targets, i)));
    if (!value) return false;
    held.push_back(share(value));
    slots.push_back(slot_of(value));
    if (std::find(slots.begin(), slots.end() - 1, slots.back()) == slots.end() - 1) request.targets.push_back(value);
    slots.back()->intermediate |= value->requires_grad && !value->is_leaf;
  }
  return true;
}

}  // namespace

// backward_of(outputs, seeds, targets, retain, create): one pass from all outputs; no targets: all leaves
PyObject* backward_of(PyObject*, PyObject* arguments) {
  PyObject *outputs, *seeds, *targets;
  int retain, create;
  if (!PyArg_ParseTuple(arguments, "O!O!O!pp", &PyTuple_Type, &outputs, &PyTuple_Type, &seeds, &PyTuple_Type, &targets, &retain, &create)) {
    return nullptr;
  }
  const uint32_t location = capture_location();
  BackwardRequest request{nullptr, nullptr, retain != 0, create != 0, location, true, {}};
  std::vector<ValueRef> held;
  std::vector<GradientSlot*> slots;
  std::vector<FoundGradient> found, wanted;
  if (!add_roots(outputs, seeds, request, held) || !add_targets(targets, request, held, slots)) return nullptr;
  if (!differentiate(Recorder::current(), request, &found)) return nullptr;
  for (auto& item : found) {
    if (slots.empty() || item.watch.slot->retains || std::find(slots.begin(), slots.end(), item.watch.slot) != slots.end()) wanted.push_back(std::move(item));
  }
  if (!look_over(Recorder::current()) || !gather_all(wanted, create != 0, !slots.empty())) return nullptr;
  Py_RETURN_NONE;
}

// gradients_of(outputs, seeds, targets, retain, create, shown) -> list of tensors or None; a seed may be None. `shown`: sparse
// gradients of tables as `.grad` would show them.
PyObject* gradients_of(PyObject*, PyObject* arguments) {
  PyObject *outputs, *seeds, *targets;
  int retain, create, shown;
  if (!PyArg_ParseTuple(arguments, "O!O!O!ppp", &PyTuple_Type, &outputs, &PyTuple_Type, &seeds, &PyTuple_Type, &targets, &retain, &create,
                        &shown)) {
    return nullptr;
  }
  Recorder& recorder = Recorder::current();
  const uint32_t location = capture_location();
  BackwardRequest request{nullptr, nullptr, retain != 0, create != 0, location, false, {}};
  std::vector<ValueRef> held;
  if (!add_roots(outputs, seeds, request, held)) return nullptr;
  std::vector<GradientSlot*> slots;
  if (!add_targets(targets, request, held, slots)) return nullptr;
  std::vector<FoundGradient> found;
  if (!differentiate(recorder, request, &found) || !look_over(recorder)) return nullptr;
  std::vector<FoundGradient> retained;
  for (const FoundGradient& item : found) {
    if (item.watch.slot->retains && !item.is_undefined()) retained.push_back({Watch(0, item.watch.slot), item.gradient, {}, {}, false});
  }
  if (!gather_all(retained, create != 0, false)) return nullptr;
  PyObject* result = PyList_New(static_cast<Py_ssize_t>(slots.size()));
  for (size_t i = 0; result && i < slots.size(); ++i) {
    PyObject* gradient = nullptr;
    const auto first = static_cast<size_t>(std::find(slots.begin(), slots.end(), slots[i]) - slots.begin());
    if (first < i) {
      PyObject* known = PyList_GET_ITEM(result, static_cast<Py_ssize_t>(first));
      Py_INCREF(known);
      PyList_SET_ITEM(result, static_cast<Py_ssize_t>(i), known);
      continue;
    }
    bool sparse = false;
    for (auto& item : found) {
      if (item.watch.slot != slots[i] || item.is_undefined()) continue;
      gradient = wrap(item.gradient);
      sparse = item.sparse && shown;
    }
    bool done = !gradient || slots[i]->intermediate || run_hooks(slots[i], &gradient);
    if (done && gradient && sparse) {
      Py_SETREF(gradient, PyObject_CallOneArg(hooks.sparse_gradient, gradient));
      done = gradient != nullptr;
    }
    if (!done) {
      Py_XDECREF(gradient);
      Py_DECREF(result);
      return nullptr;
    }
    if (!gradient) {
      Py_INCREF(Py_None);
      gradient = Py_None;
    }
    PyList_SET_ITEM(result, static_cast<Py_ssize_t>(i), gradient);
  }
  return result;
}

namespace {

// The getter: the elements of a view may lie anywhere, those of other tensors are in row-major order.
template <PyObject* (*getter)(PyObject*, void*)>
PyObject* read_layout(PyObject* self, void* closure) {
  if (as_tensor(self)->view) CallWatch::spoil();
  return getter(self, closure);
}
template <PyObject* (*getter)(PyObject*, void*)>
inline constexpr auto of_layout = guarded<read_layout<getter>>;

}  // namespace

PyGetSetDef tensor_attributes[] = {
    {"shape", guarded<get_shape>, nullptr, "Sizes of the axes.", nullptr},
    {"dtype", guarded<get_dtype>, nullptr, "Element type.", nullptr},
    {"type_", guarded<get_type>, nullptr, "Dtype and shape together.", nullptr},
    {"ndim", guarded<get_ndim>, nullptr, "Number of axes.", nullptr},
    {"grad", spoiling<get_grad>, spoiling<set_grad>, "The gradient gathered so far, or None.", nullptr},
    {"_dense_grad", spoiling<get_dense_grad>, nullptr, "The same as a tensor, also of a table whose gradient is shown by its rows.", nullptr},
    {"_sparse_grad", spoiling<get_sparse_grad>, spoiling<set_sparse_grad>, "Whether `.grad` of this leaf is shown by its rows.", nullptr},
    {"requires_grad", spoiling<get_requires_grad>, spoiling<set_requires_grad>, "Whether gradients flow to this tensor.", nullptr},
    {"is_leaf", spoiling<get_is_leaf>, nullptr, "Whether this tensor was made by the user.", nullptr},
    {"retains_grad", spoiling<get_retains_grad>, nullptr, "Whether retain_grad keeps the gradient of this tensor.", nullptr},
    {"_version", spoiling<get_version>, nullptr, "Counts in-place changes.", nullptr},
    {"_base", guarded<get_base>, nullptr, "The tensor whose storage a view shows, or None.", nullptr},
    {"_view", spoiling<get_view>, nullptr, "(parent, op or None, attributes, further inputs) of a view, or None.", nullptr},
    {"_strides", of_layout<get_strides>, nullptr, "Elements of the storage between neighbours along each axis.", nullptr},
    {"_is_row_major", of_layout<get_is_row_major>, nullptr, "Whether the elements lie side by side in row-major order.", nullptr},
    {"_location", guarded<get_location>, nullptr, "[(file, line, columns, function)] of the calls that lead to where this value was declared, innermost first.", nullptr},
    {"_where", guarded<get_where>, nullptr, "file:line where this value was declared.", nullptr},
    {"_is_realised", guarded<get_realised>, nullptr, "Whether this value is in memory.", nullptr},
    {"_has_views", guarded<get_has_views>, nullptr, "Whether there are views of this tensor.", nullptr},
    {"_is_symbolic", guarded<get_symbolic>, nullptr, "Whether a placeholder stands above this value.", nullptr},
    {"__dict__", spoiling<get_dict>, spoiling<set_dict>, "Attributes that the program has set.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef tensor_methods[] = {
    {"detach", spoiling<detach>, METH_NOARGS, "The same value, through which no gradient flows."},
    {"_data", spoiling<data_of>, METH_NOARGS, "As detach, but writes do not count in the version of this tensor."},
    {"item", guarded<item>, METH_NOARGS, "The one element as a Python number."},
    {"_numpy", guarded<numpy>, METH_NOARGS, "An array that shares this tensor's memory."},
    {"_values", guarded<values>, METH_NOARGS, "The same to be read at once, neither written to nor kept."},
    {"_realise", guarded<realise_method>, METH_NOARGS, "Compute the value now."},
    {"_data_ptr", spoiling<data_ptr>, METH_NOARGS, "Address of the memory of a tensor that is no view."},
    {"_assign", method<assign_method>(), METH_FASTCALL, "In-place: take the value of another tensor, which was computed of these operands."},
    {"_apart", spoiling<apart_method>, METH_O, "An operand of an in-place operation on this tensor: a copy, if it shows its storage through a detach()."},
    {"_count_change", spoiling<count_change_method>, METH_NOARGS, "In-place: count a change that leaves the elements as they are."},
    {"_become", spoiling<become>, METH_O, "In-place: become a view that was made of this tensor."},
    {"_replace_value", spoiling<replace_value>, METH_O, "Take another tensor's value, type and all, and share nothing."},
    {"_share_storage", spoiling<share_storage_method>, METH_O,
     "Take another tensor's value, type and all, and share its storage from now on."},
    {"_as_class", spoiling<as_class>, METH_O, "Give this value and view to a handle of another class."},
    {"_backward", spoiling<backward>, METH_VARARGS, "backward(gradient, retain_graph, create_graph)"},
    {"_after_hooks", spoiling<after_hooks>, METH_NOARGS, "List of functions to call once the gradient of a leaf has been added."},
    {"_call_state", spoiling<call_state>, METH_NOARGS, "(list of hooks, dict): what the program keeps with the call that made the value."},
    {"_gradient_hooks", spoiling<slot_object>, METH_O, "List of hooks; True: keep the gradient of a value that is no leaf; None: the list if there is one, else None."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace twofold
