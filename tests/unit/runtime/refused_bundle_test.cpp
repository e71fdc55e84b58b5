// Bundles whose hashes are right and whose contents are not: for each rule of the reader one change of a
// valid bundle, and the text that says what is wrong.
#include <gtest/gtest.h>

#include <cstring>

#include "quernel/runtime.hpp"
#include "schemas/bundle_tables.h"
#include "test_bundle.h"

namespace quernel::test {
namespace {

std::vector<std::byte> valid_bytes() { return bundle_bytes(test_contents()); }

schema::Bundle* structure_of(std::vector<std::byte>& bytes) {
  return const_cast<schema::Bundle*>(schema::GetBundle(bytes.data() + 64));
}

std::string open(const std::vector<std::byte>& bytes) {
  AlignedBytes aligned(bytes);
  Bundle bundle;
  qnl_error error = {};
  qnl_status status = bundle.open(aligned.data(), aligned.size(), nullptr, &error);
  EXPECT_EQ(status, QNL_INVALID_BUNDLE) << error.text;
  return error.text;
}

// What is said of a bundle after `change` of its structure.
template <class Change>
std::string changed(Change change, std::vector<std::byte> bytes = valid_bytes()) {
  change(structure_of(bytes));
  rehash(bytes);
  return open(bytes);
}

// The writer stores every scalar, so that each can be overwritten in place.
template <class T, class Table>
void set(const Table* table, flatbuffers::voffset_t field, T value) {
  auto* fields = reinterpret_cast<flatbuffers::Table*>(const_cast<Table*>(table));
  std::memcpy(fields->GetAddressOf(field), &value, sizeof value);
}
template <class T>
void poke(const void* at, T value) {
  std::memcpy(const_cast<void*>(at), &value, sizeof value);
}
// A vector begins with its length.
template <class Vector>
void resize(const Vector* vector, uint32_t size) {
  poke(vector, size);
}
// Moves the reference in `field` by `bytes`, so that it points beside what it should.
template <class Table>
void shift(const Table* table, flatbuffers::voffset_t field, uint32_t bytes) {
  auto* at = reinterpret_cast<flatbuffers::Table*>(const_cast<Table*>(table))->GetAddressOf(field);
  uint32_t offset;
  std::memcpy(&offset, at, sizeof offset);
  poke(at, offset + bytes);
}

const schema::Plan* plan(const schema::Bundle* b, uint32_t entry) {
  return b->entry_points()->Get(entry)->plans()->Get(0);
}
const schema::Item* item(const schema::Bundle* b, uint32_t entry, uint32_t index) {
  return plan(b, entry)->items()->Get(index);
}
const char* binding(const schema::Bundle* b, uint32_t entry, uint32_t index, uint32_t which) {
  return reinterpret_cast<const char*>(item(b, entry, index)->bindings()->Get(which));
}
const schema::Tensor* input(const schema::Bundle* b, uint32_t entry, uint32_t index) {
  return b->entry_points()->Get(entry)->inputs()->Get(index);
}

TEST(RefusedBundle, arenas) {
  auto arena = [](uint32_t index, flatbuffers::voffset_t field, auto value) {
    return changed([&](schema::Bundle* b) { set(b->arenas()->Get(index), field, value); });
  };
  using A = schema::Arena;
  EXPECT_EQ(arena(1, A::VT_KIND, uint8_t{9}), "arena 1: unknown kind");
  EXPECT_EQ(arena(1, A::VT_ALIGNMENT, 48u),
            "arena 1: expected an alignment that is a power of two up to 4096, found 48");
  EXPECT_EQ(arena(1, A::VT_BYTES_EXPRESSION, 0), "arena 1: wrong expression of its size");
  EXPECT_EQ(arena(1, A::VT_BYTES, uint64_t{1} << 60),
            "arena 1: size 1152921504606846976 is beyond what any device has");
  EXPECT_EQ(arena(0, A::VT_SEGMENT, 0), "arena 0: wrong segment") << "that of the code";
  EXPECT_EQ(arena(0, A::VT_SEGMENT, -1), "arena 0: wrong segment");
  EXPECT_EQ(arena(0, A::VT_BYTES, uint64_t{9999}), "arena 0: expected 9999 bytes, its segment has 10000");
  bundle::BundleContents many = test_contents();
  many.arenas.resize(65537, {"", bundle::ArenaKind::kWorkspace, 0});
  EXPECT_EQ(open(bundle_bytes(many)), "bundle: more than 65536 arenas");
}

TEST(RefusedBundle, tensors) {
  auto tensor = [](flatbuffers::voffset_t field, auto value) {
    return changed([&](schema::Bundle* b) { set(input(b, 0, 0), field, value); });
  };
  using T = schema::Tensor;
  EXPECT_EQ(tensor(T::VT_DTYPE, uint8_t{99}), "input 'a': unknown dtype");
  EXPECT_EQ(tensor(T::VT_BYTES, uint64_t{1}), "input 'a': expected 16384 bytes for its shape, found 1");
  EXPECT_EQ(tensor(T::VT_ARENA, 1000u), "input 'a': no such arena");
  EXPECT_EQ(tensor(T::VT_ARENA, 1u), "input 'a': expected a slot of its kind and size");
  EXPECT_EQ(tensor(T::VT_OFFSET, uint64_t{4}), "input 'a': expected a slot of its kind and size");
  EXPECT_EQ(changed([](schema::Bundle* b) { set(input(b, 0, 1), T::VT_ARENA, 2u); }),
            "input 'b': shares its slot");
  EXPECT_EQ(changed([](schema::Bundle* b) { poke(input(b, 0, 1)->name()->Data(), 'a'); }),
            "input 'a': the name is used twice");
  EXPECT_EQ(changed([](schema::Bundle* b) { poke(input(b, 0, 0)->shape()->Data(), int64_t{-1}); }),
            "input 'a': dim 0 is negative or too large");
  EXPECT_EQ(changed([](schema::Bundle* b) { shift(input(b, 2, 0), T::VT_SHAPE, 4); }),
            "input 'in': its shape is misaligned");
  bundle::BundleContents rank = test_contents();
  rank.entry_points[0].inputs[0].shape = {64, 64, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(open(bundle_bytes(rank)), "input 'a': expected rank up to 8, found 9");
  std::vector<std::byte> symbolic = bundle_bytes(symbolic_contents());
  EXPECT_EQ(
      changed([](schema::Bundle* b) { poke(input(b, 0, 0)->shape_expressions()->Data(), 1000); }, symbolic),
      "input 'a': dim 0 has a wrong expression");
  EXPECT_EQ(changed([](schema::Bundle* b) { resize(input(b, 0, 0)->shape_expressions(), 1); }, symbolic),
            "input 'a': expected no expressions of dims or one for each");
}

TEST(RefusedBundle, states) {
  using T = schema::Tensor;
  EXPECT_EQ(changed([](schema::Bundle* b) { set(b->states()->Get(0), T::VT_OFFSET, uint64_t{4}); }),
            "state 'acc': does not lie in a state arena");
  EXPECT_EQ(changed([](schema::Bundle* b) { set(b->states()->Get(0), T::VT_ARENA, 1u); }),
            "state 'acc': does not lie in a state arena");
  EXPECT_EQ(changed([](schema::Bundle* b) { poke(b->entry_points()->Get(1)->states()->Data(), 7u); }),
            "entry point 'accumulate': no such state");
  bundle::BundleContents symbolic = test_contents();
  symbolic.symbols.push_back({"n", 16, 16});
  symbolic.expressions.push_back({{1, 0}});
  symbolic.states[0].shape_expressions = {0};
  EXPECT_EQ(open(bundle_bytes(symbolic)), "state 'acc': has a symbolic shape");
  bundle::BundleContents many = test_contents();
  many.states.resize(65537, many.states[0]);
  EXPECT_EQ(open(bundle_bytes(many)), "bundle: more than 65536 states");
}

TEST(RefusedBundle, variants) {
  using V = schema::Variant;
  EXPECT_EQ(changed([](schema::Bundle* b) { resize(b->variants(), 0); }),
            "bundle: expected at least one variant");
  EXPECT_EQ(changed([](schema::Bundle* b) { set(b->variants()->Get(0), V::VT_CODE_SEGMENT, 1u); }),
            "variant 'host': wrong code segment");
  EXPECT_EQ(changed([](schema::Bundle* b) { set(b->variants()->Get(0), V::VT_CODE_FORMAT, uint8_t{7}); }),
            "variant 'host': unknown code format");
  EXPECT_EQ(changed([](schema::Bundle* b) {
              set(b->variants()->Get(0)->kernels()->Get(4), schema::Kernel::VT_SCRATCH_BYTES,
                  uint64_t{1} << 40);
            }),
            "kernel 'count': scratch is too large");
  bundle::BundleContents many = test_contents();
  many.variants.resize(257, many.variants[0]);
  many.entry_points.resize(1);
  many.test_vectors.clear();
  many.entry_points[0].plans.clear();
  for (uint32_t v = 0; v < 257; ++v) many.entry_points[0].plans.push_back({v, {}, ""});
  EXPECT_EQ(open(bundle_bytes(many)), "bundle: more than 256 variants");
}

// A small file may not describe more than its size by naming one table many times.
TEST(RefusedBundle, shared_tables) {
  bundle::BundleContents contents = test_contents();
  contents.variants.resize(60, contents.variants[0]);
  contents.variants[0].kernels.resize(10000, {"kernel"});
  contents.entry_points.resize(1);
  contents.test_vectors.clear();
  contents.entry_points[0].plans.clear();
  for (uint32_t v = 0; v < 60; ++v) contents.entry_points[0].plans.push_back({v, {}, ""});
  EXPECT_EQ(
      changed(
          [](schema::Bundle* b) {
            const auto* shared = reinterpret_cast<const char*>(b->variants()->Get(0)->kernels());
            for (uint32_t v = 1; v < 60; ++v) {
              const auto* variant = reinterpret_cast<const flatbuffers::Table*>(b->variants()->Get(v));
              const auto* at = variant->GetAddressOf(schema::Variant::VT_KERNELS);
              poke(at, static_cast<uint32_t>(shared - reinterpret_cast<const char*>(at)));
            }
          },
          bundle_bytes(contents)),
      "bundle: structure is not a well-formed FlatBuffer of this schema, or shares parts of it more often "
      "than this reader accepts");
}

TEST(RefusedBundle, entry_points) {
  EXPECT_EQ(changed([](schema::Bundle* b) { resize(b->entry_points(), 0); }),
            "bundle: expected at least one entry point");
  EXPECT_EQ(changed([](schema::Bundle* b) { resize(b->entry_points()->Get(0)->plans(), 2); }),
            "entry point 'main': expected one plan per variant");
  EXPECT_EQ(changed([](schema::Bundle* b) {
              // the fifth entry point is described by the first's table
              const auto* vector = b->entry_points();
              const char* first = reinterpret_cast<const char*>(vector->Get(0));
              const char* at = reinterpret_cast<const char*>(vector->Data()) + 16;
              poke(at, static_cast<uint32_t>(first - at));
            }),
            "entry point 'main': the name is used twice");
  bundle::BundleContents many = test_contents();
  bundle::EntryPoint empty{"", {}, {}, {}, {{0, {}, ""}, {1, {}, ""}, {2, {}, ""}}};
  for (int i = 0; i < 4096; ++i) {
    empty.name = std::to_string(i);
    many.entry_points.push_back(empty);
  }
  EXPECT_EQ(open(bundle_bytes(many)), "bundle: more than 4096 entry points");
}

TEST(RefusedBundle, symbols_without_their_feature) {
  bundle::BundleContents contents = test_contents();
  contents.symbols.push_back({"batch", 1, 8, 1});
  std::vector<std::byte> bytes = bundle_bytes(contents);
  uint64_t none = 0;
  std::memcpy(bytes.data() + 16, &none, sizeof none);
  rehash(bytes);
  EXPECT_EQ(open(bytes), "bundle: has symbols, but its header does not ask for the feature 'symbols'");
}

TEST(RefusedBundle, symbols) {
  std::vector<std::byte> symbolic = bundle_bytes(symbolic_contents());
  auto symbol = [&](flatbuffers::voffset_t field, auto value) {
    return changed([&](schema::Bundle* b) { set(b->symbols()->Get(0), field, value); }, symbolic);
  };
  using S = schema::Symbol;
  EXPECT_EQ(symbol(S::VT_MIN, int64_t{9}), "symbol 'batch': wrong kind or range");
  EXPECT_EQ(symbol(S::VT_MIN, int64_t{-1}), "symbol 'batch': wrong kind or range");
  EXPECT_EQ(symbol(S::VT_MULTIPLE_OF, int64_t{0}), "symbol 'batch': wrong kind or range");
  EXPECT_EQ(symbol(S::VT_KIND, uint8_t{2}), "symbol 'batch': wrong kind or range");
  EXPECT_EQ(symbol(S::VT_MAX_EXPRESSION, 0), "symbol 'batch': wrong expression of its maximum");
  auto of_item = [&](int32_t value) {
    return changed([&](schema::Bundle* b) { poke(item(b, 0, 2)->symbols()->Data(), value); }, symbolic);
  };
  EXPECT_EQ(of_item(-1), "item 2: wrong expression of a symbol");
  EXPECT_EQ(of_item(1000), "item 2: wrong expression of a symbol");
  EXPECT_EQ(changed([](schema::Bundle* b) { resize(item(b, 0, 0)->binding_expressions(), 1); }, symbolic),
            "item 0: expected expressions for each binding or none");
}

TEST(RefusedBundle, control_flow) {
  std::vector<std::byte> symbolic = bundle_bytes(symbolic_contents());
  auto first_body = [&](uint32_t entry, flatbuffers::voffset_t field, auto value) {
    return changed([&](schema::Bundle* b) { set(item(b, entry, 1), field, value); }, symbolic);
  };
  using I = schema::Item;
  EXPECT_EQ(first_body(2, I::VT_COUNT_EXPRESSION, -1), "item 1: wrong condition or count");
  EXPECT_EQ(first_body(2, I::VT_COUNT_EXPRESSION, 1000), "item 1: wrong expression of its size");
  EXPECT_EQ(first_body(4, I::VT_CONDITION_EXPRESSION, -1), "item 1: wrong condition or count");
  EXPECT_EQ(first_body(2, I::VT_END, 3u),
            "item 2: its body is not nested in the one around it, or more than 32 deep");
}

TEST(RefusedBundle, custom_ops) {
  auto with = [](auto change) {
    bundle::BundleContents contents = custom_contents();
    change(contents.entry_points[0].plans[0].items[0]);
    return open(bundle_bytes(contents));
  };
  using I = bundle::Item;
  EXPECT_EQ(with([](I& i) { i.bindings.pop_back(); }), "item 0: too few bindings");
  EXPECT_EQ(with([](I& i) { i.bindings[1].access = bundle::Access::kReadWrite; }),
            "item 0: expected to read operands and write results");
  EXPECT_EQ(with([](I& i) { i.symbols.pop_back(); }),
            "item 0: expected a signature of its bindings and symbols, found f32[?,?]->f32[?],i32[]");
  for (const char* wrong : {"f32[?,?]->f32[?]", "f32[?,?],f32[?],i32[]", "f32[?,?]->f33[?],i32[]",
                            "f32[?,?]->f32[?],i32", "f32[?,?]->f32[?],i32[],", "f32[?,?]->f32[?],i32[]x",
                            "f32[4,?]->f32[?],i32[]", "f32[?,?]->f32[?,?,?,?,?,?,?,?,?],i32[]"})
    EXPECT_NE(with([&](I& i) { i.signature = wrong; }), "") << wrong;
  // Without its feature, and of an item that may not have one.
  std::vector<std::byte> bytes = bundle_bytes(custom_contents());
  uint64_t symbols = static_cast<uint64_t>(schema::Feature::symbols);
  std::memcpy(bytes.data() + 16, &symbols, sizeof symbols);
  rehash(bytes);
  EXPECT_EQ(open(bytes), "item 0: needs the feature 'custom_ops', which the header does not ask for");
  EXPECT_EQ(changed([](schema::Bundle* b) { set(item(b, 0, 0), schema::Item::VT_KIND, uint8_t{2}); },
                    bundle_bytes(custom_contents())),
            "item 0: too many symbols");
}

TEST(RefusedBundle, plans) {
  using P = schema::Plan;
  EXPECT_EQ(changed([](schema::Bundle* b) { set(plan(b, 0), P::VT_VARIANT, 2u); }),
            "plan 0: is for variant 2");
  EXPECT_EQ(changed([](schema::Bundle* b) { poke(plan(b, 0)->workspaces()->Data(), 2u); }),
            "plan 0: expected ascending workspace arenas")
      << "an input's";
  EXPECT_EQ(changed([](schema::Bundle* b) { resize(plan(b, 0)->workspaces(), 0); }),
            "item 0: binding: arena 1 is not one of the plan's workspaces");
  bundle::BundleContents many = test_contents();
  for (int i = 0; i < 300; ++i) {
    uint32_t arena = static_cast<uint32_t>(many.arenas.size());
    many.arenas.push_back({"", bundle::ArenaKind::kWorkspace, 64});
    many.entry_points[0].plans[0].items[0].bindings.push_back({arena, bundle::Access::kRead, 0, 64});
  }
  std::string text = open(bundle_bytes(many));
  EXPECT_NE(text.find("plan 0: more than "), std::string::npos) << text;
  EXPECT_NE(text.find(" workspaces"), std::string::npos) << text;
}

TEST(RefusedBundle, items) {
  auto first = [](flatbuffers::voffset_t field, auto value) {
    return changed([&](schema::Bundle* b) { set(item(b, 0, 0), field, value); });
  };
  using I = schema::Item;
  EXPECT_EQ(first(I::VT_KIND, uint8_t{9}), "item 0: unknown kind");
  EXPECT_EQ(first(I::VT_KERNEL, 99u), "item 0: no kernel 99");
  EXPECT_EQ(first(I::VT_WORKGROUPS, uint64_t{1} << 60), "item 0: too many workgroups");
  EXPECT_EQ(first(I::VT_WORKGROUPS_EXPRESSION, 0), "item 0: wrong expression of its size");
  EXPECT_EQ(changed([](schema::Bundle* b) { shift(item(b, 0, 0), I::VT_BINDINGS, 4); }),
            "item 0: its bindings are misaligned");
  EXPECT_EQ(changed([](schema::Bundle* b) { poke(item(b, 0, 1)->edges()->Get(0), 1u); }),
            "item 1: expected edges to earlier items, found one to 1");
  EXPECT_EQ(changed([](schema::Bundle* b) { resize(item(b, 2, 0)->copy_loops(), 5); }),
            "item 0: more than 4 copy loops");
  EXPECT_EQ(changed([](schema::Bundle* b) { set(item(b, 0, 0), I::VT_KIND, uint8_t{3}); }),
            "item 0: callback without a name");
}

TEST(RefusedBundle, companions) {
  bundle::BundleContents contents = test_contents();
  contents.companions = {contents.variants[0]};
  contents.variants[0].companion = 0;
  std::vector<std::byte> bytes = bundle_bytes(contents);
  using I = schema::Item;
  std::string variant = "variant '" + contents.variants[0].target + "': ";
  EXPECT_EQ(
      changed([](schema::Bundle* b) { set(b->variants()->Get(0), schema::Variant::VT_COMPANION, 5); }, bytes),
      variant + "no companion 5");
  EXPECT_EQ(changed([](schema::Bundle* b) { set(b->companions()->Get(0), schema::Variant::VT_COMPANION, 0); },
                    bytes),
            variant + "no companion 0");
  EXPECT_EQ(changed([](schema::Bundle* b) { set(item(b, 0, 0), I::VT_ON_COMPANION, uint8_t{1}); }),
            "item 0: runs on a companion, its variant has none");
  EXPECT_EQ(changed([](schema::Bundle* b) { set(item(b, 0, 0), I::VT_ON_COMPANION, uint8_t{1}); }, bytes),
            "item 0: runs on a companion that does not reach its bindings");
  EXPECT_EQ(changed([](schema::Bundle* b) { set(item(b, 1, 1), I::VT_ON_COMPANION, uint8_t{1}); }, bytes),
            "item 1: runs on a companion, but is no dispatch");
  contents.companions.resize(257, contents.companions[0]);
  EXPECT_EQ(open(bundle_bytes(contents)), "bundle: more than 256 companions");
  constexpr size_t kFeatures = 16;  // in the header
  uint64_t none = 0;
  std::memcpy(bytes.data() + kFeatures, &none, sizeof none);
  rehash(bytes);
  EXPECT_EQ(open(bytes), "bundle: has companions, but not the feature");
}

// Also those that mean nothing for an item's kind: what only tools read is verified, too.
TEST(RefusedBundle, expressions_of_every_item) {
  using I = schema::Item;
  for (auto field : {I::VT_WORKGROUPS_EXPRESSION, I::VT_COPY_BYTES_EXPRESSION, I::VT_COUNT_EXPRESSION,
                     I::VT_CONDITION_EXPRESSION, I::VT_FLOPS_EXPRESSION, I::VT_BYTES_READ_EXPRESSION,
                     I::VT_BYTES_WRITTEN_EXPRESSION})
    for (auto [entry, index] :
         {std::pair(0u, 0u), {0u, 1u}, {1u, 0u}, {1u, 1u}, {2u, 0u}, {2u, 1u}, {2u, 2u}})
      for (int32_t wrong : {1000, 1 << 30, -2}) {
        std::string text = changed([&](schema::Bundle* b) { set(item(b, entry, index), field, wrong); });
        EXPECT_NE(text.find("wrong "), std::string::npos) << field << ", item " << index << ": " << text;
      }
}

TEST(RefusedBundle, bindings) {
  auto bound = [](uint32_t index, uint32_t which, int offset, auto value) {
    return changed([&](schema::Bundle* b) { poke(binding(b, 0, index, which) + offset, value); });
  };
  EXPECT_EQ(bound(0, 0, 0, 1000u), "item 0: binding: no such arena");
  EXPECT_EQ(bound(0, 0, 4, uint8_t{3}), "item 0: binding: unknown access");
  EXPECT_EQ(bound(0, 0, 8, uint64_t{4}), "item 0: binding: bytes 4 to 4+16384 lie outside arena 2 of 16384");
  EXPECT_EQ(bound(1, 1, 4, uint8_t{1}), "item 1: binding: writes to constants");
  EXPECT_EQ(bound(0, 0, 4, uint8_t{2}), "item 0: binding: writes to an input");
  EXPECT_EQ(changed([](schema::Bundle* b) { poke(binding(b, 1, 0, 0), 11u); }),
            "item 0: binding: slot of another entry point");
  EXPECT_EQ(changed([](schema::Bundle* b) { poke(binding(b, 1, 1, 1), 12u); }),
            "item 1: binding: slot of another entry point");
}

TEST(RefusedBundle, copies) {
  EXPECT_EQ(changed([](schema::Bundle* b) { resize(item(b, 1, 1)->bindings(), 1); }),
            "item 1: copy: expected two bindings");
  EXPECT_EQ(changed([](schema::Bundle* b) { poke(binding(b, 1, 1, 1) + 4, uint8_t{0}); }),
            "item 1: copy: expected to read its first binding and write its second");
  EXPECT_EQ(changed([](schema::Bundle* b) { set(item(b, 1, 1), schema::Item::VT_COPY_BYTES, uint64_t{0}); }),
            "item 1: copy: reaches outside its bindings, is empty, or writes more bytes than its target has");
  EXPECT_EQ(changed([](schema::Bundle* b) { set(item(b, 1, 1), schema::Item::VT_COPY_BYTES, uint64_t{65}); }),
            "item 1: copy: reaches outside its bindings, is empty, or writes more bytes than its target has");
  EXPECT_EQ(changed([](schema::Bundle* b) { poke(item(b, 2, 0)->copy_loops()->Get(1), uint64_t{0}); }),
            "item 0: copy: is empty");
  EXPECT_EQ(changed([](schema::Bundle* b) {  // 1000 times onto the same place
              const auto* loop = item(b, 2, 0)->copy_loops()->Get(0);
              poke(loop, uint64_t{1000});
              poke(reinterpret_cast<const char*>(loop) + 8, uint64_t{0});
              poke(reinterpret_cast<const char*>(loop) + 16, uint64_t{0});
            }),
            "item 0: copy: reaches outside its bindings, is empty, or writes more bytes than its target has");
}

TEST(RefusedBundle, test_vectors) {
  using V = schema::TestVector;
  EXPECT_EQ(changed([](schema::Bundle* b) { set(b->test_vectors()->Get(0), V::VT_ENTRY_POINT, 9u); }),
            "test vector 0: no such entry point");
  EXPECT_EQ(changed([](schema::Bundle* b) { poke(b->test_vectors()->Get(0)->tensors()->Get(0), 7u); }),
            "test vector 0: value 0 does not fit the signature");
  EXPECT_EQ(changed([](schema::Bundle* b) {
              // Moved by half a word, its length is the index of the first tensor.
              poke(b->test_vectors()->Get(0)->tensors()->Get(0), 1u);
              shift(b->test_vectors()->Get(0), V::VT_TENSORS, 4);
            }),
            "test vector 0: its values are misaligned");
  EXPECT_EQ(changed([](schema::Bundle* b) { resize(b->test_vectors()->Get(0)->tolerances(), 1); }),
            "test vector 0: expected a tolerance for each value");
  EXPECT_EQ(changed([](schema::Bundle* b) {
              resize(b->test_vectors()->Get(0)->tensors(), 1);
              resize(b->test_vectors()->Get(0)->tolerances(), 1);
            }),
            "test vector 0: has too many dims");
  EXPECT_EQ(changed([](schema::Bundle* b) { poke(b->test_vectors()->Get(0)->dims()->Data(), int64_t{17}); }),
            "test vector 0: value 0 does not fit the signature");
}

TEST(RefusedBundle, files_and_segments) {
  std::vector<std::byte> bytes = valid_bytes();
  auto segment = [&](uint32_t index, int field, uint64_t value) {
    return changed([&](schema::Bundle* b) {
      poke(reinterpret_cast<const char*>(b->segments()->Get(index)) + 8 * field, value);
    });
  };
  EXPECT_EQ(segment(1, 0, 4097),
            "segment 1: expected a page-aligned range inside the file, after the one before");
  EXPECT_EQ(segment(2, 1, 1), "bundle: expected the last segment to end the file");
  std::vector<std::byte> longer = bytes;
  longer.resize(bytes.size() + 1);
  std::string sizes =
      "expected " + std::to_string(bytes.size()) + " bytes, found " + std::to_string(longer.size());
  EXPECT_EQ(open(longer), "bundle: " + sizes + "; something was appended");
  uint64_t far = uint64_t{1} << 60;
  std::memcpy(bytes.data() + 24, &far, sizeof far);
  rehash(bytes);
  EXPECT_EQ(open(bytes), "bundle: structure lies outside the file");
  EXPECT_EQ(
      changed([](schema::Bundle* b) { resize(b->entry_points(), 1u << 30); }),
      "bundle: structure is not a well-formed FlatBuffer of this schema, or shares parts of it more often "
      "than this reader accepts");
  EXPECT_EQ(changed([](schema::Bundle* b) {
              // The word before the list, taken as its length, must be made one.
              const auto* list = reinterpret_cast<const char*>(b->segments());
              poke(list + 4, 1u);
              shift(b, schema::Bundle::VT_SEGMENTS, 4);
            }),
            "bundle: its list of segments is misaligned");
}

}  // namespace
}  // namespace quernel::test
