// NumPy arrays and Python numbers to and from values.
#include "tensor.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL twofold_numpy
#include <numpy/arrayobject.h>

#include <cstring>
#include <new>

#include "copies.h"
#include "declared.h"
#include "guard.h"
#include "location.h"
#include "out_of_memory.h"

namespace twofold {
namespace {

constexpr int kNumpyTypes[kDTypeCount] = {NPY_BOOL,   NPY_INT8,   NPY_INT16,  NPY_INT32,  NPY_INT64, NPY_UINT8,  NPY_UINT16,
                                          NPY_UINT32, NPY_UINT64, NPY_HALF, NPY_UINT16, NPY_FLOAT32, NPY_FLOAT64, NPY_COMPLEX64, NPY_COMPLEX128, NPY_INT64};

int dtype_of_array(PyArrayObject* array) {
  PyArray_Descr* descr = PyArray_DESCR(array);
  if (!PyArray_ISNOTSWAPPED(array)) return -1;
  int size = static_cast<int>(PyArray_ITEMSIZE(array));
  switch (descr->kind) {
    case 'b': return kBool;
    case 'i': return size == 1 ? kInt8 : size == 2 ? kInt16 : size == 4 ? kInt32 : kInt64;
    case 'u': return size == 1 ? kUInt8 : size == 2 ? kUInt16 : size == 4 ? kUInt32 : kUInt64;
    case 'f': return size == 2 ? kFloat16 : size == 4 ? kFloat32 : size == 8 ? kFloat64 : -1;
    case 'c': return size == 8 ? kComplex64 : size == 16 ? kComplex128 : -1;
    default: return -1;
  }
}

void release_export(PyObject* capsule) {
  auto* buffer = static_cast<Buffer*>(PyCapsule_GetPointer(capsule, "twofold.buffer"));
  --buffer->exports;
  BufferRef drop(buffer);
}

float from_bfloat16(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float out;
  std::memcpy(&out, &wide, sizeof out);
  return out;
}

float from_float16(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, fraction = bits & 1023u;
  float out;
  if (exponent == 0) {
    out = static_cast<float>(fraction) * 5.9604644775390625e-8f;
    uint32_t wide;
    std::memcpy(&wide, &out, sizeof wide);
    wide |= sign;
    std::memcpy(&out, &wide, sizeof out);
    return out;
  }
  uint32_t wide = sign | ((exponent == 31 ? 255u : exponent + 112u) << 23) | (fraction << 13);
  std::memcpy(&out, &wide, sizeof out);
  return out;
}

template <class T>
T read(const void* data, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + offset * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

int import_numpy() {
  import_array1(-1);
  return 0;
}

PyObject* array_of(PyTensor* tensor, bool copy) {
  Value* value = tensor->value;
  const Type* type = value->type;
  npy_intp shape[NPY_MAXDIMS];
  if (type->shape.size() > NPY_MAXDIMS) return PyErr_Format(PyExc_ValueError, "numpy: %zu axes are too many", type->shape.size());
  for (size_t axis = 0; axis < type->shape.size(); ++axis) shape[axis] = static_cast<npy_intp>(type->shape[axis]);
  Buffer* buffer = value->buffer.get();
  if (copy) {
    PyObject* array = PyArray_SimpleNew(static_cast<int>(type->shape.size()), shape, kNumpyTypes[type->dtype]);
    if (array) copy_memory(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)), buffer->data, static_cast<size_t>(type->nbytes));
    return array;
  }
  PyObject* array = PyArray_SimpleNewFromData(static_cast<int>(type->shape.size()), shape, kNumpyTypes[type->dtype], buffer->data);
  Buffer* held = buffer->whole ? buffer->whole : buffer;
  PyObject* capsule = array ? PyCapsule_New(held, "twofold.buffer", guarded<release_export>) : nullptr;
  if (!capsule) {
    Py_XDECREF(array);
    return nullptr;
  }
  ++held->references;
  ++held->exports;
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), capsule) < 0) {
    Py_DECREF(array);
    return nullptr;
  }
  if (buffer->read_only) PyArray_CLEARFLAGS(reinterpret_cast<PyArrayObject*>(array), NPY_ARRAY_WRITEABLE);
  return array;
}

namespace {

// Whether the memory of an array may be referenced by code without a reference to the array.
bool held_elsewhere(PyArrayObject* array) {
  PyObject* base = PyArray_BASE(array);
  while (base && PyArray_Check(base)) base = PyArray_BASE(reinterpret_cast<PyArrayObject*>(base));
  return base != nullptr;
}

BufferRef shared_buffer(PyArrayObject* array, size_t nbytes) {
  return BufferRef(foreign_buffer(PyArray_DATA(array), nbytes, reinterpret_cast<PyObject*>(array), PyArray_BASE(array),
                                  !PyArray_ISWRITEABLE(array), held_elsewhere(array)));
}

}  // namespace

ValueRef value_from_span(PyObject* object) {
  if (!PyArray_Check(object)) {
    PyErr_Format(PyExc_TypeError, "expected a NumPy array, got %s", Py_TYPE(object)->tp_name);
    return ValueRef();
  }
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  int code = dtype_of_array(array);
  if (code < 0) {
    PyErr_Format(PyExc_TypeError, "arrays of dtype %S have no counterpart. Convert the array first.", PyArray_DESCR(array));
    return ValueRef();
  }
  int64_t size = item_size(static_cast<uint8_t>(code)), count = 1;
  for (int axis = 0; axis < PyArray_NDIM(array); ++axis) {
    int64_t step = PyArray_STRIDE(array, axis), length = PyArray_DIM(array, axis);
    if (step < 0 || step % size != 0 || length == 0) {
      PyErr_SetString(PyExc_ValueError, "an array without elements, or with strides that are not those of a tensor");
      return ValueRef();
    }
    count += (length - 1) * (step / size);
  }
  ValueRef value(new_value(type_of(static_cast<uint8_t>(code), &count, 1)));
  value->location = capture_location();
  value->buffer = shared_buffer(array, static_cast<size_t>(count * size));
  return value;
}

