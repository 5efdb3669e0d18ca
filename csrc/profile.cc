#include "profile.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "executable.h"
#include "owned.h"

namespace twofold::profile {
namespace {

constexpr size_t kMostEvents = size_t{1} << 22;
constexpr size_t kMostRecords = size_t{1} << 16;

// Events in blocks that stay where they are: no event waits until those before it are copied.
class Events {
 public:
  size_t size() const { return size_; }
  void clear() { size_ = 0; }
  // Memory for events that are noted while kernels run; zeroed, so that it is there.
  void reserve() {
    if (blocks_.empty()) blocks_.push_back(std::make_unique<ProfileEvent[]>(kBlock));
  }
  void push(const ProfileEvent& event) {
    if (size_ == blocks_.size() * kBlock) blocks_.push_back(std::make_unique<ProfileEvent[]>(kBlock));
    blocks_[size_ / kBlock][size_ % kBlock] = event;
    ++size_;
  }
  const ProfileEvent& operator[](size_t k) const { return blocks_[k / kBlock][k % kBlock]; }
  void copy_to(char* bytes) const {
    for (size_t begin = 0; begin < size_; begin += kBlock) {
      const size_t count = std::min(kBlock, size_ - begin) * sizeof(ProfileEvent);
      std::memcpy(bytes + begin * sizeof(ProfileEvent), blocks_[begin / kBlock].get(), count);
    }
  }

 private:
  static constexpr size_t kBlock = size_t{1} << 15;  // a megabyte

