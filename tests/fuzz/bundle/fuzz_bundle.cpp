// Opens mutated bundles, every other one with symbols and control flow: bit flips, truncations, overwritten
// words, splices of the file with itself. Half of them get right hashes afterwards, so that they reach the
// verification behind the hashes. What still opens is listed and stripped as the tools do, and used with the
// null device (its code is never run: hashes are no signature), and must behave.
// usage: fuzz_bundle COUNT [SEED [FIRST]] [--rehash-all] [BUNDLE…]
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "bundle/bundle_structure.h"
#include "bundle/read_bundle.h"
#include "bundle/strip_variants.h"
#include "core/bundle.h"
#include "core/bundle_reader_shape.h"
#include "cpu/cpu_features.h"
#include "cpu/image.h"
#include "flatc_verifier.h"
#include "list_contents.h"
#include "processor_time.h"
#include "quernel/runtime.hpp"
#include "test_bundle.h"

namespace {

using quernel::test::AlignedBytes;
using Bytes = std::vector<std::byte>;

struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t n) { return n == 0 ? 0 : next() % n; }
};

// Positions are mostly in the header and the structure, where most of the meaning is.
size_t position(const Bytes& bytes, size_t structure_end, Random& random) {
  size_t end = random.below(8) == 0 || structure_end > bytes.size() ? bytes.size() : structure_end;
  return random.below(end);
}

void mutate_once(Bytes& bytes, size_t structure_end, Random& random) {
  if (bytes.empty()) return;
  size_t at = position(bytes, structure_end, random);
  switch (random.below(6)) {
    case 0:
      bytes[at] ^= static_cast<std::byte>(1u << random.below(8));
      break;
    case 1:
      bytes[at] = static_cast<std::byte>(random.next());
      break;
    case 2: {  // a word that is small, huge, or near a limit
      const uint64_t words[] = {0,
                                1,
                                ~UINT64_C(0),
                                UINT64_C(1) << 63,
                                0x7FFFFFFF,
                                0x80000000,
                                bytes.size(),
                                random.next(),
                                random.below(256)};
      uint64_t word = words[random.below(sizeof words / sizeof words[0])];
      size_t size = random.below(2) == 0 ? 4 : 8;
      at &= ~(size - 1);
      if (at + size <= bytes.size()) std::memcpy(bytes.data() + at, &word, size);
      break;
    }
    case 3: {  // splice
      size_t from = position(bytes, structure_end, random);
      size_t room = bytes.size() - (from > at ? from : at);
      std::memmove(bytes.data() + at, bytes.data() + from, random.below(room < 256 ? room : 256));
      break;
    }
    case 4:  // small change of a word: off by one, off by an element
      if (at + 4 <= bytes.size()) {
        uint32_t word;
        std::memcpy(&word, bytes.data() + at, 4);
        word += static_cast<uint32_t>(random.below(17)) - 8;
        std::memcpy(bytes.data() + at, &word, 4);
      }
      break;
    case 5:
      if (random.below(4) == 0) bytes.resize(random.below(bytes.size() + 64));
      break;
  }
}

// Some shape for an input; -1 becomes what the symbols of that input's first dims often allow.
void shape_input(quernel::Session& session, qnl_tensor tensor, int64_t dim) {
  for (uint32_t d = 0; d < tensor.rank; ++d)
    if (tensor.shape[d] < 0) tensor.shape[d] = dim * (d == 1 ? 16 : 1);
  if (session.set_shape(tensor) != QNL_OK) {
    tensor.shape[0] = 2 * dim;
    (void)!session.set_shape(tensor);
  }
}

// Ends runs whose loops a mutation made long: the hook cannot stop a run, so such bundles are not run.
bool loops_are_short(const quernel::Bundle& bundle, uint32_t entry) {
  const quernel::runtime::BundleReader& reader = bundle.get()->reader;
  for (uint32_t i = 0; i < reader.symbol_count(); ++i)
    if (reader.symbol(i).runtime && reader.symbol(i).max > 2000) return false;
  for (uint32_t v = 0; v < reader.variant_count(); ++v) {
    int loops = 0;
    for (uint32_t i = 0; i < reader.item_count(reader.plan(entry, v)); ++i)
      if (reader.item(reader.plan(entry, v), i).kind == QNL_ITEM_LOOP) ++loops;
    if (loops > 2) return false;
  }
  return true;
}

long sessions = 0;  // that were created

