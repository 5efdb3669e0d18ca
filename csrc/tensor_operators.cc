#include "tensor.h"

#include <structmember.h>

#include <cstring>

#include "autocast.h"
#include "call_memo.h"
#include "guard.h"
#include "owned.h"
#include "torch_function.h"

namespace twofold {
namespace {

enum Slot { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kRemainder, kMatmul, kNegative, kAbsolute, kInvert,
            kAnd, kOr, kXor, kLeft, kRight, kLess, kLessEqual, kEqual, kNotEqual, kGreater, kGreaterEqual };

const char* name_of(int slot);

// The result of `__torch_function__` of an operand, or of a mode; null without an error where none handles the operator.
PyObject* handled(int slot, PyObject* a, PyObject* b, bool in_place = false) {
  const bool reflected = b && !is_tensor(a);
  PyObject* const arguments[2] = {reflected ? b : a, reflected ? a : b};
  const Py_ssize_t count = b ? 2 : 1;
  if (!TorchFunction::handled_first(arguments, count)) return nullptr;
  const Owned method(PyObject_CallFunction(hooks.operator_method, "sOO", name_of(slot), reflected ? Py_True : Py_False,
                                           in_place ? Py_True : Py_False));
  return method ? TorchFunction::call(method.object, arguments, count, nullptr) : nullptr;
}

template <int slot>
Operation*& operator_slot() {
  static Operation* op = nullptr;
  return op;
}

bool takes_lists(const Operand& operand) { return operand.value && (hooks.lists_at_once || is_symbolic(operand.value)); }

// Beside what TensorFlow's names made, a list or array of numbers, or a string beside strings, is a constant of its partner's
// dtype, as there.
int listed_operand(PyObject* object, Operand* operand, PyObject** held, const Operand& partner) {
  bool string = PyUnicode_Check(object) || PyBytes_Check(object);
  bool listed = PyList_Check(object) || PyTuple_Check(object) || *held;
  if (string && partner.value && partner.value->type->dtype == kString) listed = true;
  if (!listed || !hooks.listed_operand || !takes_lists(partner)) return 0;
  Py_CLEAR(*held);
  PyObject* type = python_type(partner.value->type);
  *held = type ? PyObject_CallFunctionObjArgs(hooks.listed_operand, object, type, nullptr) : nullptr;
  PyObject* inner = nullptr;
  return *held ? to_operand(*held, operand, &inner) : -1;
}

int both_operands(PyObject* a, PyObject* b, Operand* operands, PyObject** held) {
  int left = to_operand(a, &operands[0], &held[0]);
  if (left < 0) return left;
  int right = to_operand(b, &operands[1], &held[1]);
  if (left == 1 && right == 0) return listed_operand(b, &operands[1], &held[1], operands[0]);
  if (left == 0 && right == 1) return listed_operand(a, &operands[0], &held[0], operands[1]);
  // Whether the operand was converted from an array.
  if (left == 1 && right == 1 && held[1] && takes_lists(operands[0])) return listed_operand(b, &operands[1], &held[1], operands[0]);
  if (left == 1 && right == 1 && held[0] && takes_lists(operands[1])) return listed_operand(a, &operands[0], &held[0], operands[1]);
  return left == 1 ? right : right < 0 ? right : 0;
}

template <int slot>
PyObject* binary(PyObject* a, PyObject* b) {
  Operation* op = operator_slot<slot>();
  if (!op) Py_RETURN_NOTIMPLEMENTED;
  if (TorchFunction::used_) {
    PyObject* made = handled(slot, a, b);
    if (made || PyErr_Occurred()) return made;
  }
  if (Autocast::applies(op->autocast)) {
    PyObject* const given[2] = {a, b};
    Autocast cast(op->autocast, given, 2);
    return cast.arguments() ? binary<slot>(cast.arguments()[0], cast.arguments()[1]) : nullptr;
  }
  const uint32_t location = capture_location();
  PyObject* const arguments[2] = {a, b};
  if (ValueRef repeated = repeat_call(op, no_attributes(), arguments, 2, location)) {
    PyObject* made = wrap(std::move(repeated));
    CallWatch::note(op, no_attributes(), arguments, 2, made);
    return made;
  }
  Operand operands[2];
  PyObject* held[2] = {nullptr, nullptr};
  int status = both_operands(a, b, operands, held);
  PyObject* result = nullptr;
  if (status == 1) {
    {
      CallWatch::Pause pause;
      ValueRef value = bind_operands(op, no_attributes(), operands, 2, arguments, location);
      if (value) result = wrap(std::move(value));
    }
    if (result) reinterpret_cast<PyTensor*>(result)->standard = is_standard(arguments, 2);
    CallWatch::note(op, no_attributes(), arguments, 2, result);
  } else if (status == 0) {
    Py_INCREF(Py_NotImplemented);
    result = Py_NotImplemented;
  }
  Py_XDECREF(held[0]);
  Py_XDECREF(held[1]);
  return result;
}

template <int slot>
PyObject* unary(PyObject* a) {
  Operation* op = operator_slot<slot>();
  if (!op) {
    PyErr_SetString(PyExc_TypeError, "operator is not defined");
    return nullptr;
  }
  if (TorchFunction::used_) {
    PyObject* made = handled(slot, a, nullptr);
    if (made || PyErr_Occurred()) return made;
  }
  return call_operation(op, no_attributes(), &a, 1);
}

// The tensor itself, as in PyTorch.
PyObject* positive(PyObject* a) {
  if (reinterpret_cast<PyTensor*>(a)->value->type->dtype == kBool) {
    PyErr_SetString(PyExc_RuntimeError, "The `+` operator, on a bool tensor is not supported.");
    return nullptr;
  }
  return Py_NewRef(a);
}

template <int slot>
PyObject* in_place(PyObject* a, PyObject* b) {
  if (TorchFunction::used_) {
    PyObject* made = handled(slot, a, b, true);
    if (made || PyErr_Occurred()) return made;
  }
  PyObject* made = binary<slot>(a, b);
  if (!made || made == Py_NotImplemented) return made;
  auto* target = reinterpret_cast<PyTensor*>(a);
  if (target->view && flows(reinterpret_cast<PyTensor*>(made))) {
    const Owned left(apart_from(target, a)), right(left ? apart_from(target, b) : nullptr);
    if (left.object != a) Py_SETREF(made, right ? binary<slot>(left.object, right.object) : nullptr);
    if (!made) return nullptr;
  }
  bool done = assign(target, share(reinterpret_cast<PyTensor*>(made)->value), false, has_no_graph(b));
  Py_DECREF(made);
  if (!done) return nullptr;
  Py_INCREF(a);
  return a;
}

// In the order of Slot.
struct NamedSlot { const char* name; Operation** op; };
NamedSlot named_slots[] = {
    {"__add__", &operator_slot<kAdd>()}, {"__sub__", &operator_slot<kSubtract>()}, {"__mul__", &operator_slot<kMultiply>()},
    {"__truediv__", &operator_slot<kDivide>()}, {"__floordiv__", &operator_slot<kFloorDivide>()},
    {"__mod__", &operator_slot<kRemainder>()}, {"__matmul__", &operator_slot<kMatmul>()}, {"__neg__", &operator_slot<kNegative>()},
    {"__abs__", &operator_slot<kAbsolute>()}, {"__invert__", &operator_slot<kInvert>()},
    {"__and__", &operator_slot<kAnd>()}, {"__or__", &operator_slot<kOr>()}, {"__xor__", &operator_slot<kXor>()},
    {"__lshift__", &operator_slot<kLeft>()}, {"__rshift__", &operator_slot<kRight>()}, {"__lt__", &operator_slot<kLess>()},
    {"__le__", &operator_slot<kLessEqual>()}, {"__eq__", &operator_slot<kEqual>()}, {"__ne__", &operator_slot<kNotEqual>()},
    {"__gt__", &operator_slot<kGreater>()}, {"__ge__", &operator_slot<kGreaterEqual>()},
};

const char* name_of(int slot) { return named_slots[slot].name; }

PyObject* compare(PyObject* a, PyObject* b, int kind) {
  if ((kind == Py_EQ || kind == Py_NE) && hooks.declared_equal && is_symbolic(reinterpret_cast<PyTensor*>(a)->value)) {
    PyObject* same = PyObject_CallFunctionObjArgs(hooks.declared_equal, a, b, nullptr);
    Py_XDECREF(same);
    if (!same) return nullptr;
    if (same != Py_NotImplemented) return PyBool_FromLong((same == Py_True) == (kind == Py_EQ));
  }
  switch (kind) {
    case Py_LT: return binary<kLess>(a, b);
    case Py_LE: return binary<kLessEqual>(a, b);
    case Py_EQ: return binary<kEqual>(a, b);
    case Py_NE: return binary<kNotEqual>(a, b);
    case Py_GT: return binary<kGreater>(a, b);
    default: return binary<kGreaterEqual>(a, b);
  }
}

int to_bool(PyObject* self) {
  auto* tensor = reinterpret_cast<PyTensor*>(self);
  if (!may_be_observed(tensor, "bool()")) return -1;
  if (tensor->value->type->size != 1) {
    PyErr_Format(PyExc_RuntimeError, "bool: Boolean value of Tensor with %s is ambiguous: %s. Use any() or all().",
                 tensor->value->type->size ? "more than one value" : "no values", tensor->value->type->text().c_str());
    return -1;
  }
  PyObject* item = number_of(tensor);
  if (!item) return -1;
  int truth = PyObject_IsTrue(item);
  Py_DECREF(item);
  return truth;
}

PyObject* to_number(PyObject* self, const char* what, PyObject* (*convert)(PyObject*)) {
  auto* tensor = reinterpret_cast<PyTensor*>(self);
  if (!may_be_observed(tensor, what)) return nullptr;
  if (tensor->value->type->size != 1) {
    return PyErr_Format(PyExc_ValueError, "%s: only a tensor of one element becomes a number, this is %s. Index it first.",
                        what, tensor->value->type->text().c_str());
  }
  PyObject* item = number_of(tensor);
  PyObject* number = item ? convert(item) : nullptr;
  Py_XDECREF(item);
  return number;
}

PyObject* to_float(PyObject* self) { return to_number(self, "float()", PyNumber_Float); }
PyObject* to_int(PyObject* self) { return to_number(self, "int()", PyNumber_Long); }
PyObject* to_index(PyObject* self) {
  auto* tensor = reinterpret_cast<PyTensor*>(self);
  if (tensor->value && is_differentiable(tensor->value->type->dtype)) {
    return PyErr_Format(PyExc_TypeError, "index: only an integer tensor can be an index, this is %s. Cast it to int64.",
                        tensor->value->type->text().c_str());
  }
  return to_number(self, "index()", PyNumber_Index);
}

Py_ssize_t length(PyObject* self) {
  Value* value = reinterpret_cast<PyTensor*>(self)->value;
  if (value->type->shape.empty()) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  if (value->type->shape[0] < 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a tensor whose first size is not known");
    return -1;
  }
  return static_cast<Py_ssize_t>(value->type->shape[0]);
}

PyObject* represent(PyObject* self) { return PyObject_CallFunctionObjArgs(hooks.display, self, nullptr); }

PyObject* alias_of(PyTypeObject* type, PyObject* source) {
  const UsedValue value(current_value(reinterpret_cast<PyTensor*>(source)));
  if (!value) return nullptr;
  if (!realise(value)) return nullptr;
  ValueRef alias(new_value(value->type));
  alias->buffer = value->buffer;
  PyObject* made = wrap(std::move(alias), type == tensor_type ? nullptr : type);
  if (made && !share_storage(reinterpret_cast<PyTensor*>(made), reinterpret_cast<PyTensor*>(source), false)) Py_CLEAR(made);
  return made;
}

PyObject* tensor_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  if (PyTuple_GET_SIZE(arguments) == 1 && !keywords && is_tensor(PyTuple_GET_ITEM(arguments, 0))) {
    return alias_of(type, PyTuple_GET_ITEM(arguments, 0));
  }
  PyObject* made = PyObject_Call(hooks.construct, arguments, keywords);
  if (!made || type == tensor_type) return made;
  PyObject* alias = alias_of(type, made);
  Py_DECREF(made);
  return alias;
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(self, name, value);
  auto* tensor = reinterpret_cast<PyTensor*>(self);
  if (tensor->dict) track(tensor);
  return status;
}

PyType_Slot slots[] = {
    {Py_tp_dealloc, slot<tensor_dealloc>()},
    {Py_tp_traverse, slot<tensor_traverse>()},
    {Py_tp_setattro, slot<set_attribute>()},
    {Py_tp_new, slot<tensor_new>()},
    {Py_tp_repr, slot<represent>()},
    {Py_tp_str, slot<represent>()},
    {Py_tp_richcompare, slot<compare>()},
    {Py_tp_getset, tensor_attributes},
    {Py_tp_methods, tensor_methods},
    {Py_nb_add, slot<binary<kAdd>>()},
    {Py_nb_subtract, slot<binary<kSubtract>>()},
    {Py_nb_multiply, slot<binary<kMultiply>>()},
    {Py_nb_true_divide, slot<binary<kDivide>>()},
    {Py_nb_floor_divide, slot<binary<kFloorDivide>>()},
    {Py_nb_remainder, slot<binary<kRemainder>>()},
    {Py_nb_matrix_multiply, slot<binary<kMatmul>>()},
    {Py_nb_and, slot<binary<kAnd>>()},
    {Py_nb_or, slot<binary<kOr>>()},
    {Py_nb_xor, slot<binary<kXor>>()},
    {Py_nb_lshift, slot<binary<kLeft>>()},
    {Py_nb_rshift, slot<binary<kRight>>()},
    {Py_nb_inplace_add, slot<in_place<kAdd>>()},
    {Py_nb_inplace_subtract, slot<in_place<kSubtract>>()},
    {Py_nb_inplace_multiply, slot<in_place<kMultiply>>()},
    {Py_nb_inplace_true_divide, slot<in_place<kDivide>>()},
    {Py_nb_inplace_floor_divide, slot<in_place<kFloorDivide>>()},
    {Py_nb_inplace_remainder, slot<in_place<kRemainder>>()},
    {Py_nb_inplace_and, slot<in_place<kAnd>>()},
    {Py_nb_inplace_or, slot<in_place<kOr>>()},
    {Py_nb_inplace_xor, slot<in_place<kXor>>()},
    {Py_nb_inplace_lshift, slot<in_place<kLeft>>()},
    {Py_nb_inplace_rshift, slot<in_place<kRight>>()},
    {Py_nb_negative, slot<unary<kNegative>>()},
    {Py_nb_positive, slot<positive>()},
    {Py_nb_absolute, slot<unary<kAbsolute>>()},
    {Py_nb_invert, slot<unary<kInvert>>()},
    {Py_nb_bool, slot<to_bool>()},
    {Py_nb_float, slot<to_float>()},
    {Py_nb_int, slot<to_int>()},
    {Py_nb_index, slot<to_index>()},
    {Py_mp_length, slot<length>()},
    {Py_tp_hash, nullptr},  // filled in below: equality is element-wise, so identity is the hash
    {0, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weak_references), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

bool set_operator(const char* name, Operation* op) {
  for (auto& slot : named_slots) {
    if (std::strcmp(slot.name, name) == 0) {
      *slot.op = op;
      return true;
    }
  }
  return false;
}

int add_tensor_type(PyObject* module) {
  PyType_Slot all[sizeof slots / sizeof slots[0] + 1];
  size_t n = 0;
  for (auto& slot : slots) {
    if (slot.slot == Py_tp_hash) slot.pfunc = reinterpret_cast<void*>(PyBaseObject_Type.tp_hash);
    if (slot.slot) all[n++] = slot;
  }
  all[n++] = PyType_Slot{Py_tp_members, members};
  all[n] = PyType_Slot{0, nullptr};
  PyType_Spec spec = {"twofold.Tensor", sizeof(PyTensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, all};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) return -1;
  tensor_type = reinterpret_cast<PyTypeObject*>(type);
  Py_INCREF(type);
  return PyModule_AddObject(module, "Tensor", type);
}

}  // namespace twofold
