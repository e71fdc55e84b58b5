// Programs without a runtime, from the contents of bundles: memory, C names, and what is refused.
#include "bundle/build_static_program.h"

#include <gtest/gtest.h>

#include "bundle/c_identifiers.h"
#include "bundle/model_header.h"

namespace quernel::bundle {
namespace {

// One kernel from input "x.1" to output "x/1" by way of 100 bytes of workspace.
BundleContents small_contents() {
  BundleContents c;
  c.producer = "quernel test";
  c.regions.push_back({"workspace", 0});
  c.constants.push_back({64, {}});
  auto arena = [&](const char* name, ArenaKind kind, uint64_t bytes) {
    Arena a;
    a.name = name, a.kind = kind, a.bytes = bytes;
    if (kind == ArenaKind::kConstants) a.constants = 0;
    c.arenas.push_back(a);
  };
  arena("constants", ArenaKind::kConstants, 64);
  arena("workspace", ArenaKind::kWorkspace, 100);
  arena("in", ArenaKind::kInput, 16);
  arena("out", ArenaKind::kOutput, 16);
  Variant variant;
  variant.target = "x86-64-v3";
  variant.kernels.push_back({"map_0", 10, 200});
  c.variants.push_back(variant);
  EntryPoint entry;
  entry.name = "main";
  entry.inputs.push_back({"x.1", DType::kF32, {2, 2}, {}, 16, 2, 0});
  entry.outputs.push_back({"x/1", DType::kI8, {16}, {}, 16, 3, 0});
  Item item;
  item.workgroups = 3;
  item.bindings = {{3, Access::kWrite, 0, 16}, {2, Access::kRead, 4, 12}, {1, Access::kWrite, 64, 36}};
  entry.plans.push_back({0, {item}, ""});
  c.entry_points.push_back(entry);
  return c;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(StaticProgram, memory_is_the_workspace_and_behind_it_the_scratch) {
  Expected<codegen::StaticProgram> p = build_static_program(small_contents(), "my net", {"k"});
  ASSERT_TRUE(p) << to_string(p.errors());
  ASSERT_EQ(p->regions.size(), 1u);
  EXPECT_EQ(p->regions[0].bytes, 128u + 64u);
  EXPECT_EQ(p->scratch.offset, 128u);
  ASSERT_EQ(p->entries.size(), 1u);
  const codegen::Step& step = p->entries[0].steps[0];
  EXPECT_EQ(step.workgroups.value, 3);
  ASSERT_EQ(step.bindings.size(), 3u);
  EXPECT_EQ(step.bindings[0].space, codegen::Space::kOutput);
  EXPECT_EQ(step.bindings[1].space, codegen::Space::kInput);
  EXPECT_EQ(step.bindings[1].offset, 4u);
  EXPECT_EQ(step.bindings[2].space, codegen::Space::kWorkspace);
  EXPECT_EQ(step.bindings[2].offset, 64u);
}

TEST(StaticProgram, states_lie_one_behind_the_other) {
  BundleContents c = small_contents();
  for (const char* name : {"a", "b"}) {
    Arena arena;
    arena.name = name, arena.kind = ArenaKind::kState, arena.bytes = 20;
    c.states.push_back({name, DType::kF32, {5}, {}, 20, static_cast<uint32_t>(c.arenas.size()), 0});
    c.arenas.push_back(arena);
  }
  Expected<codegen::StaticProgram> p = build_static_program(c, "net", {"k"});
  ASSERT_TRUE(p) << to_string(p.errors());
  EXPECT_EQ(p->states[1].offset, 64u);
  EXPECT_EQ(p->state_bytes, 128u);
}

TEST(StaticProgram, several_entry_points_share_one_workspace) {
  BundleContents c = small_contents();
  Arena larger = c.arenas[1];
  larger.bytes = 1000;
  c.entry_points.push_back(c.entry_points[0]);
  c.entry_points[1].name = "Main";
  c.entry_points[1].plans[0].items[0].bindings[2].arena = static_cast<uint32_t>(c.arenas.size());
  c.arenas.push_back(larger);
  Expected<codegen::StaticProgram> p = build_static_program(c, "net", {"k"});
  ASSERT_TRUE(p) << to_string(p.errors());
  EXPECT_EQ(p->regions[0].bytes, 1024u + 64u);
  EXPECT_EQ(p->entries[0].identifier, "net_main");
  EXPECT_EQ(p->entries[1].identifier, "net_Main_2");
}

TEST(StaticProgram, free_dims_are_refused_by_name) {
  BundleContents c = small_contents();
  c.symbols.push_back({"batch", 1, 64});
  c.symbols.push_back({"length", 1, 8});
  Expected<codegen::StaticProgram> p = build_static_program(c, "net", {"k"});
  ASSERT_FALSE(p);
  ASSERT_EQ(p.errors().size(), 2u);
  EXPECT_TRUE(contains(p.errors()[0].message, "expected dims of fixed size, found the free dim 'batch'"));
  EXPECT_TRUE(contains(p.errors()[1].hint, "--dim length=N"));
}

TEST(StaticProgram, custom_ops_need_a_kernel) {
  BundleContents c = small_contents();
  c.entry_points[0].plans[0].items[0].kind = ItemKind::kHostCallback;
  c.entry_points[0].plans[0].items[0].callback = "compand";
  Expected<codegen::StaticProgram> p = build_static_program(c, "net", {"k"});
  ASSERT_FALSE(p);
  EXPECT_TRUE(contains(p.errors()[0].message,
                       "custom op 'compand': expected one with a precompiled kernel for the target"));
}

TEST(CIdentifiers, names_of_models_become_identifiers_of_their_own) {
  EXPECT_EQ(c_identifier("conv.1"), "conv_1");
  EXPECT_EQ(c_identifier("3d"), "m3d");
  EXPECT_EQ(c_identifier("_x"), "m_x");
  EXPECT_EQ(c_identifier("int"), "int_");
  EXPECT_EQ(c_identifier("::"), "unnamed");
  Identifiers scope;
  EXPECT_EQ(scope.add("x.1"), "x_1");
  EXPECT_EQ(scope.add("x/1"), "x_1_2");
  EXPECT_EQ(scope.add("X_1"), "X_1_3");
}

TEST(ModelHeader, tells_sizes_shapes_and_functions) {
  Expected<codegen::StaticProgram> p = build_static_program(small_contents(), "my */ net", {"k"});
  ASSERT_TRUE(p) << to_string(p.errors());
  std::string text = model_header(*p, "net.a", CodeFacts{1000, 100, 300});
  for (const char* part :
       {"#define MY____NET_CONSTANTS_BYTES 64\n", "#define MY____NET_CODE_BYTES 1000\n",
        "#define MY____NET_WORKSPACE_BYTES 192\n", "#define MY____NET_STACK_BYTES 300\n",
        "#define MY____NET_INPUT_X_1_SHAPE {2, 2}\n", "  const float* x_1;", "  int8_t* x_1;",
        "int32_t my____net_run(const my____net_memory* memory, const my____net_inputs* inputs,"})
    EXPECT_TRUE(contains(text, part)) << part << "\nin\n" << text;
  EXPECT_TRUE(contains(text, "/* my * / net for x86-64-v3"));
}

// Of C, somebody else's compiler decides.
TEST(ModelHeader, says_what_is_estimated_and_what_not_known) {
  Expected<codegen::StaticProgram> p = build_static_program(small_contents(), "net", {"k"});
  ASSERT_TRUE(p) << to_string(p.errors());
  std::string text = model_header(*p, "net.c", CodeFacts{1000, 100, 300, true});
  for (const char* part : {"#define NET_CODE_ESTIMATE_BYTES 1000\n", "#define NET_STACK_ESTIMATE_BYTES 300\n",
                           "what quernel's machine code for x86-64-v3 has (--emit static)"})
    EXPECT_TRUE(contains(text, part)) << part << "\nin\n" << text;
  for (const std::string& none : {text, model_header(*p, "net.c", std::nullopt)})
    EXPECT_FALSE(contains(none, "STACK_BYTES") || contains(none, "CODE_BYTES")) << none;
  EXPECT_TRUE(contains(model_header(*p, "net.c", std::nullopt), "There is no estimate for x86-64-v3."));
}

TEST(ModelHeader, names_the_nodes_of_kernels_the_file_and_its_multiply_adds) {
  BundleContents c = small_contents();
  c.entry_points[0].model_sha256 = "0123";
  c.entry_points[0].multiply_adds = 5000000000;
  c.entry_points[0].plans[0].items[0].source_nodes = {"conv", "*/ relu"};
  c.entry_points[0].plans[0].items.push_back(c.entry_points[0].plans[0].items[0]);
  Expected<codegen::StaticProgram> p = build_static_program(c, "net", {"net_kernel_0"});
  ASSERT_TRUE(p) << to_string(p.errors());
  std::string text = model_header(*p, "net.a", CodeFacts{1000, 100, 300});
  for (const char* part : {"#define NET_MODEL_SHA256 \"0123\"\n", "#define NET_MULTIPLY_ADDS 5000000000\n",
                           " * net_kernel_0\n *   conv .. relu\n */\n"})
    EXPECT_TRUE(contains(text, part)) << part << "\nin\n" << text;
}

}  // namespace
}  // namespace quernel::bundle
