// Recognises hand-written digits with a compiled model: draws some held-out ones beside their predictions,
// then tells accuracy and latency over all of them.
//
//   digits BUNDLE IMAGES.npy LABELS.npy
//
// Exits with 1 when fewer than 97 % are right, with 2 when something cannot be read or run.
#include <unistd.h>
#include <quernel/runtime.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kSide = 8;  // pixels
constexpr int kPixels = kSide * kSide;
constexpr int kMaxPixel = 16;
constexpr int kClasses = 10;
constexpr int kAcross = 4;  // pictures side by side
constexpr int kRows = 3;
constexpr int kMostWrong = kAcross;  // wrong ones that are drawn
constexpr int kPasses = 20;          // over all digits, for the latency
constexpr double kLeastAccuracy = 97.0;

struct Digit {
  std::array<uint8_t, kPixels> pixels;  // 0 to 16
  int label = 0;
  int predicted = 0;
  float score = 0;  // of the prediction
};

// The bytes of a .npy file (version 1) that holds unsigned bytes in C order.
std::vector<uint8_t> read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() < 10 || std::string(bytes.data(), 6) != "\x93NUMPY") {
    throw std::runtime_error(path + ": expected a .npy file");
  }
  const size_t header = static_cast<uint8_t>(bytes[8]) + 256u * static_cast<uint8_t>(bytes[9]);
  const std::string description(bytes.data() + 10, std::min(header, bytes.size() - 10));
  if (description.find("'|u1'") == std::string::npos || description.find("False") == std::string::npos) {
    throw std::runtime_error(path + ": expected uint8 in C order, found " + description);
  }
  return {bytes.begin() + static_cast<std::ptrdiff_t>(std::min(10 + header, bytes.size())), bytes.end()};
}

std::vector<Digit> read_digits(const std::string& images_path, const std::string& labels_path) {
  const std::vector<uint8_t> images = read_npy(images_path), labels = read_npy(labels_path);
  if (labels.empty() || images.size() != labels.size() * kPixels) {
    throw std::runtime_error("expected " + std::to_string(kPixels) +
                             " bytes of image for each label, found " + std::to_string(images.size()) +
                             " for " + std::to_string(labels.size()) + " labels");
  }
  std::vector<Digit> digits(labels.size());
  for (size_t i = 0; i < digits.size(); i++) {
    std::copy_n(images.begin() + static_cast<std::ptrdiff_t>(i * kPixels), kPixels, digits[i].pixels.begin());
    digits[i].label = labels[i];
  }
  return digits;
}

// One row of a picture: grey cells on a terminal, shaded blocks elsewhere; two columns a pixel, so that it is
// square.
std::string picture_row(const Digit& digit, int row, bool color) {
  static const char* const kShades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
  std::string text;
  for (int x = 0; x < kSide; x++) {
    const int value = std::min<int>(digit.pixels[static_cast<size_t>(row * kSide + x)], kMaxPixel);
    if (color) {
      text += "\x1b[48;5;" + std::to_string(233 + value * 22 / kMaxPixel) +
              "m  ";  // 233 to 255: near-black to white
    } else {
      text += kShades[(value * 4 + kMaxPixel / 2) / kMaxPixel];
    }
  }
  return color ? text + "\x1b[0m" : text;
}

// A bar of `cells` columns, drawn to an eighth of a column.
std::string bar(float share, int cells) {
  static const char* const kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::clamp(share, 0.0f, 1.0f) * static_cast<float>(cells * 8) + 0.5f);
  std::string text;
  for (int i = 0; i < eighths / 8; i++) text += "█";
  text += kEighths[eighths % 8];
  for (int i = (eighths + 7) / 8; i < cells; i++) text += " ";
  return text;
}

// "3 ✓        99.8 %" or "9 ✗ is 8   55.0 %", 16 columns.
std::string caption(const Digit& digit) {
  char text[64];
  if (digit.predicted == digit.label) {
    snprintf(text, sizeof text, "%d ✓      %5.1f %%", digit.predicted,
             100.0 * static_cast<double>(digit.score));
  } else {
    snprintf(text, sizeof text, "%d ✗ is %d %5.1f %%", digit.predicted, digit.label,
             100.0 * static_cast<double>(digit.score));
  }
  return text;
}

void draw(const std::vector<const Digit*>& digits, bool color) {
  const std::string gap = "   ", green = color ? "\x1b[32m" : "", red = color ? "\x1b[31m" : "",
                    plain = color ? "\x1b[0m" : "";
  for (size_t first = 0; first < digits.size(); first += kAcross) {
    const size_t last = std::min(first + kAcross, digits.size());
    for (int row = 0; row < kSide; row++) {
      for (size_t i = first; i < last; i++)
        printf("%s%s", gap.c_str(), picture_row(*digits[i], row, color).c_str());
      printf("\n");
    }
    for (size_t i = first; i < last; i++) {
      const std::string& tint = digits[i]->predicted == digits[i]->label ? green : red;
      printf("%s%s%s%s", gap.c_str(), tint.c_str(), caption(*digits[i]).c_str(), plain.c_str());
    }
    printf("\n");
    for (size_t i = first; i < last; i++) {
      const std::string& tint = digits[i]->predicted == digits[i]->label ? green : red;
      printf("%s%s%s%s", gap.c_str(), tint.c_str(), bar(digits[i]->score, 2 * kSide).c_str(), plain.c_str());
    }
    printf("\n\n");
  }
}

