#include <Python.h>

#include "size_program.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace twofold {
namespace {

// The order of OPERATIONS in twofold/ir/size_program.py. Real numbers are held as the bits of a float64.
enum Code : int32_t {
  kAdd, kMultiply, kQuotient, kModulo, kLeast, kMost, kLookUp,
  kAsReal, kRealAdd, kRealMultiply, kRealDivide, kWhole,
  kSame, kBelow, kAtMost, kRealSame, kRealBelow, kRealAtMost,
};

double real(int64_t bits) { return std::bit_cast<double>(bits); }
int64_t bits(double number) { return std::bit_cast<int64_t>(number); }

bool read_numbers(PyObject* list, std::vector<int64_t>& out) {
  PyObject* items = PySequence_Fast(list, "a size program holds sequences of numbers");
  for (Py_ssize_t i = 0; items && i < PySequence_Fast_GET_SIZE(items); ++i) {
    out.push_back(PyLong_AsLongLong(PySequence_Fast_GET_ITEM(items, i)));
  }
  Py_XDECREF(items);
  return PyErr_Occurred() == nullptr;
}

// Applies `read_one` to each item of a sequence; false with a Python error set.
template <class Function>
bool for_each(PyObject* list, Function read_one) {
  PyObject* items = PySequence_Fast(list, "a size program holds sequences");
  bool good = items != nullptr;
  for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(items); ++i) good = read_one(PySequence_Fast_GET_ITEM(items, i));
  Py_XDECREF(items);
  return good;
}

}  // namespace

bool SizeProgram::read(PyObject* encoded) {
  PyObject *constants, *tables, *code, *results, *guards;
  Py_ssize_t inputs;
  if (!PyArg_ParseTuple(encoded, "nOOOOO", &inputs, &constants, &tables, &code, &results, &guards)) return false;
  inputs_ = static_cast<size_t>(inputs);
  if (!read_numbers(constants, constants_)) return false;
  bool good = for_each(tables, [this](PyObject* item) { return read_numbers(item, tables_.emplace_back()); });
  good = good && for_each(code, [this](PyObject* item) {
    Step made;
    if (!PyArg_ParseTuple(item, "iii", &made.code, &made.a, &made.b)) return false;
    code_.push_back(made);
    return true;
  });
  std::vector<int64_t> numbers;
  if (!good || !read_numbers(results, numbers)) return false;
  for (int64_t number : numbers) results_.push_back(static_cast<int32_t>(number));
  return for_each(guards, [this](PyObject* item) {
    int position, holds;
    if (!PyArg_ParseTuple(item, "ip", &position, &holds)) return false;
    guards_.emplace_back(position, holds != 0);
    return true;
  });
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
  for (const Step& each : code_) {
    if (!step(each, registers)) return false;
  }
  for (auto [position, holds] : guards_) {
    if ((registers[static_cast<size_t>(position)] != 0) != holds) return false;
  }
  results.clear();
  for (int32_t position : results_) results.push_back(registers[static_cast<size_t>(position)]);
  return true;
}

}  // namespace twofold