  std::vector<std::unique_ptr<ProfileEvent[]>> blocks_;
  size_t size_ = 0;
};

// A record: an executable, the provenance of its entries, and its launches.
struct Record {
  ExecutableRef executable;
  std::shared_ptr<const BatchPlan> plan;
  std::vector<Provenance> provenance;
};

struct State {
  std::vector<Record> records{1};  // 0: unknown
  std::unordered_map<const Executable*, std::vector<uint32_t>> by_executable;
  Events events;
  uint64_t dropped = 0;
  int64_t start_ticks = 0, start_nanoseconds = 0;
};

// Accessed under the GIL only.
State& state() {
  static auto& instance = *new State();
  return instance;
}

uint64_t recordings = 0;  // the number of the current recording

// Events of this thread that are pending until it has the GIL, and their recording.
thread_local Events waiting;
thread_local uint64_t waiting_for = 0;

// Pending events from now on belong to the current recording.
void await() {
  if (waiting_for != recordings) waiting.clear();
  waiting_for = recordings;
  waiting.reserve();
}

int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint32_t record_of(Executable& executable, RunProvenance provenance, const std::shared_ptr<const BatchPlan>& plan) {
  State& all = state();
  const size_t count = executable.canonical.trace.entries.size();
  auto& known = all.by_executable[&executable];
  for (size_t k = known.size(); k-- > 0;) {
    const Record& record = all.records[known[k]];
    bool same = record.plan == plan;
    for (size_t i = 0; same && i < count; ++i) {
      const Provenance now = provenance[i];
      same = now.location == record.provenance[i].location && now.forward == record.provenance[i].forward;
    }
    if (same) return known[k];
  }
  if (all.records.size() == kMostRecords) return 0;
  Record made{executable.shared_from_this(), plan, {}};
  made.provenance.reserve(count);
  for (size_t i = 0; i < count; ++i) made.provenance.push_back(provenance[i]);
  all.records.push_back(std::move(made));
  known.push_back(static_cast<uint32_t>(all.records.size() - 1));
  return known.back();
}

void take_over() {
  State& all = state();
  const size_t room = kMostEvents - std::min(kMostEvents, all.events.size());
  const size_t taken = std::min(room, waiting.size());
  for (size_t k = 0; k < taken; ++k) all.events.push(waiting[k]);
  all.dropped += waiting.size() - taken;
  waiting.clear();
}

// (executable, [(location, forward)], [entries of each launch] or None); null with a Python error set.
PyObject* described(const Record& record) {
  if (!record.executable) return Py_NewRef(Py_None);
  const Owned capsule(executable_capsule(record.executable)), lines(PyList_New(0));
  const Owned launches(record.plan ? PyList_New(0) : Py_NewRef(Py_None));
  if (!capsule || !lines || !launches) return nullptr;
  for (const Provenance& provenance : record.provenance) {
    const Owned pair(Py_BuildValue("II", provenance.location, provenance.differentiated()));
    if (!pair || PyList_Append(lines.object, pair.object) < 0) return nullptr;
  }
  for (size_t k = 0; record.plan && k < record.plan->launches.size(); ++k) {
    const Launch& launch = record.plan->launches[k];
    const Owned members(PyList_New(0));
    const size_t each = launch.body ? launch.body->members.size() : 1;  // consecutive entries
    for (size_t m = 0; members && m < launch.members * each; ++m) {
      const Owned number(PyLong_FromSize_t(record.plan->members[launch.first_member + m / each] + m % each));
      if (!number || PyList_Append(members.object, number.object) < 0) return nullptr;
    }
    if (!members || PyList_Append(launches.object, members.object) < 0) return nullptr;
  }
  return Py_BuildValue("OOO", capsule.object, lines.object, launches.object);
}

}  // namespace

void note(const ProfileEvent& event) {
  if (waiting.size() < kMostEvents) waiting.push(event);
}

int64_t note_kernel(size_t instruction, int64_t start) {
  const int64_t now = ticks();
  note({start, now, context.run, context.entry, static_cast<uint32_t>(instruction), 0, ProfileEvent::kKernel, context.depth});
  return now;
}

void start() {
  State& all = state();
  all = State();
  ++recordings;
  await();
  all.start_ticks = ticks();
  all.start_nanoseconds = nanoseconds();
  recording.store(true);
}

PyObject* stop() {
  recording.store(false);
  await();
  take_over();
  State all = std::exchange(state(), State());
  const int64_t end_ticks = ticks(), end_nanoseconds = nanoseconds();
  const Owned records(PyList_New(0));
  for (size_t k = 0; records && k < all.records.size(); ++k) {
    const Owned one(described(all.records[k]));
    if (!one || PyList_Append(records.object, one.object) < 0) return nullptr;
  }
  if (!records) return nullptr;
  const auto size = static_cast<Py_ssize_t>(all.events.size() * sizeof(ProfileEvent));
  const Owned bytes(PyBytes_FromStringAndSize(nullptr, size));
  if (!bytes) return nullptr;
  all.events.copy_to(PyBytes_AS_STRING(bytes.object));
  return Py_BuildValue("OOK(LL)(LL)", records.object, bytes.object,
                       static_cast<unsigned long long>(all.dropped), static_cast<long long>(all.start_ticks),
                       static_cast<long long>(all.start_nanoseconds), static_cast<long long>(end_ticks),
                       static_cast<long long>(end_nanoseconds));
}

Run::Run(Executable& executable, RunProvenance provenance) : before_(context), recording_(is_on() ? recordings : 0), start_(0) {
  if (!recording_) return;
  await();
  context = {record_of(executable, provenance, nullptr), ProfileEvent::kWhole, before_.depth};
  start_ = ticks();
}

// Another recording may have begun meanwhile, with other run numbers.
Run::~Run() {
  if (!recording_) return;
  note({start_, ticks(), context.run, ProfileEvent::kWhole, 0, 0, ProfileEvent::kRun, before_.depth});
  context = before_;
  if (is_on() && recording_ == recordings) {
    take_over();
  } else {
    waiting.clear();
  }
}

void runs_apart(Executable& executable, RunProvenance provenance, const std::shared_ptr<const BatchPlan>& plan) {
  context.run = record_of(executable, provenance, plan);
}

}  // namespace twofold::profile
