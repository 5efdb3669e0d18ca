#include "type.h"

#include <memory>
#include <unordered_map>

#include "cache.h"

namespace twofold {

int64_t item_size(uint8_t dtype) {
  static const int64_t sizes[kDTypeCount] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 8};
  return sizes[dtype];
}

bool is_floating(uint8_t dtype) { return dtype >= kFloat16 && dtype <= kFloat64; }

bool is_complex(uint8_t dtype) { return dtype == kComplex64 || dtype == kComplex128; }


const char* dtype_name(uint8_t dtype) {
  static const char* const names[kDTypeCount] = {"bool",   "int8",   "int16",   "int32",    "int64",   "uint8",   "uint16",   "uint32",
                                                 "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "string"};
  return names[dtype];
}

std::string Type::text() const {
  std::string out = std::string(weak ? "weak " : "") + dtype_name(dtype) + "[";
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis) out += ',';
    out += shape[axis] < 0 ? "?" : std::to_string(shape[axis]);
  }
  return out + "]";
}

namespace {

CacheAccount& account = *new CacheAccount("types", 0);  // never evicted: values refer to them by address

}  // namespace

Type* type_of(uint8_t dtype, const int64_t* shape, size_t ndim, bool weak) {
  static auto& table = *new std::unordered_map<std::string, std::unique_ptr<Type>>();
  std::string key;
  key.reserve(2 + ndim * sizeof(int64_t));
  key.push_back(static_cast<char>(dtype));
  key.push_back(static_cast<char>(weak));
  key.append(reinterpret_cast<const char*>(shape), ndim * sizeof(int64_t));
  if (auto found = table.find(key); found != table.end()) {
    ++account.hits;
    return found->second.get();
  }
  auto made = std::make_unique<Type>();
  made->id = static_cast<uint32_t>(table.size() + 1);
  made->dtype = dtype;
  made->weak = weak;
  made->shape.assign(shape, shape + ndim);
  made->unknown = false;
  made->size = 1;
  for (size_t axis = 0; axis < ndim; ++axis) {
    if (shape[axis] < 0) made->unknown = true;
    made->size *= shape[axis];
  }
  made->nbytes = made->size * item_size(dtype);
  constexpr size_t kInPython = 256;
  const size_t bytes = 2 * key.size() + sizeof(Type) + kInPython;
  Type* type = table.emplace(std::move(key), std::move(made)).first->second.get();  // whole: it stays if anything fails later
  ++account.misses;
  account.bytes += bytes;
  account.count = table.size();
  return type;
}

}  // namespace twofold
