#include <Python.h>

#include "batch_run.h"

#include <algorithm>
#include <cstring>

#include "batch_program.h"
#include "profile.h"
#include "run_behind.h"

namespace twofold {
namespace {

constexpr int64_t kLaunchNanoseconds = 500;  // beside its kernels

class BatchRun : public RunBehind {
 public:
  BatchRun(const CanonicalTrace& canonical, std::shared_ptr<const BatchPlan> plan, void* const* inputs)
      : canonical_(canonical), held_plan_(std::move(plan)), plan_(*held_plan_), inputs_(inputs, inputs + canonical.trace.leaves.size()),
        results_(plan_.launches.size()), at_(plan_.at.data()) {}

  // Asks Python for what is missing, and has room for the outputs; false with a Python error set.
  bool prepare(size_t apart, std::vector<BufferRef>& outputs) {
    find_moving();
    programs_.reserve(results_.size());
    for (const Launch& launch : plan_.launches) {
      if (!find_program(launch)) return false;
    }
    find_kept(apart);
    for (Ref ref : canonical_.outputs) outputs.push_back(output(static_cast<uint32_t>(ref), outputs.size() >= apart));
    std::stable_sort(copies_.begin(), copies_.end(), [](const Copy& a, const Copy& b) { return a.step < b.step; });
    return true;
  }

  // Whether more is left to do than to run kernels.
  bool needs_python() const { return needs_python_; }
  bool is_short() const { return work_ <= kReleaseWork; }

  void run(Interrupts& interrupts) {
    interrupts_ = &interrupts;
    finish_step(0);
    for (uint32_t number = 0; number < plan_.launches.size(); ++number) {
      const Launch& launch = plan_.launches[number];
      if (!results_[number]) {
        blocks_[number] = PoolBlock(launch.nbytes());
        results_[number] = blocks_[number].data();
      }
      run_launch(number, launch);
      finish_step(number + 1);
      release(number);
      interrupts.after(kLaunchNanoseconds);
    }
  }

  // Goes on in the other thread, where that is free; what is read stays until then.
  static bool start(const std::shared_ptr<BatchRun>& run, const std::vector<BufferRef>& outputs) {
    run->keep_numbers();
    if (!RunBehind::start(run)) return false;
    std::vector<uint32_t> steps;
    for (Ref ref : run->canonical_.outputs) steps.push_back(run->step_of(static_cast<uint32_t>(ref)));
    run->makes(outputs, steps);
    return true;
  }

 private:
  // An output that has memory of its own, though it lies among what a launch leaves.
  struct Copy {
    uint32_t step, entry;
    char* target;
  };

  void compute() override {
    Interrupts interrupts;
    const Interrupts::Held held(interrupts);  // a signal is a matter of those who wait
    run(interrupts);
  }

  // After which the value is there: 0 of what is no launch's.
  uint32_t step_of(uint32_t entry) const { return static_cast<uint32_t>(plan_.home[entry] >= 0 ? plan_.home[entry] + 1 : 0); }

  void finish_step(uint32_t step) {
    for (; next_copy_ < copies_.size() && copies_[next_copy_].step == step; ++next_copy_) {
      const Copy& copy = copies_[next_copy_];
      std::memcpy(copy.target, row(static_cast<Ref>(copy.entry)), static_cast<size_t>(nbytes_of(copy.entry)));
    }
    took_step();
  }

  // Numbers may lie where their owner moves them.
  void keep_numbers() {
    numbers_.resize(inputs_.size());
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const Type* type = canonical_.trace.leaves[k];
      if (!type->shape.empty() || static_cast<size_t>(type->nbytes) > sizeof numbers_[k]) continue;
      std::memcpy(&numbers_[k], inputs_[k], static_cast<size_t>(type->nbytes));
      inputs_[k] = &numbers_[k];
    }
  }

