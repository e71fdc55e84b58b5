// Properties of every schedule, on random graphs: stored values have homes, live buffers do not overlap, and
// every pair of conflicting accesses is ordered by dependencies.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "graph/text.h"
#include "pipeline/run_passes.h"
#include "random_graph/random_graph.h"
#include "schedule/target_passes/target_passes.h"
#include "schedule/verify_schedule.h"

namespace quernel::schedule {
namespace {

Expected<Schedule> random_schedule(uint64_t seed, const std::vector<MemoryOption>& memories = {}) {
  Target target = *find_target("x86-64-v4");
  QUERNEL_TRY(Graph graph, materialize_operands(random_graph(seed, {}), target));
  Packings packings;
  CompileOptions options;
  options.memory = memories;
  options.verify_each = true;
  return make_schedule(std::move(graph), target, packings, options);
}

const std::vector<std::vector<MemoryOption>> kMemories = {{}, {{"fast", 512}, {"slow", 0}}};

struct Range {
  int arena;
  int64_t from, to;
  bool write;
};
std::vector<Range> ranges(const Schedule& s, const Item& item) {
  std::vector<Range> result;
  for (const Binding& b : item.bindings) {
    const Buffer& buffer = s.buffers[b.buffer];
    if (buffer.kind == BufferKind::kConstant) continue;
    bool workspace = buffer.kind == BufferKind::kWorkspace;
    int64_t base = ((workspace ? buffer.offset : Dim(0)) + b.offset).value();
    result.push_back({workspace ? -1 - buffer.region : b.buffer, base, base + b.bytes.value(), b.write});
  }
  return result;
}

TEST(Plan, workspace_buffers_alive_together_do_not_overlap) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Expected<Schedule> s = random_schedule(seed, kMemories[seed % 2]);
    ASSERT_TRUE(s) << to_string(s.errors());
    for (size_t a = 0; a < s->buffers.size(); ++a)
      for (size_t b = a + 1; b < s->buffers.size(); ++b) {
        const Buffer &x = s->buffers[a], &y = s->buffers[b];
        if (x.kind != BufferKind::kWorkspace || y.kind != BufferKind::kWorkspace || x.first_item < 0 ||
            y.first_item < 0)
          continue;
        bool together = x.first_item <= y.last_item && y.first_item <= x.last_item;
        bool in_place = (y.shares == static_cast<int>(a) && x.last_item == y.first_item) ||
                        (x.shares == static_cast<int>(b) && y.last_item == x.first_item);
        if (in_place) {
          EXPECT_EQ(x.region, y.region);
        }
        if (!together || in_place || x.region != y.region) continue;
        EXPECT_TRUE(always_le(x.offset + x.bytes, y.offset) || always_le(y.offset + y.bytes, x.offset))
            << "seed " << seed << ": " << x.name << ", " << y.name;
      }
    for (const Buffer& x : s->buffers)
      if (x.kind == BufferKind::kWorkspace && x.first_item >= 0) {
        EXPECT_EQ(floormod(x.offset, 64), Dim(0));
        const Region& region = s->regions[x.region];
        EXPECT_TRUE(always_le(x.offset + x.bytes, region.bytes));
        EXPECT_TRUE(region.capacity == 0 || always_le(region.bytes, region.capacity));
      }
  }
}

// A small memory takes what is used often, not what is large.
TEST(Plan, hot_buffers_lie_in_the_first_memory) {
  size_t in_both = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Expected<Schedule> s = random_schedule(seed, kMemories[1]);
    ASSERT_TRUE(s) << to_string(s.errors());
    in_both += !(s->regions[0].bytes == Dim(0)) && !(s->regions[1].bytes == Dim(0));
    // Nothing is kept out of the first memory that would have room to itself.
    bool small = false;
    for (const Buffer& b : s->buffers)
      small |= b.kind == BufferKind::kWorkspace && b.first_item >= 0 && b.region == 1 && b.shares < 0 &&
               always_le(b.bytes, 512);
    EXPECT_FALSE(small && s->regions[0].bytes == Dim(0)) << "seed " << seed;
  }
  EXPECT_GT(in_both, 20u);
}

// war_hazard_reused_slot of the traps: write-after-read and alias edges exist, not only read-after-write.
TEST(Plan, conflicting_accesses_are_ordered) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Expected<Schedule> s = random_schedule(seed, kMemories[seed % 2]);
    ASSERT_TRUE(s) << to_string(s.errors());
    size_t n = s->items.size();
    std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
    for (size_t i = 0; i < n; ++i)
      for (const Dependency& d : s->items[i].dependencies) {
        ASSERT_LT(d.item, static_cast<int>(i));
        before[i][d.item] = true;
        for (size_t k = 0; k < i; ++k)
          if (before[d.item][k]) before[i][k] = true;
      }
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < i; ++j)
        for (const Range& a : ranges(*s, s->items[i]))
          for (const Range& b : ranges(*s, s->items[j]))
            if (a.arena == b.arena && (a.write || b.write) && a.from < b.to && b.from < a.to) {
              EXPECT_TRUE(before[i][j]) << "seed " << seed << ": item " << i << " must come after " << j;
            }
  }
}

