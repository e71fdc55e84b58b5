// Bundles in which strings, vectors and tables are referred to many times, as FlatBuffers allows, and bundles
// as wide as the format allows: the work of opening one is linear in its bytes.
#include <gtest/gtest.h>
#include <time.h>

#include <cstring>
#include <functional>

#include "bundle/bundle_structure.h"
#include "bundle/read_bundle.h"
#include "bundle/strip_variants.h"
#include "core/bundle_reader_shape.h"
#include "quernel/runtime.hpp"
#include "schemas/bundle_hash.h"
#include "schemas/bundle_tables.h"
#include "test_bundle.h"

namespace quernel::test {
namespace {

using flatbuffers::Offset;
template <class T>
using Vec = Offset<flatbuffers::Vector<T>>;
template <class T>
using Tables = std::vector<Offset<T>>;
using Text = Offset<flatbuffers::String>;

// The parts of a bundle, each made by the test; what is missing is the least that a bundle has.
struct Crafted {
  flatbuffers::FlatBufferBuilder b;
  Tables<schema::Symbol> symbols;
  Tables<schema::SizeExpression> expressions;
  Tables<schema::Arena> arenas;
  Tables<schema::Variant> variants;
  Tables<schema::EntryPoint> entries;
  Tables<schema::TestVector> tests;