  // The program of the calls together, or of one of them where they run in turn, or none: of a body that has none its members
  // run, and what is joined is copied.
  bool find_program(const Launch& launch) {
    ProgramRef& program = programs_.emplace_back();
    const size_t members = launch.body ? launch.body->members.size() : 1;
    if (launch.body) {
      if (!body_program(*launch.body, launch.rows(), &program)) return false;
    } else if (!launch.joins && !launch.is_chain() && launch.members > 1 && launch.mask) {
      if (!batch_program(launch.signature, launch.mask, launch.members, &program)) return false;
    }
    together_.push_back(program != nullptr);
    if (program) {
      ++batch_counts.launches;
      batch_counts.calls += launch.members * members;
    } else if (launch.body) {
      needs_python_ = true;
      for (const Body::Member& member : launch.body->members) {
        if (!program_of(member.signature)) return false;
      }
    } else if (!launch.joins) {
      if (!program_of(launch.signature)) return false;
      program = launch.signature->program;
    }
    needs_python_ = needs_python_ || (program && program->has_host);
    if (program) work_ += program->total_work * (together_.back() ? 1 : launch.members);
    return true;
  }

  void execute(const Program& program, void* const* inputs, void* const* outputs) {
    if (needs_python_) return program.run(inputs, outputs, *interrupts_);
    const PoolBlock arena(program.arena_bytes);
    program.run_in(inputs, outputs, arena.data(), *interrupts_);
  }

  void find_moving() {
    if (plan_.moving.empty()) return;
    places_ = plan_.at;
    at_ = places_.data();
    for (const MovingPart& part : plan_.moving) {
      int64_t number = 0;
      if (part.number >= 0) std::memcpy(&number, inputs_[static_cast<size_t>(part.number)], sizeof number);
      places_[part.entry] = (part.source >= 0 ? places_[static_cast<size_t>(part.source)] : 0) + part.offset + part.step * number;
    }
  }

  char* row(Ref ref) const {
    if (ref < 0) return static_cast<char*>(inputs_[static_cast<size_t>(~ref)]);
    const auto entry = static_cast<size_t>(ref);
    const int32_t home = plan_.home[entry];
    return (home >= 0 ? results_[static_cast<size_t>(home)] : static_cast<char*>(inputs_[static_cast<size_t>(~home)])) + at_[entry];
  }

  Ref ref_of(const Launch& launch, uint32_t member, uint32_t position) const {
    return plan_.refs[plan_.first_ref[plan_.members[launch.first_member + member]] + position];
  }

  void note_entry(const Launch& launch, uint32_t member) const {
    if (profile::is_on()) profile::context.entry = static_cast<int32_t>(plan_.members[launch.first_member + member]);
  }

  void run_launch(uint32_t number, const Launch& launch) {
    if (launch.joins) join(number, launch);
    else if (together_[number]) run_together(number, launch);
    else if (launch.body) run_members(number, launch);
    else if (launch.is_chain()) run_chain(number, launch);
    else run_each(number, launch);
  }

  // Calls that read each the one before, in two buffers that take turns; the last one writes to the result.
  void run_chain(uint32_t number, const Launch& launch) {
    const PoolBlock other(launch.signature->output->nbytes);
    void *target = results_[number], *source = other.data();
    if (launch.members % 2 == 0) std::swap(target, source);
    const auto count = static_cast<uint32_t>(launch.signature->inputs.size());
    for (uint32_t member = 0; member < launch.members; ++member) {
      pointers_.clear();
      for (uint32_t k = 0; k < count; ++k) {
        const bool carried = member > 0 && static_cast<int32_t>(k) == launch.carried;
        pointers_.push_back(carried ? source : row(ref_of(launch, member, k)));
      }
      note_entry(launch, member);
      execute(*programs_[number], pointers_.data(), &target);
      std::swap(target, source);
    }
  }

  // One call after the other.
  void run_each(uint32_t number, const Launch& launch) {
    const auto count = static_cast<uint32_t>(launch.signature->inputs.size());
    for (uint32_t member = 0; member < launch.members; ++member) {
      pointers_.clear();
      for (uint32_t k = 0; k < count; ++k) pointers_.push_back(row(ref_of(launch, member, k)));
      void* target = results_[number] + static_cast<int64_t>(member) * launch.signature->output->nbytes;
      note_entry(launch, member);
      execute(*programs_[number], pointers_.data(), &target);
    }
  }

