// Op-by-op execution of a trace, each operation by its own program; a result reuses the buffer of an operand that
// dies with it if the program allows that, and large cheap results are rematerialised. What only moves data needs no program:
// a contiguous slice is a part of the memory of its source, or a copy of it where it would keep much more memory alive.
#pragma once

#include <optional>
#include <vector>

#include "buffer.h"
#include "copies.h"
#include "interrupts.h"
#include "location.h"
#include "trace.h"

namespace twofold {

// Liveness analysis of a trace whose op instances have programs.
struct UnfusedPlan {
  explicit UnfusedPlan(const CanonicalTrace& canonical);
  size_t memory() const;

  enum class Step : uint8_t { kCall, kPart, kCopied };  // a program's; a part of another value; a slice or concatenation

  std::vector<uint32_t> steps;      // the entries that run, see steps_of
  std::vector<Step> kinds;          // by entry
  std::vector<uint32_t> uses;       // by step: uses of its result until that is rematerialised, outputs counted
  std::vector<uint32_t> last_read;  // by leaf: the step
  // From this step on inputs are overwritten. The tail cannot be repeated, so nothing may interrupt it, and
  // its memory is allocated before: less than what reusing the inputs saves.
  size_t tail = SIZE_MAX;
  int64_t tail_scratch = 0;  // bytes that a program of the tail needs beside its results

 private:
  void find_parts(const CanonicalTrace& canonical);
  void find_tail(const CanonicalTrace& canonical);
};

// Whether a call, whose traits are known, only copies memory: it is a contiguous slice of an operand, or a concatenation.
bool only_moves(const Trace& trace, const Entry& entry);

class UnfusedRun {
 public:
  UnfusedRun(const CanonicalTrace& canonical, const UnfusedPlan& plan, void* const* inputs, Buffer* const* spare,
             RunProvenance provenance, Interrupts& interrupts);

  // False with a Python error set; then `outputs` has the results that do not depend on the failed entry.
  bool run(std::vector<BufferRef>& outputs);

 private:
  // The first error of a run, which continues with entries that do not depend on the failed one.
  class FirstError {
   public:
    ~FirstError();
    void keep();
    bool restore();  // sets the error again; false if there was none
    explicit operator bool() const { return type_ != nullptr; }

   private:
    PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
  };

  const Entry& entry_of(size_t step) const { return canonical_.trace.entries[plan_.steps[step]]; }
  bool run_step(size_t step);
  BufferRef moved(size_t step);
  bool point(const Entry& entry);  // sets pointers to the operands; false if one could not be computed
  BufferRef result_of(size_t step, const Program& program, size_t* whole_from);
  BufferRef own_memory(size_t step);
  BufferRef overwritten(size_t step, const Program& program) const;
  void begin_tail();
  bool fail(size_t index);

  const CanonicalTrace& canonical_;
  const UnfusedPlan& plan_;
  void* const* inputs_;
  Buffer* const* spare_;
  const RunProvenance provenance_;
  Interrupts& interrupts_;
  std::vector<uint32_t> left_;  // by entry: remaining uses
  std::vector<BufferRef> values_;
  std::vector<void*> pointers_;
  std::vector<CopiedPart> copies_;
  std::vector<BufferRef> ready_;  // results of the tail
  BufferRef scratch_;             // of the tail
  std::optional<Interrupts::Held> held_;
  FirstError error_;
};

}  // namespace twofold
