#include "bundle/write_bundle.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "bundle/bundle_structure.h"
#include "schemas/bundle_hash.h"
#include "schemas/bundle_tables.h"
#include "support/file.h"
#include "support/mapped_file.h"

namespace quernel::bundle {
namespace {

// Files are written in aligned pieces of this size: Linux then keeps each in one huge page of its cache,
// which a process that maps the file gets with one page fault in place of 32.
constexpr uint64_t kPieceBytes = uint64_t{2} << 20;

// One piece on its way into the file; what is not written of it is zero.
struct Piece {
  uint64_t index = 0;
  uint64_t end = 0;  // bytes of it that are in use
  std::vector<char> bytes = std::vector<char>(kPieceBytes);

  void begin(uint64_t i) {
    std::fill(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(end), '\0');
    index = i;
    end = 0;
  }
  void put(uint64_t at, const char* data, uint64_t count) {
    memcpy(bytes.data() + at, data, count);
    end = std::max(end, at + count);
  }
};

// The bundle on its way into its file.
class PieceFile {
 public:
  explicit PieceFile(const std::string& path) : file_(path) {}

  Status open() {
    struct stat existing;
    if (::stat(file_.path().c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
      return invalid_input("output '" + file_.path() + "': expected a regular file or nothing, found " +
                           (S_ISDIR(existing.st_mode) ? "a directory" : "a special file"));
    }
    return file_.open() ? Status() : failed();
  }

  // The first piece is kept until the end, because the header and the structure in it come last.
  Status write(const void* data, uint64_t bytes) {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
      uint64_t index = position_ / kPieceBytes, at = position_ % kPieceBytes;
      uint64_t count = std::min(bytes, kPieceBytes - at);
      if (index == 0) {
        first_.put(at, from, count);
      } else if (index < piece_.index) {
        QUERNEL_CHECK(store(position_, from, count));
      } else {
        if (index > piece_.index) {
          QUERNEL_CHECK(store(piece_));
          piece_.begin(index);
        }
        piece_.put(at, from, count);
      }
      from += count;
      bytes -= count;
      position_ += count;
    }
    return {};
  }

  // Continues at `offset`; a gap that was never written reads as zeros.
  void seek(uint64_t offset) { position_ = offset; }

  // Makes the file exactly `bytes` long and gives it its name.
  Status finish(uint64_t bytes) {
    QUERNEL_CHECK(store(first_));
    QUERNEL_CHECK(store(piece_));
    return file_.store(bytes) && file_.publish() ? Status() : failed();
  }

 private:
  Status store(const Piece& piece) { return store(piece.index * kPieceBytes, piece.bytes.data(), piece.end); }
  Status store(uint64_t offset, const char* data, uint64_t bytes) {
    return file_.write(data, bytes, offset) ? Status() : failed();
  }
  Status failed() const {
    return invalid_input("output '" + file_.path() + "': cannot be written: " + std::strerror(errno));
  }

  OutputFile file_;
  uint64_t position_ = 0;
  Piece first_, piece_;
};

// Writes a segment's bytes and hashes them on the way.
class SegmentStream {
 public:
  explicit SegmentStream(PieceFile& file) : file_(file) { qnl_hash_begin(&hash_); }

  void add(std::span<const std::byte> bytes) {
    if (!status_) return;
    qnl_hash_add(&hash_, bytes.data(), bytes.size());
    written_ += bytes.size();
    status_ = file_.write(bytes.data(), bytes.size());
  }
  void add_zeros(uint64_t count) {
    static constexpr std::byte kZeros[4096] = {};
    for (; count > 0 && status_; count -= std::min<uint64_t>(count, sizeof kZeros))
      add({kZeros, static_cast<size_t>(std::min<uint64_t>(count, sizeof kZeros))});
  }
  uint64_t written() const { return written_; }
  uint64_t hash() const {
    qnl_hash_state state = hash_;
    return qnl_hash_end(&state);
  }
  Status& status() { return status_; }

