// Rows of tables: leaves of their own, copied one by one, so that neither a gradient nor an update touches all of a table.
#include <Python.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "copies.h"
#include "guard.h"
#include "out_of_memory.h"
#include "owned.h"
#include "rows.h"
#include "tensor.h"

namespace twofold {
namespace {

PyTensor* as_tensor(PyObject* object) { return reinterpret_cast<PyTensor*>(object); }

// The values of a table, computed; null with a Python error set. Nothing that may run Python comes between this and reading them, as
// that may give the table another value.
Value* table_of(PyObject* object) {
  if (!is_tensor(object) || as_tensor(object)->value->type->shape.empty()) {
    PyErr_Format(PyExc_TypeError, "rows: a table must be a tensor of one dimension or more, this is %R", object);
    return nullptr;
  }
  for (;;) {
    const UsedValue value(current_value(as_tensor(object)));
    if (!value || !realise(value)) return nullptr;
    if (value == as_tensor(object)->value) return value;
  }
}

// Its type, which is an error where it is no table.
const Type* table_type(PyObject* object) {
  const Value* table = table_of(object);
  return table ? table->type : nullptr;
}

int64_t row_bytes(const Type* table) { return table->shape[0] ? table->nbytes / table->shape[0] : 0; }

// Rows of a table as a type, `count` of them, or a single one without the first axis.
Type* rows_type(const Type* table, int64_t count) {
  std::vector<int64_t> shape = table->shape;
  shape[0] = count;
  return type_of(table->dtype, shape.data(), shape.size());
}

Type* row_type(const Type* table) {
  static std::pair<const Type*, Type*> last;  // types live for ever
  if (last.first != table) last = {table, type_of(table->dtype, table->shape.data() + 1, table->shape.size() - 1)};
  return last.second;
}

ValueRef new_rows(Type* type, uint32_t location) {
  ValueRef made(new_value(type));
  made->location = location;
  try {
    made->buffer = BufferRef(new_buffer(static_cast<size_t>(type->nbytes)));
  } catch (const std::bad_alloc&) {
    raise_out_of_memory(static_cast<size_t>(type->nbytes), "rows of a table " + type->text());
    return ValueRef();
  }
  return made;
}

// The values as a leaf; with `tracked` one that requires a gradient.
PyObject* as_leaf(ValueRef value, bool tracked) {
  if (!value) return nullptr;
  if (tracked) {
    value->requires_grad = true;
    slot_of(value.get());
  }
  return wrap(std::move(value));
}

// Numbers of rows: the memory of an array of int64.
class Numbers {
 public:
  Numbers() = default;
  ~Numbers() { if (view_.obj) PyBuffer_Release(&view_); }
  Numbers(const Numbers&) = delete;

  // False with a Python error set where they are no array of numbers of the table's rows.
  bool read(PyObject* array, const Type* table) {
    if (PyObject_GetBuffer(array, &view_, PyBUF_ND | PyBUF_C_CONTIGUOUS) < 0) return false;
    if (view_.ndim != 1 || view_.itemsize != sizeof(int64_t)) {
      PyErr_SetString(PyExc_TypeError, "rows: their numbers must be a vector of int64");
      return false;
    }
    for (size_t k = 0; k < size(); ++k) {
      if (!check((*this)[k], table)) return false;
    }
    return true;
  }
  static bool check(int64_t number, const Type* table) {
    if (number >= 0 && number < table->shape[0]) return true;
    PyErr_Format(PyExc_IndexError, "row %lld of a table %s", static_cast<long long>(number), table->text().c_str());
    return false;
  }

  size_t size() const { return static_cast<size_t>(view_.shape[0]); }
  int64_t operator[](size_t k) const { return static_cast<const int64_t*>(view_.buf)[k]; }

