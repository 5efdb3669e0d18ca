#include <Python.h>

#include "size_program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>

namespace twofold {
namespace {

// The opcodes, in the order of OPERATIONS in twofold/ir/size_program.py. Floats are held as the bits of a float64.
enum Code : int32_t {
  kAdd, kMultiply, kQuotient, kModulo, kLeast, kMost, kLookUp,
  kAsReal, kRealAdd, kRealMultiply, kRealDivide, kWhole,
  kSame, kBelow, kAtMost, kRealSame, kRealBelow, kRealAtMost,
};

double real(int64_t bits) { return std::bit_cast<double>(bits); }
int64_t bits(double number) { return std::bit_cast<int64_t>(number); }

// A reader of integers in a byte string.
class Bytes {
 public:
  Bytes(const char* data, size_t size) : next_(data), left_(size) {}

  template <class Number>
  bool read(std::vector<Number>& out, size_t count) {
    if (left_ / sizeof(Number) < count) return false;
    out.resize(count);
    if (count) std::memcpy(out.data(), next_, count * sizeof(Number));
    next_ += count * sizeof(Number);
    left_ -= count * sizeof(Number);
    return true;
  }
  bool at_end() const { return left_ == 0; }

 private:
  const char* next_;
  size_t left_;
};

}  // namespace

bool SizeProgram::read(PyObject* encoded) {
  char* data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(encoded, &data, &size) < 0) return false;
  Bytes bytes(data, static_cast<size_t>(size));
  if (read(bytes)) return true;
  PyErr_SetString(PyExc_ValueError, "no size program");
  return false;
}

template <class Bytes>
bool SizeProgram::read(Bytes& bytes) {
  std::vector<uint32_t> counts, lengths;
  if (!bytes.read(counts, 7)) return false;
  const auto [inputs, constants, tables, code, checking, results, guards] = std::tie(counts[0], counts[1], counts[2], counts[3], counts[4], counts[5], counts[6]);
  if (!bytes.read(constants_, constants) || !bytes.read(lengths, tables)) return false;
  for (uint32_t length : lengths) {
    if (!bytes.read(tables_.emplace_back(), length)) return false;
  }
  inputs_ = inputs;
  checking_ = checking;
  return checking <= code && bytes.read(code_, code) && bytes.read(results_, results) && bytes.read(guards_, guards) && bytes.at_end();
}

bool SizeProgram::step(const Step& step, std::vector<int64_t>& registers) const {
  const int64_t b = registers[static_cast<size_t>(step.b)];
  int64_t made = 0;
  if (step.code == kLookUp) {
    const auto& table = tables_[static_cast<size_t>(step.a)];
    if (b < 0 || b >= static_cast<int64_t>(table.size())) return false;
    registers.push_back(table[static_cast<size_t>(b)]);
    return true;
  }
  const int64_t a = registers[static_cast<size_t>(step.a)];
  switch (step.code) {
    case kAdd:
      if (__builtin_add_overflow(a, b, &made)) return false;
      break;
    case kMultiply:
      if (__builtin_mul_overflow(a, b, &made)) return false;
      break;
    case kQuotient:
    case kModulo: {
      if (b == 0 || (a == INT64_MIN && b == -1)) return false;
      int64_t quotient = a / b, rest = a % b;
      bool down = rest != 0 && (rest < 0) != (b < 0);
      made = step.code == kQuotient ? quotient - down : down ? rest + b : rest;
      break;
    }
    case kLeast: made = std::min(a, b); break;
    case kMost: made = std::max(a, b); break;
    case kAsReal: made = bits(static_cast<double>(a)); break;
    case kRealAdd: made = bits(real(a) + real(b)); break;
    case kRealMultiply: made = bits(real(a) * real(b)); break;
    case kRealDivide:
      if (real(b) == 0) return false;
      made = bits(real(a) / real(b));
      break;
    case kWhole:
      if (!(std::fabs(real(a)) < 9e18)) return false;
      made = static_cast<int64_t>(std::floor(real(a)));
      break;
    case kSame: made = a == b; break;
    case kBelow: made = a < b; break;
    case kAtMost: made = a <= b; break;
    case kRealSame: made = real(a) == real(b); break;
    case kRealBelow: made = real(a) < real(b); break;
    case kRealAtMost: made = real(a) <= real(b); break;
    default: return false;
  }
  registers.push_back(made);
  return true;
}

bool SizeProgram::run(const int64_t* values, std::vector<int64_t>& results) const {
  static thread_local std::vector<int64_t> registers;
  registers.assign(values, values + inputs_);
  registers.insert(registers.end(), constants_.begin(), constants_.end());
  registers.reserve(registers.size() + code_.size());
  for (size_t k = 0; k < checking_; ++k) {
    if (!step(code_[k], registers)) return false;
  }
  for (int32_t guard : guards_) {
    if ((registers[static_cast<size_t>(guard >> 1)] != 0) != ((guard & 1) != 0)) return false;
  }
  for (size_t k = checking_; k < code_.size(); ++k) {
    if (!step(code_[k], registers)) return false;
  }
  results.clear();
  for (int32_t position : results_) results.push_back(registers[static_cast<size_t>(position)]);
  return true;
}

}  // namespace twofold
