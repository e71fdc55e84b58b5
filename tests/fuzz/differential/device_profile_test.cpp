// Compiled with the profile of a GPU that has local memory: tiles that share rows, on whatever Vulkan device
// the machine has, under the validation layers, against the interpreter; and the text of plans and shaders.
#include <algorithm>
#include <cstdio>
#include <map>

#include "on_vulkan.h"
#include "pipeline/pipeline.h"
#include "shader_text.h"

namespace quernel::testing {
namespace {

// A GPU that few invocations keep busy takes the largest tiles, one that wants many takes small ones.
const char* const kProfiles[] = {
    "local_memory 1\nregisters 64\nparallel_invocations 64\n",
    "local_memory 1\nregisters 255\nparallel_invocations 256\nworkgroup_memory 32768\n",
    "local_memory 1\nregisters 128\nparallel_invocations 4096\nload_multiply_adds 16\n",
};

using SymbolValues = std::map<std::string, int64_t>;

struct Case {
  const char *name, *text;
  bool shares = true;
  std::vector<SymbolValues> sizes = {{}};
};

const Case kCases[] = {
    {"rows, columns and steps are left",
     "graph @g(%x: f32[61,37], %w: f32[37,130]) {\n"
     "  %y = contract %x, %w axes(m: 61, n: 130 | k: 37) a[m, k] b[k, n] out[m, n] acc f32 : f32[61,130]\n"
     "  return y = %y\n}\n"},
    {"packed, with an epilogue",
     "graph @g(%x: f32[40,48], %r: f32[40,64]) {\n"
     "  %w = constant f32[48,64] {#3072}\n"
     "  %y = contract %x, %w axes(m: 40, n: 64 | k: 48) a[m, k] b[k, n] out[m, n] acc f32 : f32[40,64]\n"
     "  %s = add %y, %r : f32[40,64]\n"
     "  %t = neg %s : f32[40,64]\n"
     "  return t = %t\n}\n"},
    {"batched",
     "graph @g(%x: f32[3,18,24], %z: f32[3,24,37]) {\n"
     "  %y = contract %x, %z axes(b: 3, m: 18, n: 37 | k: 24) a[b, m, k] b[b, k, n] out[b, m, n] acc f32 : "
     "f32[3,18,37]\n"
     "  return y = %y\n}\n"},
    {"a lies along its rows",
     "graph @g(%x: f32[33,29], %z: f32[33,70]) {\n"
     "  %y = contract %x, %z axes(m: 29, n: 70 | k: 33) a[k, m] b[k, n] out[m, n] acc f32 : f32[29,70]\n"
     "  return y = %y\n}\n"},
    {"window",
     "graph @g(%x: f32[2,9,8,20]) {\n"
     "  %w = constant f32[24,20,3,3] {#4320}\n"
     "  %y = contract %x, %w axes(n: 2, o: 24, y: 4, x: 3 | ky: 3, kx: 3, c: 20) a[n, 2*y + ky, 2*x + kx, c] "
     "b[o, c, ky, kx] out[n, y, x, o] acc f32 : f32[2,4,3,24]\n"
     "  return y = %y\n}\n"},
    {"bytes",
     "graph @g(%x: i8[29,24], %w: i8[24,53]) {\n"
     "  %y = contract %x, %w axes(m: 29, n: 53 | k: 24) a[m, k] b[k, n] out[m, n] acc i32 : i32[29,53]\n"
     "  return y = %y\n}\n"},
    {"doubles",
     "graph @g(%x: f64[29,24], %w: f64[24,53]) {\n"
     "  %y = contract %x, %w axes(m: 29, n: 53 | k: 24) a[m, k] b[k, n] out[m, n] acc f64 : f64[29,53]\n"
     "  return y = %y\n}\n"},
    {"sizes that a run tells",
     "symbol n min=1\nsymbol m min=1\ngraph @g(%x: f32[n,m], %w: f32[m,70]) {\n"
     "  %y = contract %x, %w axes(i: n, j: 70 | k: m) a[i, k] b[k, j] out[i, j] acc f32 : f32[n,70]\n"
     "  return y = %y\n}\n",
     true,
     {{{"n", 1}, {"m", 2}}, {{"n", 7}, {"m", 16}}, {{"n", 40}, {"m", 33}}, {{"n", 33}, {"m", 15}}}},
    {"too few steps",
     "graph @g(%x: f32[61,5], %w: f32[5,130]) {\n"
     "  %y = contract %x, %w axes(m: 61, n: 130 | k: 5) a[m, k] b[k, n] out[m, n] acc f32 : f32[61,130]\n"
     "  return y = %y\n}\n",
     false},
};

// The case's graph, with as many values in the place of "#360".
Expected<Graph> graph_of(std::string text) {
  if (size_t at = text.find('#'); at != std::string::npos) {
    size_t end = text.find('}', at);
    int count = std::stoi(text.substr(at + 1, end - at - 1));
    std::string values;
    for (int i = 0; i < count; ++i) values += (i > 0 ? ", " : "") + std::to_string(i * 7 % 13 - 6);
    text.replace(at, end - at, values);
  }
  return parse_graph(text, "test");
}

CompileOptions options_with(const Folder& folder, const char* profile) {
  CompileOptions options;
  options.targets = {"vulkan"};
  if (profile) options.device_profile = folder.write("profile", profile);
  options.dump_dir = folder.path();
  return options;
}

std::string compiled_text(const char* graph_text, const char* profile) {
  Folder folder;
  Expected<Graph> graph = graph_of(graph_text);
  if (!graph) return to_string(graph.errors());
  Expected<CompileReport> report =
      compile_graphs({*graph}, folder.path() + "/m.qnl", options_with(folder, profile));
  EXPECT_TRUE(report) << to_string(report.errors());
  return dumped(folder);
}

TEST(DeviceProfile, rows_are_shared_only_where_memory_is_local) {
  for (const Case& c : kCases) {
    for (const char* profile : kProfiles)
      EXPECT_EQ(count(compiled_text(c.text, profile), " shared 16 "), c.shares ? 1u : 0u) << c.name;
    EXPECT_EQ(count(compiled_text(c.text, nullptr), " shared "), 0u) << c.name;
    EXPECT_EQ(count(compiled_text(c.text, "registers 128\nparallel_invocations 64\n"), "shared "), 0u)
        << c.name;
  }
}

// The next block is fetched while one is summed, and what was read before is overwritten behind the barrier that the next
// block waits for.
TEST(DeviceProfile, a_block_of_steps_has_one_barrier) {
  const char* product =
      "graph @g(%x: f32[61,100], %w: f32[100,130]) {\n"
      "  %y = contract %x, %w axes(m: 61, n: 130 | k: 100) a[m, k] b[k, n] out[m, n] acc f32 : f32[61,130]\n"
      "  return y = %y\n}\n";
  const std::string text = compiled_text(product, kProfiles[0]);
  EXPECT_EQ(count(text, "barrier();"), 3u) << text;  // of seven blocks: two in a loop, and the last one
  const size_t loop = text.find("for (int pair");
  ASSERT_NE(loop, std::string::npos) << text;
  const size_t fetch = text.find("fetched", loop), first = text.find("barrier();", loop),
               steps = text.find("for (int k", loop), put = text.find("shared_rows_6[", steps),
               second = text.find("barrier();", first + 1), others = text.find("for (int k", steps + 1);
  EXPECT_LT(fetch, first) << text;
  EXPECT_LT(first, steps);
  EXPECT_LT(steps, put);
  EXPECT_LT(put, second);
  EXPECT_LT(second, others);
  EXPECT_NE(text.find("= shared_rows_5[", steps), std::string::npos) << text;
  EXPECT_NE(text.find("= shared_rows_6[", others), std::string::npos) << text;
}

// With more registers, memory of the workgroup bounds the tile.
TEST(DeviceProfile, tiles_fit_the_memory_of_a_workgroup) {
  const char* text =
      "graph @g(%x: f32[512,64], %w: f32[64,512]) {\n"
      "  %y = contract %x, %w axes(m: 512, n: 512 | k: 64) a[m, k] b[k, n] out[m, n] acc f32 : f32[512,512]\n"
      "  return y = %y\n}\n";
  auto tile = [&](const std::string& memory) {
    std::string all =
        compiled_text(text, ("local_memory 1\nregisters 255\nparallel_invocations 64\n" + memory).c_str());
    int rows = 0, columns = 0;
    EXPECT_EQ(
        std::sscanf(all.c_str() + std::min(all.find(" tile "), all.size()), " tile %dx%d", &rows, &columns),
        2);
    return 4 * rows * columns;
  };
  EXPECT_GT(tile(""), 4 << 10);
  EXPECT_LE(tile(""), 16 << 10);
  EXPECT_GT(tile("workgroup_memory 65536\n"), 16 << 10);
}

// An epilogue that is worth a loop over rows takes the tile from there, beside the rows that are shared.
TEST(DeviceProfile, tiles_with_long_epilogues_fit_too) {
  const char* text =
      "graph @g(%x: f32[512,64], %w: f32[64,512]) {\n"
      "  %y = contract %x, %w axes(m: 512, n: 512 | k: 64) a[m, k] b[k, n] out[m, n] acc f32 : f32[512,512]\n"
      "  %a = exp %y : f32[512,512]\n"
      "  %b = tanh %a : f32[512,512]\n"
      "  %c = sin %b : f32[512,512]\n"
      "  return c = %c\n}\n";
  for (const char* profile :
       {"registers 255\n", "registers 255\nlocal_memory 1\nparallel_invocations 64\n"}) {
    std::string all = compiled_text(text, profile);
    EXPECT_NE(all.find("shared float tile"), std::string::npos) << all;  // a refused kernel has no shader
  }
}

qnl_vulkan_options validated(std::string* messages) {
  qnl_vulkan_options vulkan = {};
  vulkan.validation = 2;
  vulkan.message_user = messages;
  vulkan.message = [](void* user, const char* text) { *static_cast<std::string*>(user) += text; };
  return vulkan;
}

TEST(DeviceProfile, shared_rows_give_the_same_results) {
  std::string why, messages;
  if (!has_device(&why)) GTEST_SKIP() << why;
  for (const Case& c : kCases)
    for (const char* profile : kProfiles) {
      Folder folder;
      Expected<Graph> graph = graph_of(c.text);
      ASSERT_TRUE(graph) << to_string(graph.errors());
      qnl_vulkan_options vulkan = validated(&messages);
      Expected<CompiledGraph> compiled =
          CompiledGraph::make(*graph, options_with(folder, profile), 1, {}, &vulkan);
      ASSERT_TRUE(compiled) << c.name << to_string(compiled.errors());
      for (const SymbolValues& sizes : c.sizes) {
        std::vector<Tensor> inputs = random_inputs_at(*graph, sizes, 1);
        Expected<std::vector<Tensor>> want = interpret(*graph, inputs, sizes), got = compiled->run(inputs);
        ASSERT_TRUE(want && got) << c.name;
        EXPECT_EQ(differences(*graph, *got, *want), "") << c.name << "\n" << profile;
      }
    }
  EXPECT_EQ(messages, "") << "of the validation layers";
}

TEST(DeviceProfile, random_graphs) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  Folder folder;
  CompileOptions options = options_with(folder, kProfiles[0]);
  options.dump_dir.clear();
  for_each_seed(40, [&](uint64_t seed) { check(seed, random_graph(seed, {}), options, {}); });
}

}  // namespace
}  // namespace quernel::testing
