#include "batch_plan.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "cache.h"
#include "pair_numbers.h"

namespace twofold {
namespace {

constexpr uint32_t kFewest = 48;             // entries of a trace that is worth looking through
constexpr int64_t kLargeOperand = 16 << 10;  // bytes from which two uses make an operand one that calls share
constexpr uint32_t kManyUses = 16;           // the same for any operand
constexpr int64_t kLargestRow = 64 << 10;    // bytes of a call from which it stands alone
constexpr size_t kShortestChain = 16;        // calls; shorter ones may rather stand beside each other
constexpr uint32_t kNone = UINT32_MAX;
constexpr uint64_t kWhole = UINT64_MAX;         // beside an op instance, no operand

}  // namespace

class BatchPlanner {
 public:
  BatchPlanner(const CanonicalTrace& canonical, void* const* leaves)
      : canonical_(canonical), trace_(canonical.trace), leaves_(leaves), plan_(std::make_shared<BatchPlan>()) {}

  bool make(RunProvenance provenance, std::shared_ptr<const BatchPlan>* out) {
    if (trace_.entries.size() < kFewest) return true;
    unite_numbers();
    if (!find_bodies(canonical_, plan_->refs, provenance, calls_of_bodies_)) return false;
    if (divide()) *out = std::move(plan_);
    return true;
  }

 private:
  // False where calls would hardly stand together.
  bool divide() {
    take_bodies();
    find_moves();
    count_uses();
    give_keys();
    melt_joins();
    find_chains();
    if (keys_.size() > calls_ / 2) return false;
    schedule();
    if (plan_->launches.size() > calls_ / 2) return false;
    find_places();
    find_operands();
    return true;
  }

  enum class Apart : uint8_t { kNo, kLarge, kHost };
  struct Key {
    uint64_t depths = 0;       // sum over its entries
    uint32_t count = 0;
    std::vector<uint32_t> ready;
    Apart apart = Apart::kNo;
  };

  bool is_number(size_t leaf) const { return trace_.leaves[leaf]->weak && trace_.leaves[leaf]->shape.empty(); }

  // Python numbers of one type and value are one operand.
  void unite_numbers() {
    std::vector<uint32_t> same(trace_.leaves.size());
    PairNumbers known(same.size());
    for (uint32_t k = 0; k < same.size(); ++k) {
      same[k] = k;
      if (!is_number(k)) continue;
      int64_t bits = 0;
      const auto nbytes = static_cast<uint32_t>(trace_.leaves[k]->nbytes);
      std::memcpy(&bits, leaves_[k], std::min<size_t>(nbytes, sizeof bits));
      if (nbytes > sizeof bits) continue;
      same[k] = known.find(trace_.leaves[k]->id, static_cast<uint64_t>(bits), k);
      if (same[k] != k) plan_->numbers_.push_back({k, same[k], nbytes});
    }
    plan_->refs = trace_.refs;
    for (Ref& ref : plan_->refs) {
      if (ref < 0) ref = ~static_cast<Ref>(same[static_cast<size_t>(~ref)]);
    }
  }

  // The first entry stands for the call of a body, with the operands of that.
  void take_bodies() {
    const size_t n = trace_.entries.size();
    body_.assign(n, nullptr);
    plan_->first_ref.resize(n);
    for (size_t i = 0; i < n; ++i) plan_->first_ref[i] = trace_.entries[i].first_ref;
    for (BodyCall& call : calls_of_bodies_) {
      plan_->first_ref[call.first] = static_cast<uint32_t>(plan_->refs.size());
      plan_->refs.insert(plan_->refs.end(), call.operands.begin(), call.operands.end());
      for (size_t k = 0; k < call.body->members.size(); ++k) body_[call.first + k] = &call;
      if (plan_->bodies_.empty() || plan_->bodies_.back() != call.body) plan_->bodies_.push_back(call.body);
    }
    std::sort(plan_->bodies_.begin(), plan_->bodies_.end());
    plan_->bodies_.erase(std::unique(plan_->bodies_.begin(), plan_->bodies_.end()), plan_->bodies_.end());
  }

  bool is_inside(uint32_t i) const { return body_[i] && body_[i]->first != i; }

  // The operands of a call.
  struct Operands {
    Ref* refs;
    uint32_t count;
  };
  Operands operands_of(uint32_t i) const {
    const auto count = body_[i] ? static_cast<uint32_t>(body_[i]->operands.size()) : trace_.entries[i].count;
    return {plan_->refs.data() + plan_->first_ref[i], count};
  }