TEST(Plan, every_read_is_of_something_written) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Expected<Schedule> s = random_schedule(seed);
    ASSERT_TRUE(s) << to_string(s.errors());
    std::vector<char> written(s->graph.values.size(), 0);
    for (ValueId v : s->graph.inputs) written[v] = 1;
    for (const Item& item : s->items) {
      for (const Binding& b : item.bindings) {
        if (b.write || b.value == kNoValue || s->graph.constant(b.value) || b.bytes == Dim(0)) continue;
        const Node* node = s->graph.def(b.value);
        EXPECT_TRUE(written[b.value] || (node && node->op == OpKind::k_cat))
            << "seed " << seed << ": " << s->graph.values[b.value].name;
      }
      for (const Binding& b : item.bindings)
        if (b.write && b.value != kNoValue) written[b.value] = 1;
    }
  }
}

// What a step may spoil is found behind it.
TEST(Verify, refuses_schedules_that_break_a_rule) {
  auto refusal = [](const std::function<void(Schedule&)>& spoil) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      Expected<Schedule> s = random_schedule(seed);
      if (!s || s->groups.size() < 2 || s->items.size() < 2 || s->groups.back().reads.empty()) continue;
      EXPECT_TRUE(verify(*s, "plan-memory")) << "seed " << seed;
      spoil(*s);
      Status status = verify(*s, "plan-memory");
      return status ? std::string() : to_string(status.errors());
    }
    return std::string("no schedule to spoil");
  };
  auto expect = [&](const std::string& says, const std::function<void(Schedule&)>& spoil) {
    std::string found = refusal(spoil);
    EXPECT_NE(found.find(says), std::string::npos) << "expected '" << says << "', found '" << found << "'";
    EXPECT_NE(found.find("[plan-memory]"), std::string::npos) << found;
  };
  expect("expected each node in one group",
         [](Schedule& s) { s.groups[0].nodes.push_back(s.groups[1].nodes[0]); });
  expect("to be stored before it is read", [](Schedule& s) { s.groups[0].reads = s.groups.back().outputs; });
  expect("expected one group to store",
         [](Schedule& s) { s.groups[1].outputs.push_back(s.groups[0].outputs[0]); });
  expect("of the group that stores", [](Schedule& s) {
    s.groups[0].outputs[0] = s.groups.back().outputs[0];
    s.groups.resize(1);
  });
  expect("expected a place for", [](Schedule& s) { s.storage[s.groups[0].outputs[0]] = {}; });
  expect("expected a place or none for each of", [](Schedule& s) { s.storage.pop_back(); });
  expect("to depend on earlier ones", [](Schedule& s) { s.items[0].dependencies.push_back({1, {}}); });
}

TEST(Verify, refuses_plans_that_do_not_fit_their_kernel) {
  auto refusal = [](const std::function<void(Group&)>& spoil) {
    Expected<Graph> graph =
        parse_graph("graph @g(%x: f32[6,20]) {\n  %1 = exp %x : f32[6,20]\n  return y = %1\n}\n", "graph");
    EXPECT_TRUE(graph);
    Packings packings;
    Expected<Schedule> s = make_schedule(*std::move(graph), *find_target("x86-64-v4"), packings);
    EXPECT_TRUE(s && verify(*s, "plan-kernels") && s->groups.size() == 1);
    spoil(s->groups[0]);
    Status status = verify(*s, "plan-kernels");
    return status ? std::string() : to_string(status.errors());
  };
  auto expect = [&](const std::string& says, const std::function<void(Group&)>& spoil) {
    std::string found = refusal(spoil);
    EXPECT_NE(found.find(says), std::string::npos) << "expected '" << says << "', found '" << found << "'";
  };
  EXPECT_EQ(refusal([](Group&) {}), "");
  expect("expected 1 plans for the kernel of '1', found 0", [](Group& group) { group.maps.clear(); });
  expect("expected the vector axis of the kernel of '1' among its 1 axes, found 3",
         [](Group& group) { group.maps[0].loops.vector_axis = 3; });
  expect("expected indices of the kernel of '1' over 1 axes, found d2",
         [](Group& group) { group.maps[0].loops.indices[0][1] = IndexExpr::axis(2); });
}

}  // namespace
}  // namespace quernel::schedule
