// Text as it comes: whole characters of UTF-8, up to a stop string.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace language_model {

class TextStream {
 public:
  using Write = std::function<void(std::string_view)>;
  TextStream(std::vector<std::string> stops, Write write)
      : stops_(std::move(stops)), write_(std::move(write)) {}

  // Writes what is complete; the rest waits for more bytes. What may begin a stop string waits, too. Bytes that are
  // no UTF-8 are written as U+FFFD. After a stop string nothing is written.
  void add(std::string_view bytes);
  // Writes what waits.
  void finish();
  bool stopped() const { return stopped_; }

 private:
  void write(size_t count, bool is_last);

  std::vector<std::string> stops_;
  Write write_;
  std::string held_;
  bool stopped_ = false;
};

// Returns the bytes at the end of a text that begin a character without ending it.
std::string_view unfinished_character(std::string_view text);

}  // namespace language_model
