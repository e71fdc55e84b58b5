// What can be chosen about a contraction's kernel, as data with a text form: register tile, loop order and
// parallel split, or Winograd's algorithm. The cost model chooses; a file of choices (`quernel tune` writes
// them) overrides. A choice is found by the target's name and the contraction's text.
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

// Which of a tile's two neighbours in the output comes next. Rows: the columns of b stay in the core's caches
// while all of a passes; columns: the rows of a do while all of b passes.
enum class TileOrder : uint8_t { kRows, kColumns };

// "tile 12x32 order columns group 16384", "winograd 4 tile 14x16 block 28", "direct". What is not said has
// the value below.
struct Tiling {
  static constexpr int64_t kGroupWork = 1 << 16;

  int64_t rows = 0, columns = 0;  // of a register tile; 0: "direct", no tile of Winograd's
  TileOrder order = TileOrder::kRows;
  int64_t group_work = kGroupWork;  // multiply-adds that a workgroup has at least, where there are as many
  int winograd = 0;                 // side of Winograd's output tiles; 0: the contraction as it stands
  int64_t block = 0;                // of these tiles, transformed at once
  bool operator==(const Tiling&) const = default;
};
std::string to_string(const Tiling& tiling);
// The message of a failure says what was expected and found, without a place.
Expected<Tiling> parse_tiling(std::string_view text);
// The tiles of the tilings, those of neighbouring rows together: "1..14x16, 2x32".
std::string tiles_text(const std::vector<Tiling>& tilings);

// Choices of a file, a line each: TARGET CONTRACTION = TILING. `#` starts a comment.
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

  // Null where none was given; what is found counts as used.
  const Tiling* find(const std::string& target, const std::string& contraction);
  // Answers a choice, found before, that is none of the legal ones, which `expected` describes.
  Diagnostic refuse(const std::string& target, const std::string& contraction,
                    const std::string& expected) const;
  // A note about choices for these targets that no contraction has used, where there are any.
  std::optional<std::string> unused(const std::vector<std::string>& targets) const;

 private:
  std::string file_;
  std::map<std::pair<std::string, std::string>, Choice> choices_;  // by target and contraction
};

}  // namespace quernel::schedule
