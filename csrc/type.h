// Interned types of values: equal types are one pointer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

typedef struct _object PyObject;

namespace twofold {

struct Layout;

enum DTypeCode : uint8_t {
  kBool = 0, kInt8, kInt16, kInt32, kInt64, kUInt8, kUInt16, kUInt32, kUInt64,
  kFloat16, kBFloat16, kFloat32, kFloat64, kComplex64, kComplex128,
  kString,  // an index into a table of byte strings that the define-then-run face keeps
  kDTypeCount,
};

int64_t item_size(uint8_t dtype);
bool is_floating(uint8_t dtype);
bool is_complex(uint8_t dtype);
inline bool is_differentiable(uint8_t dtype) { return dtype >= kFloat16 && dtype <= kComplex128; }  // a real or complex floating dtype
const char* dtype_name(uint8_t dtype);

struct Type {
  uint32_t id;
  uint8_t dtype;
  bool weak;        // a weakly typed Python scalar
  bool unknown;     // some size is unknown; such sizes are negative
  int64_t size;
  int64_t nbytes;
  std::vector<int64_t> shape;
  PyObject* python = nullptr;  // twofold.ir.types.TensorType, made when first asked for
  const Layout* row_major = nullptr;  // made when first asked for

  std::string text() const;
};

// Whether all types but those of Python numbers have the same floating dtype, as in most calls. The first is of no number.
template <class TypeAt>
bool same_floats(size_t count, TypeAt type_at) {
  if (count == 0) return false;
  const Type* first = type_at(0);
  if (first->weak || !is_differentiable(first->dtype)) return false;
  for (size_t i = 1; i < count; ++i) {
    const Type* type = type_at(i);
    if (type->dtype != first->dtype && !type->weak) return false;
  }
  return true;
}

Type* type_of(uint8_t dtype, const int64_t* shape, size_t ndim, bool weak = false);

}  // namespace twofold
