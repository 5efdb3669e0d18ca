// Expressions over sizes as straight code: what a plan with symbolic sizes evaluates for each new size.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

typedef struct _object PyObject;

namespace twofold {

class SizeProgram {
 public:
  // From (inputs, constants, tables, code, results, guards), see twofold.ir.size_program; false with a Python error set.
  bool read(PyObject* encoded);

  // Fills the results for the values of the inputs; false where a guard does not hold, or a number does not fit.
  bool run(const int64_t* values, std::vector<int64_t>& results) const;

  size_t inputs() const { return inputs_; }
  size_t memory() const {
    return sizeof *this + constants_.size() * sizeof(int64_t) + code_.size() * sizeof(Step) + results_.size() * sizeof(int32_t);
  }
  size_t results() const { return results_.size(); }

 private:
  struct Step {
    int32_t code, a, b;
  };
  bool step(const Step& step, std::vector<int64_t>& registers) const;

  size_t inputs_ = 0;
  std::vector<int64_t> constants_;
  std::vector<std::vector<int64_t>> tables_;
  std::vector<Step> code_;
  std::vector<int32_t> results_;
  std::vector<std::pair<int32_t, bool>> guards_;
};

}  // namespace twofold
