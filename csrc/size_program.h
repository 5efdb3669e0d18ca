// Size programs: straight-line code of symbolic expressions and guards, evaluated for new sizes.
#pragma once

#include <cstdint>
#include <vector>

typedef struct _object PyObject;

namespace twofold {

class SizeProgram {
 public:
  // From the bytes that twofold.ir.size_program makes; false with a Python error set.
  bool read(PyObject* encoded);

  // Evaluates the results; false if a guard does not hold, or a number overflows.
  bool run(const int64_t* values, std::vector<int64_t>& results) const;

  size_t inputs() const { return inputs_; }
  size_t memory() const {
    return sizeof *this + constants_.size() * sizeof(int64_t) + code_.size() * sizeof(Step) + (results_.size() + guards_.size()) * sizeof(int32_t);
  }
  size_t results() const { return results_.size(); }

 private:
  struct Step {
    int32_t code, a, b;
  };
  template <class Bytes>
  bool read(Bytes& bytes);
  bool step(const Step& step, std::vector<int64_t>& registers) const;

  size_t inputs_ = 0;
  std::vector<int64_t> constants_;
  std::vector<std::vector<int64_t>> tables_;
  std::vector<Step> code_;
  size_t checking_ = 0;  // how many of the first steps compute guards
  std::vector<int32_t> results_;
  std::vector<int32_t> guards_;  // 2 * register + 1 if it must be true, 2 * register if it must be false
};

}  // namespace twofold