  Text text(const std::string& s) { return b.CreateString(s); }
  template <class T>
  Vec<Offset<T>> all(const Tables<T>& tables) {
    return b.CreateVector(tables);
  }
  Offset<schema::Tensor> slot(Text name, schema::ArenaKind kind, uint32_t arena) {
    while (arenas.size() <= arena) arenas.push_back(schema::CreateArena(b, 0, kind));
    auto shape = b.CreateVector(std::vector<int64_t>{0});
    return schema::CreateTensor(b, name, schema::DType::f32, shape, 0, 0, arena);
  }
  Offset<schema::Plan> plan(const Tables<schema::Item>& items, uint32_t variant = 0) {
    return schema::CreatePlan(b, variant, all(items));
  }
  void entry(const std::string& name, const Tables<schema::Tensor>& inputs = {},
             const Tables<schema::Item>& items = {}) {
    auto plans = all<schema::Plan>({plan(items)});
    auto in = all(inputs);
    entries.push_back(schema::CreateEntryPoint(b, text(name), in, 0, 0, plans));
  }
};

constexpr uint64_t kPage = 4096;

// The file: header, structure, a page of code, and a page of test values.
std::vector<std::byte> file_of(const std::function<void(Crafted&)>& make) {
  std::vector<std::byte> file;
  for (uint64_t code = kPage; file.empty() || code != 0;) {
    Crafted c;
    make(c);
    if (c.variants.empty())
      c.variants.push_back(
          schema::CreateVariant(c.b, c.text("host"), 0, 0, schema::CodeFormat::elf_image, 0,
                                c.all<schema::Kernel>({schema::CreateKernel(c.b, c.text("kernel"))})));
    if (c.entries.empty()) c.entry("main");
    std::vector<std::byte> zeros(kPage);
    uint64_t hash = qnl_hash(zeros.data(), zeros.size());
    std::vector<schema::Segment> segments = {{code, kPage, hash, schema::SegmentKind::code},
                                             {code + kPage, kPage, hash, schema::SegmentKind::test_values}};
    auto segment_vector = c.b.CreateVectorOfStructs(segments);
    auto symbols = c.all(c.symbols);
    auto expressions = c.all(c.expressions);
    auto arenas = c.all(c.arenas);
    auto variants = c.all(c.variants);
    auto entries = c.all(c.entries);
    auto tests = c.all(c.tests);
    schema::FinishBundleBuffer(c.b, schema::CreateBundle(c.b, 0, segment_vector, symbols, expressions, arenas,
                                                         0, variants, entries, tests));
    uint64_t bytes = c.b.GetSize(), place = (64 + bytes + kPage - 1) / kPage * kPage;
    if (place != code) {  // once more, with the right place
      code = place;
      continue;
    }
    file.assign(place + 2 * kPage, std::byte{0});
    std::memcpy(file.data() + 64, c.b.GetBufferPointer(), bytes);
    schema::FileHeader header(0x314C4E51, 0x01020304, 1, 0, 15, 64, bytes, 0, file.size(), 0);
    std::memcpy(file.data(), &header, sizeof header);
    rehash(file);
    code = 0;
  }
  return file;
}

double thread_seconds() {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Opened {
  qnl_status status;
  std::string text;
  double seconds;
};

Opened open(const std::vector<std::byte>& file) {
  AlignedBytes aligned(file);
  Bundle bundle;
  qnl_error error = {};
  double begin = thread_seconds();
  qnl_status status = bundle.open(aligned.data(), aligned.size(), nullptr, &error);
  return {status, error.text, thread_seconds() - begin};
}

// What was quadratic took 10 and more.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kMostSecondsPerMegabyte = 3;
#else
constexpr double kMostSecondsPerMegabyte = 0.5;
#endif

double allowed_seconds(const std::vector<std::byte>& file) {
  return kMostSecondsPerMegabyte * (0.1 + static_cast<double>(file.size()) / 1e6);
}

void expect_refused(const char* what, const std::function<void(Crafted&)>& make) {
  std::vector<std::byte> file = file_of(make);
  Opened opened = open(file);
  EXPECT_EQ(opened.status, QNL_INVALID_BUNDLE) << what;
  EXPECT_NE(opened.text.find("shares parts of it more often"), std::string::npos) << what << opened.text;
  EXPECT_LT(opened.seconds, allowed_seconds(file)) << what << ", " << file.size() << " bytes";
}

// And stripped as quickly.
void expect_opened(const char* what, const std::function<void(Crafted&)>& make) {
  std::vector<std::byte> file = file_of(make);
  Opened opened = open(file);
  EXPECT_EQ(opened.status, QNL_OK) << what << ": " << opened.text;
  EXPECT_LT(opened.seconds, allowed_seconds(file)) << what << ", " << file.size() << " bytes";
  AlignedBytes aligned(file);
  double begin = thread_seconds();
  bundle::BundleContents contents = bundle::strip_variants(
      bundle::read_bundle({static_cast<const std::byte*>(aligned.data()), aligned.size()}), {0});
  bundle::SegmentPlan plan = bundle::plan_segments(contents);
  EXPECT_LT(bundle::build_structure(contents, plan).size(), 2 * file.size()) << what;
  EXPECT_LT(thread_seconds() - begin, 4 * allowed_seconds(file)) << what << ", " << file.size() << " bytes";
}

std::vector<int64_t> long_code() {
  std::vector<int64_t> code = {1, 0};
  while (code.size() < 2 * 1023) code.insert(code.end(), {1, 0, 2, 0});
  return code;
}

constexpr uint32_t kMany = 4000;

// Names that begin at every word of one vector and end where it ends.
TEST(SharedBundle, names_that_share_bytes) {
  expect_refused("names", [](Crafted& c) {
    std::vector<uint32_t> words;
    for (uint32_t i = 0; i < kMany; ++i) words.push_back(i + 1 < kMany ? 4 * (kMany - 1 - i) - 1 : 0);
    Vec<uint32_t> shared = c.b.CreateVector(words);
    Tables<schema::Tensor> inputs;
    for (uint32_t i = 0; i + 1 < kMany; ++i)
      inputs.push_back(c.slot(Text(shared.o - 4 - 4 * i), schema::ArenaKind::input, i));
    c.entry("main", inputs);
  });
}

TEST(SharedBundle, strings_vectors_and_tables_shared_by_many) {
  auto item = [](Crafted& c, Vec<Text> nodes) {
    return schema::CreateItem(c.b, schema::ItemKind::synchronize, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, nodes);
  };
  expect_refused("elements of a list of strings", [&](Crafted& c) {
    std::vector<Text> nodes(kMany, c.text(std::string(kMany, 'n')));
    c.entry("main", {}, {item(c, c.b.CreateVector(nodes))});
  });
  expect_refused("lists of strings", [&](Crafted& c) {
    Vec<Text> nodes = c.b.CreateVector(std::vector<Text>(kMany, c.text("n")));
    Tables<schema::Item> items;
    for (uint32_t i = 0; i < kMany; ++i) items.push_back(item(c, nodes));
    c.entry("main", {}, items);
  });
  expect_refused("items", [&](Crafted& c) {
    std::vector<Text> nodes(kMany, c.text("n"));
    c.entry("main", {}, Tables<schema::Item>(kMany, item(c, c.b.CreateVector(nodes))));
  });
  expect_refused("bindings", [](Crafted& c) {
    c.arenas.push_back(schema::CreateArena(c.b, 0, schema::ArenaKind::state));
    auto bindings = c.b.CreateVectorOfStructs(
        std::vector<schema::Binding>(kMany, schema::Binding(0, schema::Access::read, 0, 0)));
    Tables<schema::Item> items;
    for (uint32_t i = 0; i < kMany; ++i)
      items.push_back(schema::CreateItem(c.b, schema::ItemKind::synchronize, 0, 0, -1, bindings));
    c.entry("main", {}, items);
  });
  expect_refused("entry points' plans", [&](Crafted& c) {
    Tables<schema::Item> items;
    for (uint32_t i = 0; i < kMany; ++i) items.push_back(item(c, 0));
    auto plans = c.all<schema::Plan>({c.plan(items)});
    for (uint32_t e = 0; e < kMany; ++e)
      c.entries.push_back(schema::CreateEntryPoint(c.b, c.text(std::to_string(e)), 0, 0, 0, plans));
  });
  expect_refused("code of expressions", [](Crafted& c) {
    c.symbols.push_back(schema::CreateSymbol(c.b, c.text("n"), 1, 8));
    auto code = c.b.CreateVector(long_code());
    for (uint32_t i = 0; i < kMany; ++i) c.expressions.push_back(schema::CreateSizeExpression(c.b, code));
  });
  expect_refused("kernels", [](Crafted& c) {
    Tables<schema::Kernel> kernels;
    for (uint32_t i = 0; i < kMany; ++i) kernels.push_back(schema::CreateKernel(c.b, c.text("k")));
    auto shared = c.all(kernels);
    Tables<schema::Plan> plans;
    for (uint32_t v = 0; v < 256; ++v) {
      c.variants.push_back(
          schema::CreateVariant(c.b, c.text("host"), 0, 0, schema::CodeFormat::elf_image, 0, shared));
      plans.push_back(c.plan({}, v));
    }
    c.entries.push_back(schema::CreateEntryPoint(c.b, c.text("main"), 0, 0, 0, c.all(plans)));
  });
  expect_refused("test vectors", [](Crafted& c) {
    c.entry("main", {c.slot(c.text("x"), schema::ArenaKind::input, 0)});
    auto values = c.b.CreateVectorOfStructs(
        std::vector<schema::TestTensor>(kMany, schema::TestTensor(0, false, 1, 0, 0)));
    auto dims = c.b.CreateVector(std::vector<int64_t>(kMany, 0));
    auto tolerances = c.b.CreateVectorOfStructs(std::vector<schema::TestTolerance>(kMany));
    for (uint32_t t = 0; t < kMany; ++t)
      c.tests.push_back(schema::CreateTestVector(c.b, 0, 0, values, dims, tolerances));
  });
}

// Unshared, so these are taken: what made them slow were pairs of names, of slots, and of a use and its
// steps.
TEST(SharedBundle, wide_bundles_open_in_linear_time) {
  auto inputs = [](Crafted& c, uint32_t count, const std::string& prefix) {
    Tables<schema::Tensor> tensors;
    for (uint32_t i = 0; i < count; ++i)
      tensors.push_back(c.slot(c.text(prefix + std::to_string(i)), schema::ArenaKind::input,
                               static_cast<uint32_t>(c.arenas.size())));
    return tensors;
  };
  expect_opened("inputs of long names",
                [&](Crafted& c) { c.entry("main", inputs(c, 4096, std::string(900, 'x'))); });
  expect_opened("entry points with inputs", [&](Crafted& c) {
    for (uint32_t e = 0; e < 8; ++e) c.entry("e" + std::to_string(e), inputs(c, 4096, "x"));
  });
  expect_opened("bindings of the last input", [&](Crafted& c) {
    Tables<schema::Tensor> tensors = inputs(c, 4096, "x");
    auto bindings = c.b.CreateVectorOfStructs(
        std::vector<schema::Binding>(100000, schema::Binding(4095, schema::Access::read, 0, 0)));
    c.entry("main", tensors, {schema::CreateItem(c.b, schema::ItemKind::synchronize, 0, 0, -1, bindings)});
  });
  expect_opened("bindings with a long expression", [](Crafted& c) {
    c.symbols.push_back(schema::CreateSymbol(c.b, c.text("n"), 1, 8));
    c.expressions.push_back(schema::CreateSizeExpression(c.b, c.b.CreateVector(long_code())));
    c.arenas.push_back(schema::CreateArena(c.b, 0, schema::ArenaKind::state));
    auto bindings = c.b.CreateVectorOfStructs(
        std::vector<schema::Binding>(100000, schema::Binding(0, schema::Access::read, 0, 0)));
    auto sizes = c.b.CreateVectorOfStructs(
        std::vector<schema::BindingExpressions>(100000, schema::BindingExpressions(0, 0)));
    c.entry("main", {},
            {schema::CreateItem(c.b, schema::ItemKind::synchronize, 0, 0, -1, bindings, 0, 0, 0, 0, 0, 0, 0,
                                0, 0, -1, sizes)});
  });
  expect_opened("workspaces and bindings", [](Crafted& c) {
    for (uint32_t a = 0; a < 20000; ++a)
      c.arenas.push_back(schema::CreateArena(c.b, 0, schema::ArenaKind::workspace));
    auto bindings = c.b.CreateVectorOfStructs(
        std::vector<schema::Binding>(50000, schema::Binding(63, schema::Access::read, 0, 0)));
    auto items =
        c.all<schema::Item>({schema::CreateItem(c.b, schema::ItemKind::synchronize, 0, 0, -1, bindings)});
    std::vector<uint32_t> workspaces;
    for (uint32_t a = 0; a < 64; ++a) workspaces.push_back(a);
    auto plans = c.all<schema::Plan>({schema::CreatePlan(c.b, 0, items, c.b.CreateVector(workspaces))});
    c.entries.push_back(schema::CreateEntryPoint(c.b, c.text("main"), 0, 0, 0, plans));
  });
  expect_opened("entry points", [](Crafted& c) {
    for (uint32_t e = 0; e < 4096; ++e) c.entry(std::string(900, 'e') + std::to_string(e));
  });
}

TEST(SharedBundle, test_values_share_no_bytes) {
  auto with = [](uint64_t bytes) {
    return open(file_of([&](Crafted& c) {
             c.arenas.push_back(schema::CreateArena(c.b, 0, schema::ArenaKind::input, kPage));
             auto shape = c.b.CreateVector(std::vector<int64_t>{1024});
             auto x = schema::CreateTensor(c.b, c.text("x"), schema::DType::f32, shape, 0, kPage, 0);
             c.entry("main", {x});
             uint32_t count = static_cast<uint32_t>(bytes / kPage);
             auto values = c.b.CreateVectorOfStructs(
                 std::vector<schema::TestTensor>(count, schema::TestTensor(0, false, 1, 0, kPage)));
             auto dims = c.b.CreateVector(std::vector<int64_t>(count, 1024));
             auto tolerances = c.b.CreateVectorOfStructs(std::vector<schema::TestTolerance>(count));
             c.tests.push_back(schema::CreateTestVector(c.b, 0, 0, values, dims, tolerances));
           }))
        .text;
  };
  EXPECT_EQ(with(kPage), "");
  EXPECT_NE(with(1000 * kPage).find("shares bytes with others"), std::string::npos);
}

TEST(SharedBundle, test_vectors_have_a_limit) {
  constexpr size_t kMany = 131073;
  std::vector<std::byte> file = file_of([](Crafted& c) {
    c.entry("main", {c.slot(c.text("x"), schema::ArenaKind::input, 0)});
    auto values = c.b.CreateVectorOfStructs(
        std::vector<schema::TestTensor>(kMany, schema::TestTensor(0, false, 1, 0, 0)));
    auto dims = c.b.CreateVector(std::vector<int64_t>(kMany, 0));
    auto tolerances = c.b.CreateVectorOfStructs(std::vector<schema::TestTolerance>(kMany));
    c.tests.push_back(schema::CreateTestVector(c.b, 0, 0, values, dims, tolerances));
  });
  EXPECT_EQ(open(file).text, "test vector 0: more than 131072 values");
}

// What the writer makes stays far below what the reader takes, also where one string is used by everything.
TEST(SharedBundle, written_bundles_are_taken) {
  bundle::BundleContents contents = test_contents();
  bundle::Item item;
  item.kind = bundle::ItemKind::kSynchronize;
  item.source_nodes.assign(20, std::string(5000, 'n'));
  contents.entry_points[0].plans[0].items.assign(200, item);
  std::vector<std::byte> bytes = bundle_bytes(contents);
  EXPECT_EQ(open(bytes).text, "");
  for (const bundle::BundleContents& honest :
       {test_contents(), symbolic_contents(), custom_contents(), contents}) {
    std::vector<std::byte> file = bundle_bytes(honest);
    uint64_t structure_bytes = 0;
    std::memcpy(&structure_bytes, file.data() + 32, sizeof structure_bytes);
    AlignedBytes aligned(file);
    auto size = static_cast<uint32_t>(structure_bytes);
    EXPECT_TRUE(runtime::verify_shape(static_cast<const uint8_t*>(aligned.data()) + 64, size,
                                      runtime::max_shape_work(size)));
  }
}

TEST(SharedBundle, names_have_a_limit) {
  auto named = [](size_t length, char letter = 'k') {
    return open(file_of([&](Crafted& c) {
             c.variants.push_back(schema::CreateVariant(
                 c.b, c.text("host"), 0, 0, schema::CodeFormat::elf_image, 0,
                 c.all<schema::Kernel>({schema::CreateKernel(c.b, c.text(std::string(length, letter)))})));
           }))
        .text;
  };
  EXPECT_EQ(named(1024), "");
  EXPECT_NE(named(1, '\0').find("none of them zero, found 1"), std::string::npos);
  EXPECT_NE(named(1025).find("expected a name of up to 1024 bytes, none of them zero, found 1025"),
            std::string::npos);
}

}  // namespace
}  // namespace quernel::test