PyObject* python_integer(PyObject* object) {
  if (PyLong_CheckExact(object)) return Py_NewRef(object);
  return PyArray_IsScalar(object, Integer) ? PyNumber_Index(object) : nullptr;
}

ValueRef value_from_array(PyObject* object, bool share_memory, int dtype_code) {
  if (!PyArray_Check(object)) {
    PyErr_Format(PyExc_TypeError, "expected a NumPy array, got %s", Py_TYPE(object)->tp_name);
    return ValueRef();
  }
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  int code = dtype_code >= 0 ? dtype_code : dtype_of_array(array);
  if (code < 0) {
    PyErr_Format(PyExc_TypeError, "arrays of dtype %S have no counterpart. Convert the array first.", PyArray_DESCR(array));
    return ValueRef();
  }
  int64_t shape[NPY_MAXDIMS];
  size_t ndim = static_cast<size_t>(PyArray_NDIM(array));
  for (size_t axis = 0; axis < ndim; ++axis) shape[axis] = PyArray_DIM(array, static_cast<int>(axis));
  Type* type = type_of(static_cast<uint8_t>(code), shape, ndim);
  PyArrayObject* dense = PyArray_GETCONTIGUOUS(array);
  if (!dense) return ValueRef();
  ValueRef value(new_value(type));
  value->location = declaring_location();
  bool aligned = (reinterpret_cast<uintptr_t>(PyArray_DATA(dense)) % static_cast<size_t>(item_size(type->dtype))) == 0;
  try {
    if (share_memory && dense == array && aligned) {
      value->buffer = shared_buffer(array, static_cast<size_t>(type->nbytes));
    } else {
      value->buffer = BufferRef(new_buffer(static_cast<size_t>(type->nbytes)));
      copy_memory(value->buffer->data, PyArray_DATA(dense), static_cast<size_t>(type->nbytes));
    }
  } catch (const std::bad_alloc&) {
    raise_out_of_memory(static_cast<size_t>(type->nbytes), "a copy of an array, " + type->text(), {value->location, 0});
    value = ValueRef();
  }
  Py_DECREF(dense);
  return value;
}

ValueRef value_from_numbers(PyObject* data, uint8_t float_code) try {
  const uint32_t location = capture_location();  // this may run other code: the list is checked afterwards
  const bool is_list = PyList_CheckExact(data) || PyTuple_CheckExact(data);
  PyObject* const* items = is_list ? PySequence_Fast_ITEMS(data) : &data;
  const int64_t count = is_list ? PySequence_Fast_GET_SIZE(data) : 1;
  if (count == 0) return ValueRef();
  const PyTypeObject* kind = Py_TYPE(items[0]);
  const bool floats = kind == &PyFloat_Type;
  if (floats ? float_code != kFloat32 && float_code != kFloat64 : kind != &PyLong_Type) return ValueRef();
  ValueRef value(new_value(type_of(floats ? float_code : uint8_t{kInt64}, &count, is_list)));
  value->location = location;
  value->buffer = BufferRef(new_buffer(static_cast<size_t>(value->type->nbytes)));
  void* target = value->buffer->data;
  for (int64_t k = 0; k < count; ++k) {
    if (Py_TYPE(items[k]) != kind) return ValueRef();
    int overflow = 0;
    if (!floats) static_cast<int64_t*>(target)[k] = PyLong_AsLongLongAndOverflow(items[k], &overflow);
    else if (float_code == kFloat64) static_cast<double*>(target)[k] = PyFloat_AS_DOUBLE(items[k]);
    else static_cast<float*>(target)[k] = static_cast<float>(PyFloat_AS_DOUBLE(items[k]));
    if (overflow) return ValueRef();
  }
  return value;
} catch (const std::bad_alloc&) {
  return ValueRef();  // another conversion raises the error
}

PyObject* scalar_item(const Type* type, const void* data, size_t offset) {
  switch (type->dtype) {
    case kBool: return PyBool_FromLong(read<uint8_t>(data, offset));
    case kInt8: return PyLong_FromLong(read<int8_t>(data, offset));
    case kInt16: return PyLong_FromLong(read<int16_t>(data, offset));
    case kInt32: return PyLong_FromLong(read<int32_t>(data, offset));
    case kInt64: return PyLong_FromLongLong(read<int64_t>(data, offset));
    case kUInt8: return PyLong_FromLong(read<uint8_t>(data, offset));
    case kUInt16: return PyLong_FromLong(read<uint16_t>(data, offset));
    case kUInt32: return PyLong_FromUnsignedLong(read<uint32_t>(data, offset));
    case kUInt64: return PyLong_FromUnsignedLongLong(read<uint64_t>(data, offset));
    case kFloat16: return PyFloat_FromDouble(from_float16(read<uint16_t>(data, offset)));
    case kBFloat16: return PyFloat_FromDouble(from_bfloat16(read<uint16_t>(data, offset)));
    case kFloat32: return PyFloat_FromDouble(read<float>(data, offset));
    case kFloat64: return PyFloat_FromDouble(read<double>(data, offset));
    case kString: return PyLong_FromLongLong(read<int64_t>(data, offset));
    case kComplex64: return PyComplex_FromDoubles(read<float>(data, 2 * offset), read<float>(data, 2 * offset + 1));
    default: return PyComplex_FromDoubles(read<double>(data, 2 * offset), read<double>(data, 2 * offset + 1));
  }
}

}  // namespace twofold
