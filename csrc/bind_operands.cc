// Calls of operations on operands of several dtypes: what type rules do not cast is cast here, then the call is recorded or declared.
#include <algorithm>
#include <bit>
#include <vector>

#include "owned.h"
#include "purity.h"
#include "tensor.h"

namespace twofold {
namespace {

constexpr size_t kFewOperands = 8;  // as nearly all calls have

Type* operand_type(const Operand& operand) { return operand.value ? operand.value->type : operand.scalar_type; }

// Whether a scalar operand may promote one with axes.
bool may_widen(const Type* scalar, const Operand* operands, size_t count) {
  return scalar->dtype != kBool && std::none_of(operands, operands + count, [scalar](const Operand& operand) {
    const Type* type = operand_type(operand);
    if (type->weak || type->shape.empty()) return false;
    return type->dtype == scalar->dtype || (is_differentiable(type->dtype) && !is_differentiable(scalar->dtype));
  });
}

// Whether a call may need casts that type rules do not make: no operand has a floating dtype, and the default is
// not that of the rules; or dtypes differ, and there are scalar operands beside others.
bool may_need_casts(const Operand* operands, size_t count, PyObject* const* arguments) {
  bool floats = false, mixed = false, wide = false, scalar = false;
  const Type* first = nullptr;
  for (size_t i = 0; i < count; ++i) {
    const Type* type = operand_type(operands[i]);
    if (type->weak) continue;
    floats = floats || is_differentiable(type->dtype);
    mixed = mixed || (first && type->dtype != first->dtype);
    first = type;
    (type->shape.empty() ? scalar : wide) = true;
  }
  if (!floats && default_float != kFloat32) return true;
  if (!mixed || !wide || !scalar || is_standard(arguments, count)) return false;
  return std::any_of(operands, operands + count, [operands, count](const Operand& operand) {
    const Type* type = operand_type(operand);
    return !type->weak && type->shape.empty() && may_widen(type, operands, count);
  });
}

// As bind_operands, with some operands cast. Without a value none has to be.
bool bind_cast(Operation* op, Attributes* attributes, const Operand* operands, size_t count, PyObject* const* arguments, uint32_t location,
               ValueRef* bound) {
  std::vector<Type*> types(count);
  std::transform(operands, operands + count, types.begin(), operand_type);
  Owned given(types_tuple(types.data(), count));
  Owned objects(PyTuple_New(static_cast<Py_ssize_t>(count)));
  if (!given || !objects) return false;
  for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(objects.object, static_cast<Py_ssize_t>(i), Py_NewRef(arguments[i]));
  Owned found(PyObject_CallFunctionObjArgs(hooks.cast_operands, op->python, attributes->tuple, given.object, objects.object, nullptr));
  if (!found || found.object == Py_None) return static_cast<bool>(found);
  std::vector<Operand> cast(count);
  std::vector<PyObject*> held(count, nullptr);
  bool read = true;
  for (size_t i = 0; i < count && read; ++i) read = to_operand(PyTuple_GET_ITEM(found.object, i), &cast[i], &held[i]) == 1;
  if (read) *bound = bind_operands(op, attributes, cast.data(), count, arguments, location);
  for (PyObject* object : held) Py_XDECREF(object);
  return read && *bound;
}

}  // namespace

uint8_t default_float = kFloat32;
bool any_standard = false;

bool any_is_standard(PyObject* const* arguments, size_t count) {
  return std::any_of(arguments, arguments + count, [](PyObject* argument) {
    return is_tensor(argument) && reinterpret_cast<PyTensor*>(argument)->standard;
  });
}

ValueRef repeat_call(Operation* op, Attributes* attributes, PyObject* const* arguments, size_t count, uint32_t location) {
  Recorder& recorder = Recorder::current();
  const Entry* next = recorder.expected_call(op, attributes, count);
  if (!next || !next->instance->is_uniform || count > kFewOperands || any_standard || Purity::is_asked_for()) return ValueRef();
  const Ref* expected = recorder.expected_operands(*next);
  uint64_t numbers[kFewOperands], mask = 0;
  size_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    PyObject* const object = arguments[i];
    if (Py_TYPE(object) == tensor_type) {
      const auto* tensor = reinterpret_cast<const PyTensor*>(object);
      if (tensor->view) {  // what was written to since is read again, and what has been computed is noted
        if (!tensor->value->pending || !is_current(tensor->view)) return ValueRef();
        if (!flows(tensor)) note_use(tensor);
      }
      if (!recorder.is_expected(expected[i], tensor->value)) return ValueRef();
      if (recorder.grad_enabled && flows(tensor)) mask |= Entry::mask_bit(i);
    } else if (PyFloat_CheckExact(object)) {
      if (!recorder.is_expected(expected[i], float_scalar_type(), found)) return ValueRef();
      numbers[found++] = std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(object));
    } else if (PyLong_CheckExact(object)) {
      int overflow;
      const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
      if (overflow || !recorder.is_expected(expected[i], integer_scalar_type(), found)) return ValueRef();
      numbers[found++] = static_cast<uint64_t>(number);
    } else {
      return ValueRef();
    }
  }
  return mask == next->gradient_mask ? recorder.record_expected(*next, numbers, found, location) : ValueRef();
}

ValueRef bind_operands(Operation* op, Attributes* attributes, Operand* operands, size_t count, PyObject* const* arguments, uint32_t location) {
  const bool is_uniform = same_floats(count, [operands](size_t i) { return operand_type(operands[i]); });
  if (arguments && !is_uniform && may_need_casts(operands, count, arguments)) {
    ValueRef bound;
    if (!bind_cast(op, attributes, operands, count, arguments, location, &bound) || bound) return bound;
  }
  Recorder& recorder = Recorder::current();
  bool declares = attributes->symbolic;
  for (size_t i = 0; i < count; ++i) declares = declares || (operands[i].value && is_symbolic(operands[i].value));
  if (declares) return declare_call(op, attributes, operands, count, arguments, recorder.grad_enabled);
  return recorder.record(op, attributes, operands, count, arguments, location);
}

}  // namespace twofold