// Everything a caller would read, then runs of two sizes on the null device.
void use(const quernel::Bundle& bundle) {
  qnl_bundle_info info = bundle.info();
  volatile size_t sum = std::strlen(info.producer);
  qnl_entry_info entry;
  for (uint32_t e = 0; qnl_bundle_get_entry(bundle.get(), e, &entry) == QNL_OK; ++e) {
    for (qnl_tensor_role role : {QNL_INPUT, QNL_OUTPUT, QNL_STATE}) {
      qnl_tensor tensor;
      for (uint32_t i = 0; qnl_bundle_get_tensor(bundle.get(), e, role, i, &tensor) == QNL_OK; ++i) {
        sum = sum + std::strlen(tensor.name);
        char text[64];
        for (uint32_t d = 0; d < tensor.rank; ++d)
          if (qnl_bundle_get_dim_text(bundle.get(), e, role, i, d, text, sizeof text) != QNL_OK) std::abort();
      }
    }
    quernel::Device device;
    if (device.open_null() != QNL_OK) std::abort();
    quernel::Session session;
    qnl_session_options options = {};
    options.entry_point = entry.name;
    const qnl_custom_op op = {QNL_CUSTOM_OP_ABI_VERSION, "test::Rows", "f32[?,?]->f32[?],i32[]",
                              [](void*, const qnl_custom_call*) { return int32_t{0}; }, nullptr};
    options.custom_ops = &op;
    options.custom_op_count = 1;
    qnl_error error;
    qnl_requirements needs;
    if (qnl_session_query(bundle.get(), device.get(), &options, &needs, &error) != QNL_OK) continue;
    // Sizes a mutation may have made large are legal; memory for them is not the subject here.
    if (needs.workspace_bytes + needs.state_bytes + needs.io_bytes + needs.session_bytes >
        (UINT64_C(1) << 28))
      continue;
    if (session.create(bundle, device, &options, &error) != QNL_OK) continue;
    ++sessions;
    if (!loops_are_short(bundle, e)) continue;
    qnl_symbol_info symbol;
    for (uint32_t i = 0; qnl_bundle_get_symbol(bundle.get(), i, &symbol) == QNL_OK; ++i)
      if (std::strcmp(symbol.name, "bias") == 0) (void)!session.set_symbol(symbol.name, symbol.min);
    for (int64_t dim : {1, 3}) {
      qnl_tensor tensor;
      for (uint32_t i = 0; qnl_bundle_get_tensor(bundle.get(), e, QNL_INPUT, i, &tensor) == QNL_OK; ++i) {
        if (tensor.rank > 0 && tensor.bytes == 0) shape_input(session, tensor, dim);
        if (session.tensor(QNL_INPUT, tensor.name, &tensor) == QNL_OK && tensor.bytes > 0)
          std::memset(tensor.data, static_cast<int>(dim) - 1, 1);
      }
      (void)!session.run(&error);
      for (uint32_t i = 0; qnl_bundle_get_tensor(bundle.get(), e, QNL_OUTPUT, i, &tensor) == QNL_OK; ++i) {
        if (session.tensor(QNL_OUTPUT, tensor.name, &tensor, &error) != QNL_OK || tensor.bytes == 0) continue;
        sum = sum + static_cast<unsigned char*>(tensor.data)[tensor.bytes - 1];
      }
    }
    qnl_item_info item;
    for (uint32_t i = 0; qnl_session_get_item(session.get(), i, &item) == QNL_OK; ++i)
      sum = sum + std::strlen(item.name);
  }
  (void)!qnl_bundle_verify_weights(bundle.get(), nullptr);
}

// The runtime's description of the tables against what flatc generates from the schema.
bool same_shape(const AlignedBytes& bytes, uint64_t structure_bytes, bool* well_formed) {
  if (bytes.size() < 64 + structure_bytes) return true;
  const auto* structure = reinterpret_cast<const uint8_t*>(bytes.data()) + 64;
  *well_formed = quernel::test::flatc_verifies(structure, structure_bytes);
  return *well_formed ==
         quernel::runtime::verify_shape(structure, static_cast<uint32_t>(structure_bytes), ~0u);
}

// What `quernel strip` does, for the first variant, but for writing the file.
bool strip(const AlignedBytes& bytes) {
  namespace bundle = quernel::bundle;
  bundle::BundleContents contents = bundle::strip_variants(
      bundle::read_bundle({static_cast<const std::byte*>(bytes.data()), bytes.size()}), {0});
  if (!bundle::check_contents(contents)) return false;
  bundle::SegmentPlan plan = bundle::plan_segments(contents);
  return !bundle::build_structure(contents, plan).empty();
}

