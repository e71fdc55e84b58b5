// What can be chosen about a contraction's kernel, as data with a text form: register tile, loop order, work
// per workgroup, Winograd's algorithm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quernel::schedule {

// Which of a tile's two neighbours in the output is computed next. kRows: columns of b stay in the core's
// caches while all rows of a are read. kColumns: rows of a stay there while all columns of b are read.
enum class TileOrder : uint8_t { kRows, kColumns };

// Text: "tile 12x32 order columns group 16384", "winograd 4 tile 14x16 block 28", "direct". Parts that the
// text leaves out have the values below.
struct Tiling {
  static constexpr int64_t kGroupWork = 1 << 16;

  int64_t rows = 0, columns = 0;  // of a register tile; 0: "direct"
  TileOrder order = TileOrder::kRows;
  int64_t group_work = kGroupWork;  // least multiply-adds of a workgroup
  int winograd = 0;                 // side of Winograd's output tiles; 0: the direct kernel
  int64_t block = 0;                // Winograd's tiles that are transformed at a time
  bool operator==(const Tiling&) const = default;
};
std::string to_string(const Tiling& tiling);
// Returns the tiling of a text's words, if they are one's.
std::optional<Tiling> parse_tiling(const std::vector<std::string_view>& words);
// The tiles of the tilings, with ranges of row counts: "1..14x16, 2x32".
std::string tiles_text(const std::vector<Tiling>& tilings);

}  // namespace quernel::schedule