  // Calls that only show an operand, all of it or a part, are no calls here.
  void find_moves() {
    const size_t n = trace_.entries.size();
    same_.resize(n);
    is_part_.assign(n, 0);
    for (uint32_t i = 0; i < n; ++i) {
      const Entry& entry = trace_.entries[i];
      same_[i] = static_cast<Ref>(i);
      if (is_inside(i)) continue;
      const auto [refs, count] = operands_of(i);
      for (uint32_t k = 0; k < count; ++k) {
        if (refs[k] >= 0) refs[k] = same_[static_cast<size_t>(refs[k])];
      }
      const Movement* movement = entry.signature->movement.get();
      if (!movement || movement->joins || body_[i]) continue;
      const Ref source = refs[movement->operands[0]];
      const bool is_whole = movement->number < 0 && trace_.type_of_ref(source)->nbytes == entry.signature->output->nbytes;
      if (is_whole) same_[i] = source;
      else is_part_[i] = movement->number < 0 || refs[movement->number] < 0;
    }
  }

  bool is_call(uint32_t i) const { return same_[i] == static_cast<Ref>(i) && !is_part_[i] && !plan_->merged[i] && !is_inside(i); }

  void count_uses() {
    of_entry_.assign(trace_.entries.size(), 0);
    of_leaf_.assign(trace_.leaves.size(), 0);
    for (uint32_t i = 0; i < trace_.entries.size(); ++i) {
      if (same_[i] != static_cast<Ref>(i) || is_part_[i] || is_inside(i)) continue;
      const auto [refs, count] = operands_of(i);
      for (uint32_t k = 0; k < count; ++k) {
        ++(refs[k] >= 0 ? of_entry_[static_cast<size_t>(refs[k])] : of_leaf_[static_cast<size_t>(~refs[k])]);
      }
    }
  }

  bool is_shared(Ref ref) const {
    const uint32_t uses = ref >= 0 ? of_entry_[static_cast<size_t>(ref)] : of_leaf_[static_cast<size_t>(~ref)];
    return uses >= kManyUses || (uses >= 2 && trace_.type_of_ref(ref)->nbytes >= kLargeOperand);
  }

  // What a call shares is a number for its op instance, then one for that and each shared operand in turn.
  struct Shares {
    explicit Shares(size_t expected) : numbers(expected) {}

    uint32_t find(uint64_t a, uint64_t b) {
      const uint32_t found = numbers.find(a, b, static_cast<uint32_t>(key.size()));
      if (found == key.size()) {
        key.push_back(kNone);
        call.push_back(kNone);
      }
      return found;
    }

    PairNumbers numbers;
    std::vector<uint32_t> key, call;  // by number: the key of such calls, and the first that shares all of its operands
  };

  // Calls of one key may stand together. Calls of the same op instance on the same operands are one call.
  void give_keys() {
    const size_t n = trace_.entries.size();
    key_.assign(n, 0);
    depth_.assign(n, 0);
    base_.resize(n);
    plan_->merged.assign(n, 0);
    Shares shares(n);
    for (uint32_t i = 0; i < n; ++i) {
      base_[i] = static_cast<Ref>(i);
      if (same_[i] != static_cast<Ref>(i)) {
        if (same_[i] >= 0) same_[i] = same_[static_cast<size_t>(same_[i])];
        continue;
      }
      if (is_inside(i)) {
        base_[i] = static_cast<Ref>(body_[i]->first);
        depth_[i] = depth_[body_[i]->first];
        continue;
      }
      const auto [refs, count] = operands_of(i);
      for (uint32_t k = 0; k < count; ++k) {
        if (refs[k] >= 0) refs[k] = same_[static_cast<size_t>(refs[k])];
      }
      if (is_part_[i]) {
        base_[i] = base_of(refs[trace_.entries[i].signature->movement->operands[0]]);
        if (base_[i] >= 0) depth_[i] = depth_[static_cast<size_t>(base_[i])];
      } else if (body_[i]) {
        give_body_key(i, shares);
      } else {
        give_key(i, refs, shares);
      }
    }
  }