struct Options {
  long count = 10000, first = 0;
  uint64_t seed = 1;
  bool rehash_all = false;
  std::vector<Bytes> seeds;
};

// COUNT [SEED [FIRST]] [--rehash-all] [BUNDLE…]
Options parse(int argc, char** argv) {
  Options options;
  std::vector<uint64_t> numbers;
  for (int i = 1; i < argc; ++i) {
    char* end = nullptr;
    uint64_t number = std::strtoull(argv[i], &end, 10);
    if (*end == '\0') {
      numbers.push_back(number);
    } else if (std::strcmp(argv[i], "--rehash-all") == 0) {
      options.rehash_all = true;
    } else {
      std::ifstream file(argv[i], std::ios::binary);
      std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
      const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
      options.seeds.emplace_back(data, data + bytes.size());
    }
  }
  if (numbers.size() > 0) options.count = static_cast<long>(numbers[0]);
  if (numbers.size() > 1) options.seed = numbers[1];
  if (numbers.size() > 2) options.first = static_cast<long>(numbers[2]);
  for (const auto& contents :
       {quernel::test::test_contents(), quernel::test::symbolic_contents(), quernel::test::custom_contents()})
    options.seeds.push_back(quernel::test::bundle_bytes(contents));
  return options;
}

constexpr long kMostSeconds = 10;  // of one mutation

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  // What tools print goes nowhere.
  std::FILE* report = fdopen(dup(STDOUT_FILENO), "w");
  if (report == nullptr || std::freopen("/dev/null", "w", stdout) == nullptr) return 1;
  const Bytes image = quernel::test::test_image();
  std::map<qnl_status, long> statuses;
  long shapes[2] = {}, stripped = 0, opened = 0;
  for (long i = options.first; i < options.first + options.count; ++i) {
    quernel::testing::end_after(kMostSeconds);
    Random random{options.seed + static_cast<uint64_t>(i) * UINT64_C(0xD1342543DE82EF95)};
    Bytes bytes = options.seeds[static_cast<size_t>(i / 2) % options.seeds.size()];
    uint64_t structure_bytes;
    std::memcpy(&structure_bytes, bytes.data() + 32, 8);
    for (uint64_t m = 1 + random.below(4); m > 0; --m) mutate_once(bytes, 64 + structure_bytes, random);
    if (i % 2 == 1 || options.rehash_all) quernel::test::rehash_segments(bytes);
    AlignedBytes aligned(bytes);
    bool well_formed = false;
    if (!same_shape(aligned, structure_bytes, &well_formed)) {
      std::fprintf(stderr, "mutation %ld: expected its shape to be %s\n", i,
                   well_formed ? "taken" : "refused");
      return 1;
    }
    shapes[well_formed ? 1 : 0] += 1;
    quernel::Bundle bundle;
    qnl_error error;
    qnl_status status = bundle.open(aligned.data(), aligned.size(), nullptr, &error);
    statuses[status] += 1;
    if (status != QNL_OK && (error.status != status || error.text[0] == '\0')) {
      std::fprintf(stderr, "mutation %ld: status %d without a text\n", i, status);
      return 1;
    }
    if (status == QNL_OK) {
      opened += 1;
      quernel::tools::list_contents(bundle, {"bundle", false, true, true, false});
      quernel::tools::list_contents(bundle, {"bundle", true, true, true, false});
      quernel::tools::list_choices(bundle);
      if (strip(aligned)) stripped += 1;
      use(bundle);
    }

    Bytes code = image;
    mutate_once(code, 512, random);
    quernel::runtime::ImageLayout layout;
    status = quernel::runtime::verify_image(code.data(), code.size(), quernel::runtime::host_arch(), &layout,
                                            nullptr);
    if (status == QNL_OK && layout.segment_offset + layout.segment_bytes > code.size()) return 1;
  }
  std::fprintf(report, "%6ld  well-formed FlatBuffers, %ld others\n", shapes[1], shapes[0]);
  std::fprintf(report, "%6ld  opened and listed, %ld stripped, %ld sessions created\n", opened, stripped,
               sessions);
  for (const auto& [status, n] : statuses) std::fprintf(report, "%6ld  %s\n", n, qnl_status_text(status));
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  std::fprintf(report, "%6ld  MB at most\n", used.ru_maxrss / 1024);
  std::fclose(report);
  return 0;
}