  void run_together(uint32_t number, const Launch& launch) {
    const Body* body = launch.body;
    const size_t count = body ? body->inputs.size() : launch.signature->inputs.size();
    std::vector<PoolBlock> gathered;
    pointers_.clear();
    for (uint32_t k = 0; k < count; ++k) {
      const LaunchOperand& operand = plan_.operands[launch.first_operand + k];
      pointers_.push_back(operand.kind == LaunchOperand::kEach ? gather(launch, k, gathered) : row(operand.first));
    }
    std::vector<void*> targets;
    if (!body) targets.push_back(results_[number]);
    for (size_t k = 0; body && k < body->at.size(); ++k) targets.push_back(results_[number] + body->at[k] * launch.rows());
    if (profile::is_on()) profile::context.entry = ProfileEvent::kWhole - 1 - static_cast<int32_t>(number);
    execute(*programs_[number], pointers_.data(), targets.data());
  }

  // The calls of a body one by one, and their members.
  void run_members(uint32_t number, const Launch& launch) {
    const Body& body = *launch.body;
    std::vector<PoolBlock> values;
    for (const Body::Member& member : body.members) values.emplace_back(member.signature->output->nbytes);
    for (uint32_t call = 0; call < launch.members; ++call) {
      for (size_t k = 0; k < body.members.size(); ++k) {
        pointers_.clear();
        for (Ref operand : body.members[k].operands) {
          pointers_.push_back(operand >= 0 ? values[static_cast<size_t>(operand)].data()
                                           : row(ref_of(launch, call, static_cast<uint32_t>(~operand))));
        }
        void* target = values[k].data();
        body.members[k].signature->program->run(pointers_.data(), &target, *interrupts_);
      }
      for (size_t k = 0; k < body.outputs.size(); ++k) {
        const PoolBlock& value = values[body.outputs[k]];
        const auto nbytes = body.members[body.outputs[k]].signature->output->nbytes;
        char* target = results_[number] + body.at[k] * launch.rows() + call * nbytes;
        std::memcpy(target, value.data(), static_cast<size_t>(nbytes));
      }
    }
  }

  // Lays what it is given behind each other; what lies so already is copied at once.
  class Joined {
   public:
    explicit Joined(char* target) : target_(target) {}
    ~Joined() { copy(); }
    Joined(const Joined&) = delete;

    void add(const char* begin, size_t nbytes) {
      if (begin == begin_ + size_) {
        size_ += nbytes;
        return;
      }
      copy();
      target_ += size_;
      begin_ = begin;
      size_ = nbytes;
    }

   private:
    void copy() const { if (size_) std::memcpy(target_, begin_, size_); }

    char* target_;
    const char* begin_ = nullptr;
    size_t size_ = 0;
  };

  void join(uint32_t number, const Launch& launch) {
    Joined made(results_[number]);
    for (uint32_t member = 0; member < launch.members; ++member) join_operands(plan_.members[launch.first_member + member], made);
  }

  void join_operands(uint32_t entry, Joined& made) const {
    const Entry& call = canonical_.trace.entries[entry];
    for (uint32_t operand : call.signature->traits->movement->operands) {
      const Ref ref = plan_.refs[call.first_ref + operand];
      if (ref >= 0 && plan_.merged[static_cast<size_t>(ref)]) join_operands(static_cast<uint32_t>(ref), made);
      else made.add(row(ref), static_cast<size_t>(call.signature->inputs[operand]->nbytes));
    }
  }

  // The operands of all calls in one position, one behind the other: where they lie, or in new memory.
  void* gather(const Launch& launch, uint32_t position, std::vector<PoolBlock>& gathered) const {
    const auto nbytes = static_cast<size_t>(launch.input(position)->nbytes);
    char* first = row(ref_of(launch, 0, position));
    const auto rows = static_cast<uint32_t>(launch.rows());
    uint32_t member = 1;
    while (member < launch.members && row(ref_of(launch, member, position)) == first + member * nbytes) ++member;
    if (member == rows) return first;
    gathered.emplace_back(static_cast<int64_t>(nbytes * rows));
    Joined made(gathered.back().data());
    made.add(first, member * nbytes);
    for (; member < rows; ++member) made.add(row(ref_of(launch, std::min(member, launch.members - 1), position)), nbytes);
    return gathered.back().data();
  }