  void give_body_key(uint32_t i, Shares& shares) {
    const Body& body = *body_[i]->body;
    const auto [refs, count] = operands_of(i);
    uint32_t share = shares.find(reinterpret_cast<uintptr_t>(&body), kWhole);
    for (uint32_t k = 0; k < count; ++k) {
      if (refs[k] >= 0) depth_[i] = std::max(depth_[i], depth_[static_cast<size_t>(refs[k])] + !is_part_[static_cast<size_t>(refs[k])]);
      if (!(body.mask() >> k & 1)) share = shares.find(share, (uint64_t{k} << 32) | static_cast<uint32_t>(refs[k]));
    }
    calls_ += body.members.size();
    if (shares.key[share] == kNone) shares.key[share] = new_key();
    key_[i] = shares.key[share];
    keys_[key_[i]].depths += depth_[i];
    ++keys_[key_[i]].count;
  }

  void give_key(uint32_t i, const Ref* refs, Shares& shares) {
    const Entry& entry = trace_.entries[i];
    int64_t varying = entry.signature->output->nbytes;
    uint32_t share = shares.find(reinterpret_cast<uintptr_t>(entry.signature.get()), kWhole);
    uint32_t shared = 0;
    for (uint32_t k = 0; k < entry.count; ++k) {
      if (refs[k] >= 0) {
        const auto below = static_cast<size_t>(refs[k]);
        depth_[i] = std::max(depth_[i], depth_[below] + !is_part_[below]);
      }
      if (is_shared(refs[k])) {
        share = shares.find(share, (uint64_t{k} << 32) | static_cast<uint32_t>(refs[k]));
        ++shared;
      } else {
        varying += trace_.type_of_ref(refs[k])->nbytes;
      }
    }
    const bool pure = is_pure(entry.signature);
    if (shared == entry.count && pure) {
      if (shares.call[share] == kNone) shares.call[share] = i;
      if (shares.call[share] != i) {
        same_[i] = static_cast<Ref>(shares.call[share]);
        of_entry_[shares.call[share]] += of_entry_[i];
        return;
      }
    }
    ++calls_;
    if (varying > kLargestRow || entry.count > 63 || !pure) {
      key_[i] = new_key();
      keys_[key_[i]].apart = pure ? Apart::kLarge : Apart::kHost;
    } else {
      if (shares.key[share] == kNone) shares.key[share] = new_key();
      key_[i] = shares.key[share];
    }
    keys_[key_[i]].depths += depth_[i];
    ++keys_[key_[i]].count;
  }

  // What a value is, or is part of.
  Ref base_of(Ref ref) const { return ref >= 0 ? base_[static_cast<size_t>(ref)] : ref; }

  // What is joined to be joined again is laid out once.
  void melt_joins() {
    const std::vector<uint8_t> stays = kept();
    for (uint32_t i = 0; i < trace_.entries.size(); ++i) {
      if (!is_call(i) || !joins(i)) continue;
      const Entry& entry = trace_.entries[i];
      const Ref* refs = plan_->refs.data() + entry.first_ref;
      for (uint32_t k = 0; k < entry.count; ++k) {
        const auto below = static_cast<uint32_t>(refs[k]);
        if (refs[k] < 0 || of_entry_[below] != 1 || stays[below] || !is_call(below) || !joins(below)) continue;
        plan_->merged[below] = 1;
        Key& key = keys_[key_[below]];
        key.depths -= depth_[below];
        --key.count;
        --calls_;
      }
    }
  }

  bool joins(uint32_t i) const {
    const Movement* movement = trace_.entries[i].signature->movement.get();
    return movement && movement->joins && !body_[i];
  }

  // By entry: whether it, or what it is part of, is asked for.
  std::vector<uint8_t> kept() const {
    std::vector<uint8_t> stays(trace_.entries.size(), 0);
    for (Ref ref : canonical_.outputs) {
      const Ref base = ref >= 0 ? base_of(same_[static_cast<size_t>(ref)]) : ref;
      if (base >= 0) stays[static_cast<size_t>(base)] = 1;
    }
    for (uint32_t i = 0; i < trace_.entries.size(); ++i) {
      if (is_part_[i] && base_[i] >= 0) stays[static_cast<size_t>(base_[i])] = 1;
    }
    return stays;
  }