// The compiled model, ready to run: input "image", output "scores".
class Classifier {
 public:
  explicit Classifier(const char* bundle_path) {
    qnl_error error = {};
    require(bundle_.open(bundle_path, nullptr, &error), bundle_path, error);
    require(device_.open_cpu(1, &error), "cpu", error);
    require(session_.create(bundle_, device_, nullptr, &error), bundle_path, error);
    // Both tensors are filled and read where the session keeps them: nothing is copied.
    require(session_.tensor(QNL_INPUT, "image", &image_, &error), "input image", error);
    require(session_.tensor(QNL_OUTPUT, "scores", &scores_, &error), "output scores", error);
    if (image_.dtype != QNL_F32 || image_.bytes != kPixels * sizeof(float) || scores_.dtype != QNL_F32 ||
        scores_.bytes != kClasses * sizeof(float)) {
      throw std::runtime_error(std::string(bundle_path) +
                               ": expected image f32[1,1,8,8] and scores f32[1,10]");
    }
  }

  // Fills in the prediction; returns the milliseconds that the run took.
  double classify(Digit& digit) {
    float* image = static_cast<float*>(image_.data);
    for (size_t i = 0; i < kPixels; i++) image[i] = static_cast<float>(digit.pixels[i]) / kMaxPixel;
    qnl_error error = {};
    const auto start = std::chrono::steady_clock::now();
    const qnl_status status = session_.run(&error);
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    require(status, "run", error);
    const float* scores = static_cast<const float*>(scores_.data);
    const float* best = std::max_element(scores, scores + kClasses);
    digit.predicted = static_cast<int>(best - scores);
    digit.score = *best;
    return elapsed.count();
  }

 private:
  static void require(qnl_status status, const char* what, const qnl_error& error) {
    if (status == QNL_OK) return;
    throw std::runtime_error(std::string(what) + ": " +
                             (error.text[0] ? error.text : qnl_status_text(status)));
  }

  quernel::Bundle bundle_;
  quernel::Device device_;
  quernel::Session session_;  // last, so that it is destroyed first
  qnl_tensor image_ = {};
  qnl_tensor scores_ = {};
};

int show(const char* bundle_path, const char* images_path, const char* labels_path) {
  std::vector<Digit> digits = read_digits(images_path, labels_path);
  Classifier classifier(bundle_path);
  std::vector<double> times;
  for (int pass = 0; pass < kPasses; pass++) {
    for (Digit& digit : digits) times.push_back(classifier.classify(digit));
  }
  std::sort(times.begin(), times.end());

  std::vector<const Digit*> shown, wrong;
  const size_t step = std::max<size_t>(1, digits.size() / (kAcross * kRows));
  for (size_t i = 0; i < digits.size() && shown.size() < kAcross * kRows; i += step)
    shown.push_back(&digits[i]);
  for (const Digit& digit : digits) {
    if (digit.predicted != digit.label) wrong.push_back(&digit);
  }
  const bool color = isatty(STDOUT_FILENO) != 0;
  printf("%zu of %zu held-out digits, each with its prediction and the score of it\n\n", shown.size(),
         digits.size());
  draw(shown, color);
  if (!wrong.empty()) {
    const size_t drawn = std::min<size_t>(wrong.size(), kMostWrong);
    printf("%s\n\n", drawn == wrong.size() ? "all that it gets wrong" : "some that it gets wrong");
    draw({wrong.begin(), wrong.begin() + static_cast<std::ptrdiff_t>(drawn)}, color);
  }
  const size_t right = digits.size() - wrong.size();
  const double accuracy = 100.0 * static_cast<double>(right) / static_cast<double>(digits.size());
  printf("accuracy  %zu of %zu = %.2f %%\n", right, digits.size(), accuracy);
  printf("latency   median %.1f us, min %.1f us (1 thread, %zu runs)\n", 1e3 * times[times.size() / 2],
         1e3 * times[0], times.size());
  if (accuracy < kLeastAccuracy) {
    fprintf(stderr, "digits: expected at least %.0f %%\n", kLeastAccuracy);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: digits BUNDLE IMAGES.npy LABELS.npy\n");
    return 64;
  }
  try {
    return show(argv[1], argv[2], argv[3]);
  } catch (const std::exception& e) {
    fprintf(stderr, "digits: %s\n", e.what());
    return 2;
  }
}
