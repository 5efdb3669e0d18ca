#include <Python.h>

#include "batch_run.h"

#include <cstring>

#include "batch_program.h"

namespace twofold {
namespace {

constexpr int64_t kLaunchNanoseconds = 500;  // beside its kernels

class BatchRun {
 public:
  BatchRun(const CanonicalTrace& canonical, const BatchPlan& plan, void* const* inputs, Interrupts& interrupts)
      : canonical_(canonical), plan_(plan), inputs_(inputs), interrupts_(interrupts), results_(plan.launches.size()) {}

  bool run(std::vector<BufferRef>& outputs) {
    for (uint32_t number = 0; number < plan_.launches.size(); ++number) {
      const Launch& launch = plan_.launches[number];
      const uint32_t rows = launch.is_chain() ? 1 : launch.members;
      results_[number] = BufferRef(new_buffer(static_cast<size_t>(launch.signature->output->nbytes) * rows));
      if (!run_launch(number, launch)) return false;
      release(number);
      interrupts_.after(kLaunchNanoseconds);
    }
    for (Ref ref : canonical_.outputs) outputs.push_back(output(static_cast<uint32_t>(ref)));
    return true;
  }

 private:
  char* row(Ref ref) const {
    if (ref < 0) return static_cast<char*>(inputs_[~ref]);
    const auto entry = static_cast<size_t>(ref);
    const int64_t nbytes = canonical_.trace.type_of_ref(ref)->nbytes;
    return static_cast<char*>(results_[plan_.launch_of[entry]]->data) + nbytes * plan_.row_of[entry];
  }

  Ref ref_of(const Launch& launch, uint32_t member, uint32_t position) const {
    return plan_.refs[canonical_.trace.entries[plan_.members[launch.first_member + member]].first_ref + position];
  }

  bool run_launch(uint32_t number, const Launch& launch) {
    if (launch.is_chain()) return run_chain(number, launch);
    return launch.members > 1 && launch.mask ? run_together(number, launch) : run_each(number, launch);
  }

  // Calls that read each the one before, in two buffers that take turns; the last one writes to the result.
  bool run_chain(uint32_t number, const Launch& launch) {
    Program* program = program_of(launch.signature);
    if (!program) return false;
    const BufferRef other(new_buffer(static_cast<size_t>(launch.signature->output->nbytes)));
    void *target = results_[number]->data, *source = other->data;
    if (launch.members % 2 == 0) std::swap(target, source);
    const auto count = static_cast<uint32_t>(launch.signature->inputs.size());
    for (uint32_t member = 0; member < launch.members; ++member) {
      pointers_.clear();
      for (uint32_t k = 0; k < count; ++k) {
        const bool carried = member > 0 && static_cast<int32_t>(k) == launch.carried;
        pointers_.push_back(carried ? source : row(ref_of(launch, member, k)));
      }
      program->run(pointers_.data(), &target, interrupts_);
      std::swap(target, source);
    }
    return true;
  }

  // One call after the other.
  bool run_each(uint32_t number, const Launch& launch) {
    Program* program = program_of(launch.signature);
    if (!program) return false;
    auto* output = static_cast<char*>(results_[number]->data);
    const auto count = static_cast<uint32_t>(launch.signature->inputs.size());
    for (uint32_t member = 0; member < launch.members; ++member) {
      pointers_.clear();
      for (uint32_t k = 0; k < count; ++k) pointers_.push_back(row(ref_of(launch, member, k)));
      void* target = output + static_cast<int64_t>(member) * launch.signature->output->nbytes;
      program->run(pointers_.data(), &target, interrupts_);
    }
    return true;
  }

  bool run_together(uint32_t number, const Launch& launch) {
    ProgramRef program;
    if (!batch_program(launch.signature, launch.mask, launch.members, &program)) return false;
    if (!program) return run_each(number, launch);
    ++batch_counts.launches;
    batch_counts.calls += launch.members;
    const auto count = static_cast<uint32_t>(launch.signature->inputs.size());
    std::vector<BufferRef> gathered;
    std::vector<void*> pointers;
    for (uint32_t k = 0; k < count; ++k) {
      const LaunchOperand& operand = plan_.operands[launch.first_operand + k];
      if (operand.kind == LaunchOperand::kEach) {
        gathered.push_back(gather(launch, k));
        pointers.push_back(gathered.back()->data);
      } else {
        pointers.push_back(row(operand.first));
      }
    }
    void* target = results_[number]->data;
    program->run(pointers.data(), &target, interrupts_);
    return true;
  }

  // The operands of all calls in one position, one behind the other.
  BufferRef gather(const Launch& launch, uint32_t position) const {
    const auto nbytes = static_cast<size_t>(launch.signature->inputs[position]->nbytes);
    BufferRef made(new_buffer(nbytes * launch.members));
    auto* target = static_cast<char*>(made->data);
    const char* begin = row(ref_of(launch, 0, position));
    size_t run = nbytes;  // operands often lie behind each other
    for (uint32_t member = 1; member < launch.members; ++member) {
      const char* next = row(ref_of(launch, member, position));
      if (next == begin + run) {
        run += nbytes;
        continue;
      }
      std::memcpy(target, begin, run);
      target += run;
      begin = next;
      run = nbytes;
    }
    std::memcpy(target, begin, run);
    return made;
  }

  // Frees what no later launch reads.
  void release(uint32_t number) {
    for (uint32_t k = plan_.first_dead[number]; k < plan_.first_dead[number + 1]; ++k) results_[plan_.dead[k]] = BufferRef();
  }

  // A value that stays has memory of its own, so that it does not keep the rest of a batch.
  BufferRef output(uint32_t entry) {
    const Launch& launch = plan_.launches[plan_.launch_of[entry]];
    const bool single = launch.members == 1 || launch.is_chain();
    const bool alone = single && plan_.members[launch.first_member + launch.members - 1] == entry;  // no equal call stands for it
    if (alone) return results_[plan_.launch_of[entry]];
    const auto nbytes = static_cast<size_t>(canonical_.trace.entries[entry].signature->output->nbytes);
    BufferRef made(new_buffer(nbytes));
    std::memcpy(made->data, row(static_cast<Ref>(entry)), nbytes);
    return made;
  }

  const CanonicalTrace& canonical_;
  const BatchPlan& plan_;
  void* const* inputs_;
  Interrupts& interrupts_;
  std::vector<BufferRef> results_;  // by launch: one row for each call
  std::vector<void*> pointers_;
};

}  // namespace

bool run_batches(const CanonicalTrace& canonical, const BatchPlan& plan, void* const* inputs, std::vector<BufferRef>& outputs,
                 Interrupts& interrupts) {
  ++batch_counts.traces;
  return BatchRun(canonical, plan, inputs, interrupts).run(outputs);
}

}  // namespace twofold