  // Frees what no later launch reads.
  void release(uint32_t number) {
    for (uint32_t k = plan_.first_dead[number]; k < plan_.first_dead[number + 1]; ++k) blocks_[plan_.dead[k]] = PoolBlock();
  }

  int64_t nbytes_of(uint32_t entry) const { return canonical_.trace.entries[entry].signature->output->nbytes; }

  // Counts the bytes of each launch that are let go of together.
  void find_kept(size_t apart) {
    kept_.assign(results_.size(), 0);
    whole_.resize(results_.size());
    blocks_.resize(results_.size());
    for (size_t k = apart; k < canonical_.outputs.size(); ++k) {
      const auto entry = static_cast<uint32_t>(canonical_.outputs[k]);
      if (const int32_t home = plan_.home[entry]; home >= 0) kept_[static_cast<size_t>(home)] += nbytes_of(entry);
    }
  }

  // What the launch leaves, as a buffer.
  const BufferRef& whole(uint32_t number) {
    BufferRef& found = whole_[number];
    if (!found) {
      found = BufferRef(new_buffer(static_cast<size_t>(plan_.launches[number].nbytes())));
      results_[number] = static_cast<char*>(found->address);
    }
    return found;
  }

  // A value has memory of its own, so that it does not keep the rest of a batch, unless it goes with most of that.
  BufferRef output(uint32_t entry, bool goes_with_others) {
    const auto nbytes = static_cast<size_t>(nbytes_of(entry));
    if (plan_.home[entry] >= 0) {
      const auto home = static_cast<uint32_t>(plan_.home[entry]);
      const Launch& launch = plan_.launches[home];
      const bool single = (launch.members == 1 && !launch.body) || launch.is_chain();
      const bool alone = single && plan_.members[launch.first_member + launch.members - 1] == entry;  // it stands for no other
      if (alone) return whole(home);
      if (goes_with_others && 2 * kept_[home] >= launch.nbytes()) {
        Buffer* among = whole(home).get();
        return BufferRef(part_of_buffer(among, static_cast<char*>(among->address) + at_[entry], nbytes));
      }
    }
    BufferRef made(new_buffer(nbytes));
    copies_.push_back({step_of(entry), entry, static_cast<char*>(made->address)});
    return made;
  }

  const CanonicalTrace& canonical_;
  const std::shared_ptr<const BatchPlan> held_plan_;
  const BatchPlan& plan_;
  std::vector<void*> inputs_;
  std::vector<uint64_t> numbers_;   // by input, of those that are numbers
  Interrupts* interrupts_ = nullptr;
  std::vector<char*> results_;      // by launch: one row for each call
  std::vector<PoolBlock> blocks_;   // by launch: where these lie, or
  std::vector<BufferRef> whole_;    // by launch: of those that are outputs, or parts of them are
  std::vector<int64_t> kept_;       // by launch: bytes that are let go of together
  std::vector<ProgramRef> programs_;  // by launch
  std::vector<uint8_t> together_;     // by launch: whether that is for all calls
  std::vector<Copy> copies_;          // by step
  size_t next_copy_ = 0;
  int64_t work_ = 0;  // rough nanoseconds
  bool needs_python_ = false;
  std::vector<int64_t> places_;     // BatchPlan::at, if some depend on numbers
  const int64_t* at_;
  std::vector<void*> pointers_;
};

}  // namespace

bool run_batches(const CanonicalTrace& canonical, const std::shared_ptr<const BatchPlan>& plan, void* const* inputs, size_t apart,
                 std::vector<BufferRef>& outputs, Interrupts& interrupts, std::shared_ptr<RunBehind>* behind) {
  ++batch_counts.traces;
  const auto run = std::make_shared<BatchRun>(canonical, plan, inputs);
  if (!run->prepare(apart, outputs)) return false;
  if (behind && !run->needs_python() && BatchRun::start(run, outputs)) {
    ++batch_counts.behind;
    *behind = run;
    return true;
  }
  const Unlocked unlocked(!run->needs_python() && !run->is_short());
  run->run(interrupts);
  return true;
}

}  // namespace twofold
