// Expressions over sizes as straight code: what a plan with symbolic sizes evaluates for each new size.
#pragma once

#include <cstdint>
#include <vector>

typedef struct _object PyObject;

namespace twofold {

class SizeProgram {
 public:
  // From the bytes that twofold.ir.size_program makes; false with a Python error set.
  bool read(PyObject* encoded);

  // Fills the results for the values of the inputs; false where a guard does not hold, or a number does not fit.
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
  std::vector<int32_t> guards_;  // twice a register, and one more where it must not be 0
};

}  // namespace twofold