 private:
  Py_buffer view_{};
};

// Whether a table, null with an error set, still is of the type for which the numbers of rows were looked over.
bool is_type(const Value* table, const Type* type) {
  if (table && table->type != type) PyErr_SetString(PyExc_RuntimeError, "rows: the table has got another shape meanwhile");
  return table && table->type == type;
}

// row_of(table, number, tracked) -> a copy of the row, a leaf
PyObject* row_of(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 3) return PyErr_Format(PyExc_TypeError, "row_of takes 3 arguments, not %zd", count);
  const uint32_t location = capture_location();
  const int64_t number = PyLong_AsLongLong(arguments[1]);
  if (number == -1 && PyErr_Occurred()) return nullptr;
  const Value* table = table_of(arguments[0]);
  if (!table || !Numbers::check(number, table->type)) return nullptr;
  const auto nbytes = static_cast<size_t>(row_bytes(table->type));
  ValueRef made = new_rows(row_type(table->type), location);
  if (made) std::memcpy(made->buffer->data, static_cast<const char*>(table->buffer->data) + static_cast<size_t>(number) * nbytes, nbytes);
  return as_leaf(std::move(made), arguments[2] == Py_True);
}

// rows_of(table, numbers, tracked) -> copies of rows, a leaf with a first axis for them
PyObject* rows_of(PyObject*, PyObject* arguments) {
  PyObject *object, *array;
  int tracked;
  if (!PyArg_ParseTuple(arguments, "OOp", &object, &array, &tracked)) return nullptr;
  const uint32_t location = capture_location();
  Numbers numbers;
  const Type* type = table_type(object);
  if (!type || !numbers.read(array, type)) return nullptr;
  const Value* table = table_of(object);
  if (!is_type(table, type)) return nullptr;
  const auto nbytes = static_cast<size_t>(row_bytes(table->type));
  ValueRef made = new_rows(rows_type(table->type, static_cast<int64_t>(numbers.size())), location);
  if (!made) return nullptr;
  const char* source = static_cast<const char*>(table->buffer->data);
  char* target = static_cast<char*>(made->buffer->data);
  for (size_t k = 0; k < numbers.size(); ++k) std::memcpy(target + k * nbytes, source + static_cast<size_t>(numbers[k]) * nbytes, nbytes);
  return as_leaf(std::move(made), tracked);
}

// Memory of the table that no other value shows, so that writing there changes none.
bool make_own(PyTensor* table) {
  const Value* value = table->value;
  if (value->references == 1 && value->buffer->references == 1 && !value->buffer->read_only) {
    ++table->version;
    return true;
  }
  ValueRef own = new_rows(value->type, value->location);
  if (!own) return false;
  copy_memory(own->buffer->data, value->buffer->data, value->buffer->nbytes);
  return assign(table, std::move(own));
}

// write_rows(table, numbers, rows): writes them in the memory of the table, which no graph records
PyObject* write_rows(PyObject*, PyObject* arguments) {
  PyObject *object, *array, *given;
  if (!PyArg_ParseTuple(arguments, "OOO", &object, &array, &given)) return nullptr;
  Numbers numbers;
  const Type* type = table_type(object);
  if (!type || !numbers.read(array, type)) return nullptr;
  const UsedValue rows(table_of(given));
  if (!rows) return nullptr;
  const Value* table = table_of(object);
  if (!is_type(table, type)) return nullptr;
  if (rows->type != rows_type(table->type, static_cast<int64_t>(numbers.size()))) {
    return PyErr_Format(PyExc_TypeError, "write_rows: %zu rows of %s cannot be %s", numbers.size(), table->type->text().c_str(), rows->type->text().c_str());
  }
  if (!make_own(as_tensor(object))) return nullptr;
  const auto nbytes = static_cast<size_t>(row_bytes(rows->type));
  const char* source = static_cast<const char*>(rows->buffer->data);
  as_tensor(object)->value->buffer->note_overwritten();
  char* target = static_cast<char*>(as_tensor(object)->value->buffer->data);
  for (size_t k = 0; k < numbers.size(); ++k) std::memcpy(target + static_cast<size_t>(numbers[k]) * nbytes, source + k * nbytes, nbytes);
  Py_RETURN_NONE;
}

// gradients_of_rows(table, leaves) -> which of the leaves have a gradient, and all these behind each other as rows of the
// table; None where none has
PyObject* gradients_of_rows(PyObject*, PyObject* arguments) {
  PyObject *object, *leaves;
  if (!PyArg_ParseTuple(arguments, "OO!", &object, &PyList_Type, &leaves)) return nullptr;
  const Type* table = table_type(object);
  const Owned numbers(table ? PyList_New(0) : nullptr);
  if (!numbers) return nullptr;
  std::vector<ValueRef> gradients;
  int64_t nbytes = 0;
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(leaves); ++k) {
    PyObject* leaf = PyList_GET_ITEM(leaves, k);
    const GradientSlot* slot = is_tensor(leaf) ? as_tensor(leaf)->value->slot : nullptr;
    if (!slot || !slot->gradient) continue;
    const Owned gradient(Py_NewRef(slot->gradient));
    const UsedValue value(current_value(as_tensor(gradient.object)));
    if (!value || !realise(value)) return nullptr;
    const Owned number(PyLong_FromSsize_t(k));
    if (!number || PyList_Append(numbers.object, number.object) < 0) return nullptr;
    gradients.push_back(share(value));
    nbytes += value->type->nbytes;
  }
  if (gradients.empty()) Py_RETURN_NONE;
  const uint32_t location = capture_location();
  ValueRef made = new_rows(rows_type(table, nbytes / std::max<int64_t>(row_bytes(table), 1)), location);
  if (!made) return nullptr;
  char* target = static_cast<char*>(made->buffer->data);
  for (const ValueRef& gradient : gradients) {
    std::memcpy(target, gradient->buffer->data, static_cast<size_t>(gradient->type->nbytes));
    target += gradient->type->nbytes;
  }
  const Owned rows(as_leaf(std::move(made), false));
  return rows ? PyTuple_Pack(2, numbers.object, rows.object) : nullptr;
}

PyMethodDef functions[] = {
    {"row_of", method<row_of>(), METH_FASTCALL, "row_of(table, number, tracked): a copy of the row, a leaf."},
    {"rows_of", guarded<rows_of>, METH_VARARGS, "rows_of(table, numbers, tracked): copies of the rows, a leaf."},
    {"write_rows", guarded<write_rows>, METH_VARARGS, "write_rows(table, numbers, rows): writes rows in place."},
    {"gradients_of_rows", guarded<gradients_of_rows>, METH_VARARGS, "gradients_of_rows(table, leaves): which have one, and these as rows."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_row_functions(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace twofold