  // Calls of one op instance that read each the one before, which nobody else reads, such as a sum of many terms.
  void find_chains() {
    const size_t n = trace_.entries.size();
    const std::vector<uint8_t> stays = kept();
    std::vector<uint32_t> uses(n, 0), before(n, kNone);
    for_each_edge([&](uint32_t, uint32_t from) { ++uses[from]; });
    carried_.assign(n, -1);
    last_.resize(n);
    for (uint32_t i = 0; i < n; ++i) {
      last_[i] = i;
      if (!is_call(i) || joins(i) || body_[i]) continue;
      const Entry& entry = trace_.entries[i];
      const Ref* refs = plan_->refs.data() + entry.first_ref;
      for (uint32_t k = 0; k < entry.count && before[i] == kNone; ++k) {
        const Ref ref = refs[k];
        if (ref < 0 || uses[static_cast<size_t>(ref)] != 1 || stays[static_cast<size_t>(ref)]) continue;
        const auto j = static_cast<uint32_t>(ref);
        if (trace_.entries[j].signature != entry.signature || (before[j] != kNone && carried_[j] != static_cast<int32_t>(k))) continue;
        before[i] = j;
        carried_[i] = static_cast<int32_t>(k);
      }
    }
    std::vector<uint8_t> continued(n, 0);
    for (uint32_t i = 0; i < n; ++i) {
      if (before[i] != kNone) continued[before[i]] = 1;
    }
    for (uint32_t i = 0; i < n; ++i) {
      if (before[i] != kNone && !continued[i]) make_chain(i, before);
    }
  }

  void make_chain(uint32_t last, const std::vector<uint32_t>& before) {
    std::vector<uint32_t> chain{last};
    while (before[chain.back()] != kNone) chain.push_back(before[chain.back()]);
    if (chain.size() < kShortestChain) return;
    std::reverse(chain.begin(), chain.end());
    const uint32_t key = new_key();
    uint32_t depth = 0;
    for (uint32_t i : chain) {
      Key& old = keys_[key_[i]];
      old.depths -= depth_[i];
      --old.count;
      last_[i] = last;
      for_each_operand(i, [&](uint32_t from) {
        if (last_[from] != last) depth = std::max(depth, depth_[from] + 1);
      });
    }
    keys_[key] = Key{depth, 1, {}, Apart::kNo};
    key_[last] = key;
    chains_.emplace(last, std::move(chain));
  }

  // Functions of the host may have effects of their own.
  static bool is_pure(const Signature* signature) { return !signature->program || !signature->program->has_host; }

  uint32_t new_key() {
    keys_.push_back(Key{});
    return static_cast<uint32_t>(keys_.size() - 1);
  }

  // Of the keys that have ready calls the one whose calls stand lowest on average goes first, with all that are ready: an
  // agenda, as in Neubig, Goldberg and Dyer, "On-the-fly Operation Batching in Dynamic Computation Graphs" (2017).
  void schedule() {
    const size_t n = trace_.entries.size();
    std::vector<uint32_t> pending(n, 0), first_user(n + 1, 0);
    auto inside = [&](uint32_t user, uint32_t from) { return last_[user] == last_[from] && user != from; };
    for_each_edge([&](uint32_t user, uint32_t from) { first_user[from + 1] += !inside(user, from); });
    for (size_t i = 0; i < n; ++i) first_user[i + 1] += first_user[i];
    std::vector<uint32_t> users(first_user[n]), next(first_user.begin(), first_user.end() - 1);
    for_each_edge([&](uint32_t user, uint32_t from) {
      if (inside(user, from)) return;
      users[next[from]++] = last_[user];
      ++pending[last_[user]];
    });
    plan_->members.reserve(n);
    // What decides between keys does not change while they wait here.
    std::vector<uint32_t> available;
    auto goes_later = [&](uint32_t a, uint32_t b) { return comes_before(keys_[b], keys_[a]); };
    auto make_ready = [&](uint32_t i) {
      Key& key = keys_[key_[i]];
      key.ready.push_back(i);
      if (key.ready.size() > 1) return;
      available.push_back(key_[i]);
      std::push_heap(available.begin(), available.end(), goes_later);
    };
    for (uint32_t i = 0; i < n; ++i) {
      if (is_call(i) && last_[i] == i && pending[i] == 0) make_ready(i);
    }
    plan_->home.assign(n, 0);
    plan_->at.assign(n, 0);
    while (!available.empty()) {
      std::pop_heap(available.begin(), available.end(), goes_later);
      Key& key = keys_[available.back()];
      available.pop_back();
      std::vector<uint32_t> ready = std::move(key.ready);
      key.ready.clear();
      const auto chain = chains_.find(ready[0]);
      if (chain != chains_.end()) add_chain(chain->second);
      else add_launch(ready);
      if (ready.size() == 1 && chain == chains_.end()) count_alone(key);
      for (uint32_t i : ready) {
        for (uint32_t k = first_user[i]; k < first_user[i + 1]; ++k) {
          if (--pending[users[k]] == 0) make_ready(users[k]);
        }
      }
    }
  }

