// What can be chosen about a contraction's kernel, as data with a text form: register tile, loop order, work
// per workgroup, Winograd's algorithm. The cost model chooses. A file of choices, as `quernel tune` writes
// it, overrides the model; a choice is found by the target's name and the contraction's text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/expected.h"

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
// Errors say what was expected and found, without a location.
Expected<Tiling> parse_tiling(std::string_view text);
// The tiles of the tilings, with ranges of row counts: "1..14x16, 2x32".
std::string tiles_text(const std::vector<Tiling>& tilings);

// The choices in a file, one a line: TARGET CONTRACTION = TILING. `#` starts a comment.
//   x86-64-v4 gemm f32*f32 packed rows 49:512:512 columns 512:0:1 reduce 512:1:0 = tile 7x48
class Tilings {
 public:
  struct Choice {
    Tiling tiling;
    int line = 0;
    bool used = false;
  };
  static Expected<Tilings> parse(std::string_view text, const std::string& file);
  static Expected<Tilings> read(const std::string& path);

  // Returns the choice, which then counts as used, or null.
  const Tiling* find(const std::string& target, const std::string& contraction);
  // Returns the error for a choice, found before, that is illegal. `expected` describes the legal ones.
  Diagnostic refuse(const std::string& target, const std::string& contraction,
                    const std::string& expected) const;
  // Returns a note about choices for these targets that no contraction has used, if there are any.
  std::optional<std::string> unused(const std::vector<std::string>& targets) const;

 private:
  std::string file_;
  std::map<std::pair<std::string, std::string>, Choice> choices_;  // by target and contraction
};

}  // namespace quernel::schedule
