#include "test_bundle.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "bundle/write_bundle.h"
#include "cpu/cpu_features.h"
#include "schemas/bundle_hash.h"
#include "schemas/bundle_tables.h"

namespace quernel::test {
namespace {

namespace fs = std::filesystem;
using bundle::Access;
using bundle::ArenaKind;
using bundle::BundleContents;
using bundle::Item;
using bundle::ItemKind;

enum ArenaIndex : uint32_t {
  kConstants,
  kWorkspace,
  kA,
  kB,
  kSum,
  kState,
  kX,
  kY,
  kIn,
  kOut,
  kCounts,
  kFailX,
  kFailY
};

struct TemporaryDirectory {
  fs::path path = fs::temp_directory_path() / ("quernel-test-" + std::to_string(getpid()));
  TemporaryDirectory() { fs::create_directories(path); }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::abort();
  }
  std::vector<char> chars((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto* data = reinterpret_cast<const std::byte*>(chars.data());
  return {data, data + chars.size()};
}

// Contents of the constants: scale 2, bias 1, then a pattern of more than a page.
const std::vector<std::byte>& constants_bytes() {
  static const std::vector<std::byte> bytes = [] {
    std::vector<float> values(2500);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.5f;
    values[0] = 2.0f;
    values[1] = 1.0f;
    const auto* data = reinterpret_cast<const std::byte*>(values.data());
    return std::vector<std::byte>(data, data + values.size() * sizeof(float));
  }();
  return bytes;
}

Item dispatch(uint32_t kernel, uint64_t workgroups, std::vector<bundle::Binding> bindings) {
  Item item;
  item.kind = ItemKind::kDispatch;
  item.kernel = kernel;
  item.workgroups = workgroups;
  item.bindings = std::move(bindings);
  return item;
}

std::vector<Item> main_items() {
  const uint64_t bytes = kElements * 4;
  Item add = dispatch(kAdd, kElements / 16,
                      {{kA, Access::kRead, 0, bytes},
                       {kB, Access::kRead, 0, bytes},
                       {kWorkspace, Access::kWrite, 64, bytes}});
  add.source_nodes = {"Add_0"};
  Item scale = dispatch(kScale, kElements / 16,
                        {{kWorkspace, Access::kRead, 64, bytes},
                         {kConstants, Access::kRead, 0, constants_bytes().size()},
                         {kSum, Access::kWrite, 0, bytes}});
  scale.edges = {{0, bundle::EdgeKind::kRaw}};
  scale.source_nodes = {"Mul_1", "Add_2"};
  scale.flops = 2 * kElements;
  scale.bytes_read = bytes;
  scale.bytes_written = bytes;
  return {add, scale};
}

std::vector<Item> accumulate_items() {
  Item accumulate =
      dispatch(kAccumulate, 1, {{kX, Access::kRead, 0, 64}, {kState, Access::kReadWrite, 0, 64}});
  Item copy;
  copy.kind = ItemKind::kCopy;
  copy.bindings = {{kState, Access::kRead, 0, 64}, {kY, Access::kWrite, 0, 64}};
  copy.copy_bytes = 64;
  copy.edges = {{0, bundle::EdgeKind::kRaw}};
  return {accumulate, copy};
}

std::vector<Item> extras_items() {
  Item transpose;  // out[c][r] = in[r][c], in is 4 x 6
  transpose.kind = ItemKind::kCopy;
  transpose.bindings = {{kIn, Access::kRead, 0, 96}, {kOut, Access::kWrite, 0, 96}};
  transpose.copy_bytes = 4;
  transpose.copy_loops = {{4, 24, 4}, {6, 4, 16}};
  Item synchronize;
  synchronize.kind = ItemKind::kSynchronize;
  Item callback;
  callback.kind = ItemKind::kHostCallback;
  callback.callback = "notify";
  callback.bindings = {{kOut, Access::kReadWrite, 0, 96}};
  return {transpose, synchronize, callback};
}

std::vector<Item> count_items(uint64_t workgroups) {
  Item clear;  // the workspace is never written, so its zeros are a source
  clear.kind = ItemKind::kCopy;
  clear.bindings = {{kWorkspace, Access::kRead, 0, workgroups * 4},
                    {kCounts, Access::kWrite, 0, workgroups * 4}};
  clear.copy_bytes = workgroups * 4;
  Item count = dispatch(kCount, workgroups, {{kCounts, Access::kReadWrite, 0, workgroups * 4}});
  return {clear, count};
}

void add_entry(BundleContents& contents, const char* name, std::vector<bundle::Tensor> inputs,
               std::vector<bundle::Tensor> outputs, std::vector<uint32_t> states,
               const std::vector<Item>& items) {
  bundle::EntryPoint entry;
  entry.name = name;
  entry.inputs = std::move(inputs);
  entry.outputs = std::move(outputs);
  entry.states = std::move(states);
  for (uint32_t v = 0; v < contents.variants.size(); ++v)
    entry.plans.push_back({v, items, "plan of " + entry.name});
  contents.entry_points.push_back(std::move(entry));
}

void add_variants(BundleContents& contents) {
  const uint32_t host = runtime::host_arch();
  const uint32_t foreign = host == QNL_ARCH_X86_64 ? QNL_ARCH_AARCH64 : QNL_ARCH_X86_64;
  bundle::Variant variant;
  variant.target = "host";
  variant.arch = host;
  variant.required_features = 1;
  variant.code = test_image();
  for (const char* name : {"add", "scale", "accumulate", "fail", "count", "offset", "store", "sum_up"})
    variant.kernels.push_back({name});
  variant.kernels[kCount].scratch_bytes = 64;
  contents.variants.push_back(variant);
  variant.target = "future";
  variant.required_features = UINT64_C(1) << 63;
  contents.variants.push_back(variant);
  variant.target = "foreign";
  variant.arch = foreign;
  variant.required_features = 1;
  contents.variants.push_back(variant);
}

bundle::ConstantsSegment constants_segment() {
  const std::vector<std::byte>& constants = constants_bytes();
  bundle::ConstantsSegment segment;
  segment.bytes = constants.size();
  segment.pieces.push_back({0, 8, std::span(constants).first(8), {}});
  segment.pieces.push_back({8, constants.size() - 8, {}, [](const bundle::ByteSink& sink) {
                              std::span<const std::byte> rest = std::span(constants_bytes()).subspan(8);
                              sink(rest.first(1000));
                              sink(rest.subspan(1000));
                            }});
  return segment;
}

// Builds the bundle of symbolic_contents.
class SymbolicBundle {
 public:
  BundleContents build() {
    contents_.producer = "runtime tests";
    contents_.constants.push_back(constants_segment());
    contents_.constants.push_back({64, {}});
    arena("constants", ArenaKind::kConstants, constants_bytes().size()).constants = 0;
    arena("zeros", ArenaKind::kConstants, 64).constants = 1;
    symbols();
    add_variants(contents_);
    entry_add();
    entry_steps();
    entry_nested();
    entry_until();
    entry_choose();
    return std::move(contents_);
  }

  // The bundle of custom_contents.
  BundleContents build_custom() {
    contents_.producer = "runtime tests";
    symbols();
    add_variants(contents_);
    std::vector<bundle::Tensor> inputs, outputs;
    const Code batch = symbol(kBatch), width = symbol(kWidth), twice = times(batch, number(2));
    uint32_t x = slot(inputs, "x", DType::kF32, ArenaKind::kInput, {batch, width});
    uint32_t y = slot(outputs, "y", DType::kF32, ArenaKind::kOutput, {twice});
    uint32_t n = slot(outputs, "n", DType::kI32, ArenaKind::kOutput, {});
    Item item;
    item.kind = ItemKind::kHostCallback;
    item.callback = "test::Rows";
    item.signature = "f32[?,?]->f32[?],i32[]";
    item.attributes = "gain=0.5";
    item.source_nodes = {"rows"};
    item.bindings = {part(x, Access::kRead, times(times(batch, width), number(4))),
                     part(y, Access::kWrite, times(twice, number(4))),
                     {n, Access::kWrite, 0, 4}};
    item.symbols = {expression(batch), expression(width), expression(twice)};
    add_entry(contents_, "custom", inputs, outputs, {}, {item});
    return std::move(contents_);
  }

 private:
  using Code = std::vector<int64_t>;
  enum Symbol : int64_t { kBatch, kWidth, kBias, kRows, kCountSymbol, kI, kJ, kGo, kPick };

  static Code number(int64_t value) { return {0, value}; }
  static Code symbol(int64_t index) { return {1, index}; }
  static Code binary(int64_t opcode, Code a, const Code& b) {
    a.insert(a.end(), b.begin(), b.end());
    a.insert(a.end(), {opcode, 0});
    return a;
  }
  static Code times(const Code& a, const Code& b) { return binary(4, a, b); }
  int32_t expression(const Code& code) {
    contents_.expressions.push_back({code});
    return static_cast<int32_t>(contents_.expressions.size()) - 1;
  }

  bundle::Arena& arena(const char* name, ArenaKind kind, uint64_t bytes) {
    contents_.arenas.push_back({name, kind, bytes});
    return contents_.arenas.back();
  }
  uint32_t last_arena() const { return static_cast<uint32_t>(contents_.arenas.size()) - 1; }

  void symbols() {
    using bundle::SymbolKind;
    contents_.symbols = {{"batch", 1, 8},
                         {"width", 16, 64, 16},
                         {"bias", 0, 100},
                         {"rows", 1, INT64_MAX},
                         {"count", 0, 16, 1, SymbolKind::kRuntime, expression(symbol(kRows))},
                         {"i", 0, 1000, 1, SymbolKind::kRuntime},
                         {"j", 0, 1000, 1, SymbolKind::kRuntime},
                         {"go", 0, 1, 1, SymbolKind::kRuntime},
                         {"pick", -5, 5, 1, SymbolKind::kRuntime}};
  }

  // An input or output of constant shape, or of symbolic dims; its slot is of `slot` bytes, or of those of
  // the shape.
  uint32_t slot(std::vector<bundle::Tensor>& tensors, const char* name, DType dtype, ArenaKind kind,
                const std::vector<Code>& dims, const Code& slot_bytes = {}) {
    bundle::Tensor tensor;
    tensor.name = name;
    tensor.dtype = dtype;
    uint64_t element = qnl_dtype_bytes(static_cast<qnl_dtype>(dtype), 1);
    Code bytes = number(static_cast<int64_t>(element));
    bool symbolic = false;
    tensor.bytes = element;
    for (const Code& dim : dims) {
      bool constant = dim.size() == 2 && dim[0] == 0;
      symbolic = symbolic || !constant;
      tensor.shape.push_back(constant ? dim[1] : -1);
      tensor.shape_expressions.push_back(constant ? -1 : expression(dim));
      if (constant) tensor.bytes *= static_cast<uint64_t>(dim[1]);
      bytes = times(bytes, dim);
    }
    if (!symbolic) tensor.shape_expressions.clear();
    arena(name, kind, symbolic ? 0 : tensor.bytes);
    if (symbolic)
      contents_.arenas.back().bytes_expression = expression(slot_bytes.empty() ? bytes : slot_bytes);
    tensor.arena = last_arena();
    tensors.push_back(tensor);
    return tensor.arena;
  }

  bundle::Binding part(uint32_t arena, Access access, const Code& offset, const Code& bytes) {
    bundle::Binding binding = {arena, access};
    binding.offset_expression = expression(offset);
    binding.bytes_expression = expression(bytes);
    return binding;
  }
  bundle::Binding part(uint32_t arena, Access access, const Code& bytes) {
    bundle::Binding binding = part(arena, access, number(0), bytes);
    binding.offset_expression = -1;
    return binding;
  }

  static Item copy(uint32_t from, uint32_t to, uint64_t bytes) {
    Item item;
    item.kind = ItemKind::kCopy;
    item.bindings = {{from, Access::kRead, 0, bytes}, {to, Access::kWrite, 0, bytes}};
    item.copy_bytes = bytes;
    return item;
  }
  static Item read(int64_t symbol, DType dtype, uint32_t arena) {
    Item item;
    item.kind = ItemKind::kReadSymbol;
    item.symbol = static_cast<int32_t>(symbol);
    item.dtype = dtype;
    item.bindings = {{arena, Access::kRead, 0, qnl_dtype_bytes(static_cast<qnl_dtype>(dtype), 1)}};
    return item;
  }
  static Item loop(int64_t symbol, int32_t count, int32_t condition, uint32_t end) {
    Item item;
    item.kind = ItemKind::kLoop;
    item.symbol = static_cast<int32_t>(symbol);
    item.count_expression = count;
    item.condition_expression = condition;
    item.end = end;
    return item;
  }
  static Item branch(int32_t condition, uint32_t else_begin, uint32_t end) {
    Item item;
    item.kind = ItemKind::kBranch;
    item.condition_expression = condition;
    item.else_begin = else_begin;
    item.end = end;
    return item;
  }
  Item offset(uint32_t from, uint32_t to, const Code& value) {
    Item item = dispatch(kOffset, 1, {{from, Access::kRead, 0, 64}, {to, Access::kReadWrite, 0, 64}});
    item.symbols = {expression(value), expression(number(16))};
    return item;
  }

  void entry_add() {
    std::vector<bundle::Tensor> inputs, outputs;
    const std::vector<Code> shape = {symbol(kBatch), symbol(kWidth)};
    const Code twice = times(symbol(kBatch), number(2)), twice_bytes = times(twice, number(4));
    const Code elements = times(symbol(kBatch), symbol(kWidth)), bytes = times(elements, number(4));
    uint32_t a = slot(inputs, "a", DType::kF32, ArenaKind::kInput, shape);
    uint32_t b = slot(inputs, "b", DType::kF32, ArenaKind::kInput, shape);
    uint32_t c = slot(inputs, "c", DType::kF32, ArenaKind::kInput, {twice});
    uint32_t sum = slot(outputs, "sum", DType::kF32, ArenaKind::kOutput, shape);
    uint32_t doubled = slot(outputs, "twice", DType::kF32, ArenaKind::kOutput, {twice});
    arena("workspace", ArenaKind::kWorkspace, 0).bytes_expression = expression(times(bytes, number(2)));
    uint32_t w = last_arena();
    int32_t workgroups = expression(binary(5, elements, number(16)));
    Item add = dispatch(kAdd, 0,
                        {part(a, Access::kRead, bytes), part(b, Access::kRead, bytes),
                         part(w, Access::kWrite, bytes, bytes)});
    Item scale = dispatch(kScale, 0,
                          {part(w, Access::kRead, bytes, bytes),
                           {0, Access::kRead, 0, constants_bytes().size()},
                           part(w, Access::kWrite, bytes)});
    Item bias = dispatch(kOffset, 0, {part(w, Access::kRead, bytes), part(sum, Access::kWrite, bytes)});
    bias.symbols = {expression(symbol(kBias)), expression(elements)};
    for (Item* item : {&add, &scale, &bias}) item->workgroups_expression = workgroups;
    Item copy = SymbolicBundle::copy(c, doubled, 0);
    copy.bindings = {part(c, Access::kRead, twice_bytes), part(doubled, Access::kWrite, twice_bytes)};
    copy.copy_bytes_expression = expression(twice_bytes);
    scale.edges = {{0, bundle::EdgeKind::kRaw}};
    add_entry(contents_, "add", inputs, outputs, {}, {add, scale, bias, copy});
  }

  void entry_steps() {
    std::vector<bundle::Tensor> inputs, outputs;
    uint32_t n = slot(inputs, "n", DType::kI64, ArenaKind::kInput, {});
    slot(inputs, "rows", DType::kI64, ArenaKind::kInput, {symbol(kRows)});
    uint32_t steps = slot(outputs, "steps", DType::kI64, ArenaKind::kOutput, {symbol(kCountSymbol)},
                          times(symbol(kRows), number(8)));
    Item store = dispatch(kStore, 1, {part(steps, Access::kReadWrite, times(symbol(kRows), number(8)))});
    store.symbols = {expression(symbol(kI)),
                     expression(binary(2, times(symbol(kI), symbol(kI)), symbol(kRows)))};
    add_entry(contents_, "steps", inputs, outputs, {},
              {read(kCountSymbol, DType::kI64, n), loop(kI, expression(symbol(kCountSymbol)), -1, 3), store});
  }

  void entry_nested() {
    std::vector<bundle::Tensor> inputs, outputs;
    uint32_t x = slot(inputs, "x", DType::kF32, ArenaKind::kInput, {number(16)});
    uint32_t y = slot(outputs, "y", DType::kF32, ArenaKind::kOutput, {number(16)});
    add_entry(contents_, "nested", inputs, outputs, {},
              {copy(x, y, 64), loop(kI, expression(number(3)), -1, 4),
               loop(kJ, expression(symbol(kI)), -1, 4), offset(y, y, binary(2, symbol(kI), symbol(kJ)))});
  }

  void entry_until() {
    std::vector<bundle::Tensor> inputs, outputs;
    uint32_t limit = slot(inputs, "limit", DType::kI64, ArenaKind::kInput, {});
    uint32_t sum = slot(outputs, "sum", DType::kI64, ArenaKind::kOutput, {});
    uint32_t trips = slot(outputs, "trips", DType::kI64, ArenaKind::kOutput, {});
    arena("flag", ArenaKind::kWorkspace, 64);
    auto sum_up = [&](int64_t by) {
      Item item = dispatch(kSumUp, 1,
                           {{sum, Access::kReadWrite, 0, 8},
                            {limit, Access::kRead, 0, 8},
                            {last_arena(), Access::kWrite, 0, 1}});
      item.symbols = {expression(number(by))};
      return item;
    };
    Item store = dispatch(kStore, 1, {{trips, Access::kReadWrite, 0, 8}});
    store.symbols = {expression(number(0)), expression(symbol(kI))};
    Item first = sum_up(0), next = sum_up(3);
    Item go = read(kGo, DType::kBool, last_arena());
    add_entry(contents_, "until", inputs, outputs, {},
              {copy(1, sum, 8), first, go, loop(kI, -1, expression(symbol(kGo)), 6), next, go, store});
  }

  void entry_choose() {
    std::vector<bundle::Tensor> inputs, outputs;
    uint32_t pick = slot(inputs, "pick", DType::kI32, ArenaKind::kInput, {});
    uint32_t x = slot(inputs, "x", DType::kF32, ArenaKind::kInput, {number(16)});
    uint32_t y = slot(outputs, "y", DType::kF32, ArenaKind::kOutput, {number(16)});
    // not 0: the outer else; not 1: the inner one
    Code is_not_1 = binary(3, symbol(kPick), number(1));
    add_entry(contents_, "choose", inputs, outputs, {},
              {read(kPick, DType::kI32, pick), branch(expression(symbol(kPick)), 5, 6),
               branch(expression(is_not_1), 4, 5), offset(x, y, number(30)), offset(x, y, number(20)),
               offset(x, y, number(10))});
  }

  BundleContents contents_;
};

}  // namespace

std::vector<std::byte> test_image() { return read_bytes(TEST_KERNELS_IMAGE); }

BundleContents symbolic_contents() { return SymbolicBundle().build(); }

BundleContents custom_contents() { return SymbolicBundle().build_custom(); }

BundleContents test_contents(uint64_t count_workgroups) {
  BundleContents contents;
  contents.producer = "runtime tests";
  const std::vector<std::byte>& constants = constants_bytes();
  contents.constants.push_back(constants_segment());
  contents.arenas = {
      {"constants", ArenaKind::kConstants, constants.size(), 64, 0},
      {"workspace", ArenaKind::kWorkspace, std::max<uint64_t>(kElements * 4 + 64, count_workgroups * 4)},
      {"a", ArenaKind::kInput, kElements * 4},
      {"b", ArenaKind::kInput, kElements * 4},
      {"sum", ArenaKind::kOutput, kElements * 4},
      {"state", ArenaKind::kState, 64},
      {"x", ArenaKind::kInput, 64},
      {"y", ArenaKind::kOutput, 64},
      {"in", ArenaKind::kInput, 96},
      {"out", ArenaKind::kOutput, 96},
      {"counts", ArenaKind::kOutput, count_workgroups * 4},
      {"fail x", ArenaKind::kInput, 64},
      {"fail y", ArenaKind::kOutput, 64},
  };
  contents.states.push_back({"acc", DType::kF32, {16}, {}, 64, kState, 0});
  add_variants(contents);
  const uint64_t bytes = kElements * 4;
  add_entry(contents, "main",
            {{"a", DType::kF32, {64, 64}, {}, bytes, kA}, {"b", DType::kF32, {64, 64}, {}, bytes, kB}},
            {{"sum", DType::kF32, {64, 64}, {}, bytes, kSum}}, {}, main_items());
  add_entry(contents, "accumulate", {{"x", DType::kF32, {16}, {}, 64, kX}},
            {{"y", DType::kF32, {16}, {}, 64, kY}}, {0}, accumulate_items());
  add_entry(contents, "extras", {{"in", DType::kI32, {4, 6}, {}, 96, kIn}},
            {{"out", DType::kI32, {6, 4}, {}, 96, kOut}}, {}, extras_items());
  add_entry(contents, "failing", {{"x", DType::kF32, {16}, {}, 64, kFailX}},
            {{"y", DType::kF32, {16}, {}, 64, kFailY}}, {},
            {dispatch(kFail, 1, {{kFailX, Access::kRead, 0, 64}, {kFailY, Access::kWrite, 0, 64}})});
  add_entry(
      contents, "count", {},
      {{"counts", DType::kI32, {static_cast<int64_t>(count_workgroups)}, {}, count_workgroups * 4, kCounts}},
      {}, count_items(count_workgroups));
  bundle::TestVector test;
  test.name = "zeros";
  test.entry_point = 1;
  test.tensors = {{0, false, std::vector<std::byte>(64), {16}}, {0, true, std::vector<std::byte>(64), {16}}};
  contents.test_vectors.push_back(test);
  return contents;
}

std::string temporary_path(const std::string& name) {
  static TemporaryDirectory directory;
  static int next = 0;
  return (directory.path / (std::to_string(next++) + "-" + name)).string();
}

std::vector<std::byte> bundle_bytes(const BundleContents& contents) {
  std::string path = temporary_path("bundle.qnl");
  auto written = bundle::write_bundle(contents, path);
  if (!written) {
    std::fprintf(stderr, "%s\n", to_string(written.errors()).c_str());
    std::abort();
  }
  return read_bytes(path);
}

void rehash(std::vector<std::byte>& bytes) {
  schema::FileHeader h;
  if (bytes.size() < sizeof h) return;
  std::memcpy(&h, bytes.data(), sizeof h);
  uint64_t structure_hash = h.structure_hash();
  if (h.structure_offset() <= bytes.size() && h.structure_bytes() <= bytes.size() - h.structure_offset())
    structure_hash = qnl_hash(bytes.data() + h.structure_offset(), h.structure_bytes());
  std::memcpy(bytes.data() + 40, &structure_hash, 8);
  uint64_t header_hash = qnl_hash(bytes.data(), 56);
  std::memcpy(bytes.data() + 56, &header_hash, 8);
}

void rehash_segments(std::vector<std::byte>& bytes) {
  schema::FileHeader h;
  if (bytes.size() < sizeof h) return;
  std::memcpy(&h, bytes.data(), sizeof h);
  if (h.structure_offset() <= bytes.size() && h.structure_bytes() <= bytes.size() - h.structure_offset()) {
    auto* structure = reinterpret_cast<uint8_t*>(bytes.data()) + h.structure_offset();
    flatbuffers::Verifier verifier(structure, h.structure_bytes(), 16, 1000000);
    if (h.structure_bytes() >= 8 && schema::VerifyBundleBuffer(verifier)) {
      const auto* segments = schema::GetBundle(structure)->segments();
      for (uint32_t i = 0; segments != nullptr && i < segments->size(); ++i) {
        const schema::Segment* s = segments->Get(i);
        if (s->offset() > bytes.size() || s->bytes() > bytes.size() - s->offset()) continue;
        uint64_t hash = qnl_hash(bytes.data() + s->offset(), s->bytes());
        auto* at = reinterpret_cast<std::byte*>(const_cast<schema::Segment*>(s)) + 16;
        std::memcpy(at, &hash, 8);
      }
    }
  }
  rehash(bytes);
}

AlignedBytes::AlignedBytes(const std::vector<std::byte>& bytes)
    : storage_(bytes.size() + 64), size_(bytes.size()) {
  auto address = reinterpret_cast<uintptr_t>(storage_.data());
  data_ = storage_.data() + (64 - address % 64) % 64;
  if (!bytes.empty()) std::memcpy(data_, bytes.data(), bytes.size());
}

}  // namespace quernel::test