  // Where the values lie that are no calls.
  void find_places() {
    moves_.assign(trace_.entries.size(), 0);
    for (uint32_t i = 0; i < trace_.entries.size(); ++i) {
      if (is_part_[i]) {
        find_part(i);
      } else if (same_[i] < 0) {
        plan_->home[i] = same_[i];
      } else if (same_[i] != static_cast<Ref>(i)) {
        const auto same = static_cast<size_t>(same_[i]);
        plan_->home[i] = plan_->home[same];
        plan_->at[i] = plan_->at[same];
        moves_[i] = moves_[same];
        if (moves_[i]) plan_->moving.push_back({i, same_[i], 0, 0, -1});
      }
    }
  }

  void find_part(uint32_t i) {
    const Entry& entry = trace_.entries[i];
    const Movement& movement = *entry.signature->movement;
    const Ref* refs = plan_->refs.data() + entry.first_ref;
    const Ref source = refs[movement.operands[0]];
    plan_->home[i] = source >= 0 ? plan_->home[static_cast<size_t>(source)] : source;
    plan_->at[i] = (source >= 0 ? plan_->at[static_cast<size_t>(source)] : 0) + movement.offset;
    moves_[i] = movement.number >= 0 || (source >= 0 && moves_[static_cast<size_t>(source)]);
    const int32_t number = movement.number >= 0 ? ~refs[movement.number] : -1;
    if (moves_[i]) plan_->moving.push_back({i, source, movement.offset, movement.step, number});
  }

  void count_alone(const Key& key) {
    CallsAlone& alone = plan_->alone;
    if (key.apart == Apart::kLarge) ++alone.large;
    else if (key.apart == Apart::kHost) ++alone.host;
    else if (key.count == 1) ++alone.only;
    else ++alone.waiting;
  }

  static bool comes_before(const Key& a, const Key& b) {
    const uint64_t left = a.depths * b.count, right = b.depths * a.count;
    return left != right ? left < right : a.ready.front() < b.ready.front();
  }

  template <class Visit>
  void for_each_edge(Visit visit) const {
    for (uint32_t i = 0; i < trace_.entries.size(); ++i) {
      if (is_call(i)) for_each_operand(i, [&](uint32_t from) { visit(i, from); });
    }
  }

  template <class Visit>
  void for_each_operand(uint32_t i, Visit visit) const {
    const auto [refs, count] = operands_of(i);
    for (uint32_t k = 0; k < count; ++k) {
      const Ref base = base_of(refs[k]);
      if (base < 0) continue;
      if (plan_->merged[static_cast<size_t>(base)]) for_each_operand(static_cast<uint32_t>(base), visit);
      else visit(static_cast<uint32_t>(base));
    }
  }

  void add_launch(const std::vector<uint32_t>& ready) {
    const auto number = static_cast<int32_t>(plan_->launches.size());
    const auto first = static_cast<uint32_t>(plan_->members.size());
    const Body* body = body_[ready[0]] ? body_[ready[0]]->body.get() : nullptr;
    plan_->launches.push_back(
        Launch{trace_.entries[ready[0]].signature, body, first, static_cast<uint32_t>(ready.size()), 0, body ? body->mask() : 0});
    Launch& launch = plan_->launches.back();
    launch.joins = joins(ready[0]);
    for (uint32_t row = 0; row < ready.size(); ++row) {
      const uint32_t i = ready[row];
      plan_->members.push_back(i);
      plan_->home[i] = number;
      plan_->at[i] = row * trace_.entries[i].signature->output->nbytes;
      for (size_t k = 0; body && k < body->outputs.size(); ++k) {
        const uint32_t result = i + body->outputs[k];
        plan_->home[result] = number;
        plan_->at[result] = launch.rows() * body->at[k] + row * trace_.entries[result].signature->output->nbytes;
      }
    }
  }

  void add_chain(const std::vector<uint32_t>& chain) {
    add_launch(chain);
    plan_->launches.back().carried = carried_[chain.back()];
    for (uint32_t i : chain) plan_->at[i] = 0;
  }

  void find_operands() {
    for (Launch& launch : plan_->launches) {
      launch.first_operand = static_cast<uint32_t>(plan_->operands.size());
      const uint32_t count = operands_of(plan_->members[launch.first_member]).count;
      for (uint32_t k = 0; k < count; ++k) {
        LaunchOperand found = operand_of(launch, k);
        if (launch.body && launch.mask >> k & 1 && (found.kind == LaunchOperand::kShared || launch.rows() != launch.members)) {
          found.kind = LaunchOperand::kEach;
        }
        if (!launch.body && found.kind != LaunchOperand::kShared) launch.mask |= Entry::mask_bit(k);
        plan_->operands.push_back(found);
      }
    }
    find_last_uses();
  }