 private:
  PieceFile& file_;
  qnl_hash_state hash_;
  uint64_t written_ = 0;
  Status status_;
};

// Pages of weights that lie in the model's file as the bundle has them go back to it.
void write_view(std::span<const std::byte> view, SegmentStream& stream) {
  constexpr size_t kPart = size_t{16} << 20;
  for (size_t at = 0; at < view.size(); at += kPart) {
    const auto part = view.subspan(at, std::min(kPart, view.size() - at));
    stream.add(part);
    release_pages(part.data(), part.size());
  }
}

Status write_constants(const ConstantsSegment& constants, SegmentStream& stream) {
  for (const ConstantPiece& piece : constants.pieces) {
    stream.add_zeros(piece.offset - stream.written());
    uint64_t end = piece.offset + piece.bytes;
    if (piece.produce) {
      piece.produce([&](std::span<const std::byte> bytes) { stream.add(bytes); });
    } else {
      write_view(piece.view, stream);
    }
    if (!stream.status()) return std::move(stream.status());
    if (stream.written() != end) {
      return internal_error("constants piece at offset " + std::to_string(piece.offset) + ": expected " +
                            std::to_string(piece.bytes) + " bytes, its producer gave " +
                            std::to_string(stream.written() - piece.offset));
    }
  }
  stream.add_zeros(constants.bytes - stream.written());
  return std::move(stream.status());
}

Status write_test_values(const BundleContents& contents, const SegmentPlan& plan, SegmentStream& stream) {
  size_t next = 0;
  for (const TestVector& vector : contents.test_vectors) {
    for (const TestTensor& tensor : vector.tensors) {
      stream.add_zeros(plan.test_value_offsets[next++] - stream.written());
      stream.add(tensor.value);
    }
  }
  return std::move(stream.status());
}

schema::FileHeader make_header(std::span<const uint8_t> structure, uint64_t structure_offset,
                               uint64_t file_bytes, uint64_t features) {
  schema::FileHeader unhashed(kIdentifier, kByteOrder, kSchemaVersion, kMinRuntimeVersion, features,
                              structure_offset, structure.size(),
                              qnl_hash(structure.data(), structure.size()), file_bytes, 0);
  uint64_t hash = qnl_hash(&unhashed, sizeof(schema::FileHeader) - sizeof(uint64_t));
  return schema::FileHeader(kIdentifier, kByteOrder, kSchemaVersion, kMinRuntimeVersion, features,
                            structure_offset, structure.size(), unhashed.structure_hash(), file_bytes, hash);
}

}  // namespace

Expected<BundleSizes> write_bundle(const BundleContents& contents, const std::string& path) {
  QUERNEL_CHECK(check_contents(contents));
  SegmentPlan plan = plan_segments(contents);
  // Built once for its size, with zero hashes, and again when the segments have been streamed and hashed.
  const size_t structure_bytes = build_structure(contents, plan).size();
  uint64_t end = place_segments(plan, kStructureOffset + structure_bytes);

  PieceFile file(path);
  QUERNEL_CHECK(file.open());
  for (Segment& segment : plan.segments) {
    file.seek(segment.offset);
    SegmentStream stream(file);
    switch (segment.kind) {
      case SegmentKind::kCode:
        stream.add(contents.image(segment.source).image());
        QUERNEL_CHECK(std::move(stream.status()));
        break;
      case SegmentKind::kConstants:
        QUERNEL_CHECK(write_constants(contents.constants[segment.source], stream));
        break;
      case SegmentKind::kTestValues:
        QUERNEL_CHECK(write_test_values(contents, plan, stream));
        break;
    }
    segment.hash = stream.hash();
  }

  std::vector<uint8_t> structure = build_structure(contents, plan);
  QUERNEL_ASSERT(structure.size() == structure_bytes);
  schema::FileHeader header = make_header(structure, kStructureOffset, end, required_features(contents));
  file.seek(0);
  QUERNEL_CHECK(file.write(&header, sizeof header));
  QUERNEL_CHECK(file.write(structure.data(), structure.size()));
  QUERNEL_CHECK(file.finish(end));

  BundleSizes sizes;
  sizes.file = end;
  sizes.structure = structure_bytes;
  for (const Segment& segment : plan.segments) {
    if (segment.kind == SegmentKind::kCode) sizes.code += segment.bytes;
    if (segment.kind == SegmentKind::kConstants) sizes.constants += segment.bytes;
  }
  return sizes;
}

}  // namespace quernel::bundle
