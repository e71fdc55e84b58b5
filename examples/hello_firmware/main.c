/* Recognises held-out hand-written digits on a microcontroller: draws the first ones, then tells the
 * accuracy, and what one inference takes. The pictures come from files of the host, by semihosting. Exits
 * with 1 when fewer than 97 % are right. */
#include "board.h"
#include "digits.h"

enum { kSide = 8, kPixels = kSide * kSide, kClasses = 10, kDrawn = 2 };
enum { kHeader = 128 }; /* of numpy's files */

/* All that the model needs beside its stack. */
static uint8_t workspace[DIGITS_WORKSPACE_BYTES] __attribute__((aligned(64)));

static void draw(const uint8_t* pixels) {
  static const char shades[] = " .:-=+*#%";
  char line[2 * kSide + 2];
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) line[2 * x] = line[2 * x + 1] = shades[pixels[y * kSide + x] / 2];
    line[2 * kSide] = '\n';
    line[2 * kSide + 1] = 0;
    board_print(line);
  }
}

static int recognise(const uint8_t* pixels) {
  static float image[kPixels], scores[kClasses];
  for (int i = 0; i < kPixels; ++i) image[i] = (float)pixels[i] / 16;
  const digits_memory memory = {.workspace = workspace};
  const digits_inputs inputs = {.image = image};
  const digits_outputs outputs = {.scores = scores};
  if (digits_run(&memory, &inputs, &outputs) != DIGITS_OK) board_exit(1);
  int best = 0;
  for (int i = 1; i < kClasses; ++i)
    if (scores[i] > scores[best]) best = i;
  return best;
}

static void print_pair(const char* before, uint64_t number, const char* after) {
  board_print(before);
  board_print_number(number);
  board_print(after);
}

/* The picture of this index and what it is; -1 behind the last one. */
static int read_digit(uint32_t index, uint8_t* pixels) {
  uint8_t label;
  if (board_read_file(LABELS, kHeader + index, &label, 1) != 1) return -1;
  return board_read_file(IMAGES, kHeader + index * kPixels, pixels, kPixels) == kPixels ? label : -1;
}

int main(void) {
  uint8_t pixels[kPixels];
  uint32_t count = 0, right = 0;
  for (int label; (label = read_digit(count, pixels)) >= 0; ++count) {
    int found = recognise(pixels);
    right += found == label;
    if (count >= kDrawn) continue;
    draw(pixels);
    print_pair("is a ", (uint64_t)found, "\n\n");
  }
  if (count == 0) {
    board_print("cannot read " IMAGES " and " LABELS "\n");
    return 1;
  }

  const void* top = board_stack_pointer();
  board_paint_stack();
  uint64_t begin = board_instructions();
  recognise(pixels);
  uint64_t instructions = board_instructions() - begin;
  uint32_t stack = board_stack_used(top);
  print_pair("", right, " of ");
  print_pair("", count, " right\n");
  print_pair("", instructions, " instructions per inference\n");
  print_pair("", DIGITS_CONSTANTS_BYTES, " bytes of weights, ");
  print_pair("", DIGITS_CODE_BYTES, " of code, ");
  print_pair("", DIGITS_WORKSPACE_BYTES, " of workspace, ");
  print_pair("", stack, " of stack\n");
  return right * 100 >= count * 97 ? 0 : 1;
}