  void find_last_uses() {
    const auto count = static_cast<uint32_t>(plan_->launches.size());
    std::vector<uint32_t> last(count);
    for (uint32_t k = 0; k < count; ++k) last[k] = k;
    for_each_edge([&](uint32_t user, uint32_t from) {
      uint32_t& found = last[static_cast<size_t>(plan_->home[from])];
      found = std::max(found, static_cast<uint32_t>(plan_->home[user]));
    });
    for (Ref ref : canonical_.outputs) {
      const int32_t home = ref >= 0 ? plan_->home[static_cast<size_t>(ref)] : -1;
      if (home >= 0) last[static_cast<size_t>(home)] = count;
    }
    plan_->first_dead.assign(count + 1, 0);
    for (uint32_t k : last) {
      if (k < count) ++plan_->first_dead[k + 1];
    }
    for (uint32_t k = 0; k < count; ++k) plan_->first_dead[k + 1] += plan_->first_dead[k];
    plan_->dead.resize(plan_->first_dead[count]);
    std::vector<uint32_t> next(plan_->first_dead.begin(), plan_->first_dead.end() - 1);
    for (uint32_t k = 0; k < count; ++k) {
      if (last[k] < count) plan_->dead[next[last[k]]++] = k;
    }
  }

  LaunchOperand operand_of(const Launch& launch, uint32_t position) const {
    auto ref_of = [&](uint32_t row) {
      return plan_->refs[plan_->first_ref[plan_->members[launch.first_member + row]] + position];
    };
    const Ref first = ref_of(0);
    auto lies_still = [&](Ref ref) { return ref >= 0 && plan_->home[static_cast<size_t>(ref)] >= 0 && !moves_[static_cast<size_t>(ref)]; };
    const int64_t nbytes = launch.input(position)->nbytes;
    bool shared = true, rows = lies_still(first);
    for (uint32_t row = 1; row < launch.members && (shared || rows); ++row) {
      const Ref ref = ref_of(row);
      shared = shared && ref == first;
      rows = rows && lies_still(ref) && plan_->home[static_cast<size_t>(ref)] == plan_->home[static_cast<size_t>(first)] &&
             plan_->at[static_cast<size_t>(ref)] == plan_->at[static_cast<size_t>(first)] + row * nbytes;
    }
    return {shared ? LaunchOperand::kShared : rows ? LaunchOperand::kRows : LaunchOperand::kEach, first};
  }

  const CanonicalTrace& canonical_;
  const Trace& trace_;
  void* const* leaves_;
  std::shared_ptr<BatchPlan> plan_;
  std::vector<uint32_t> of_entry_, of_leaf_;  // uses
  std::vector<uint32_t> key_, depth_;         // by entry
  std::vector<Ref> same_, base_;              // by entry: what stands for it, equal in all bytes; what it is part of, or itself
  std::vector<uint8_t> is_part_, moves_;      // by entry; moves_: its place depends on a number
  std::vector<BodyCall> calls_of_bodies_;
  std::vector<const BodyCall*> body_;         // by entry: of what it is a member, or null
  size_t calls_ = 0;                          // that are to run
  std::vector<uint32_t> last_;                // by entry: the last of its chain, or itself
  std::vector<int32_t> carried_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> chains_;  // by last entry
  std::vector<Key> keys_;
};

bool BatchPlan::make(const CanonicalTrace& canonical, void* const* leaves, RunProvenance provenance,
                     std::shared_ptr<const BatchPlan>* out) {
  return BatchPlanner(canonical, leaves).make(provenance, out);
}

bool BatchPlan::holds(void* const* leaves) const {
  return std::all_of(numbers_.begin(), numbers_.end(), [leaves](const Number& number) {
    return std::memcmp(leaves[number.leaf], leaves[number.same_as], number.nbytes) == 0;
  });
}

size_t BatchPlan::memory() const {
  return sizeof *this + memory_of(launches) + memory_of(members) + memory_of(operands) + memory_of(refs) + memory_of(first_ref) + memory_of(home) +
         memory_of(at) + memory_of(moving) + memory_of(merged) + memory_of(dead) + memory_of(first_dead) + memory_of(numbers_);
}

}  // namespace twofold
