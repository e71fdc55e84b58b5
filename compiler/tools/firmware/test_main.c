/* Runs a model on a board, for `quernel test`: inputs and outputs are files of the host. Files of inputs hold those of
 * earlier runs first, whose number earlier.raw says; states go from one to the next, and only the last is measured and
 * has outputs. Memory is painted before, and everything that the model may write to lies between guards; what it used of it is
 * printed. case.h, written for each model, lists tensors and memory as macros of macros. */
#include "board.h"
#include "case.h"
#ifdef COUNTS_KERNELS
#include "kernel_counts.h"
#endif

enum { kGuard = 64, kPaint = 0xa5, kGap = 256 };

#define BLOCK(name, bytes) static uint8_t name[(bytes) + 2 * kGuard] __attribute__((aligned(64)));
#define INPUT_BLOCK(index, member, bytes) BLOCK(input_##index, bytes)
#define OUTPUT_BLOCK(index, member, bytes) BLOCK(output_##index, bytes)
#define SHAPE_BLOCK(index, member, rank) static int64_t shape_##index[(rank) + 1];
INPUTS(INPUT_BLOCK)
OUTPUTS(OUTPUT_BLOCK)
SHAPES(SHAPE_BLOCK)
MEMORY(BLOCK)

static model_memory memory;
static model_inputs inputs;
static model_outputs outputs;
static const void* frame; /* below which the model's stack lies */

static void fail(const char* what, const char* which) {
  board_print(what);
  board_print(which);
  board_print("\n");
  board_exit(1);
}

static void* paint(uint8_t* block, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes + 2 * kGuard; ++i) ((volatile uint8_t*)block)[i] = kPaint;
  return block + kGuard;
}

/* Bytes up to the last one that is not painted. */
static uint32_t used(const char* name, const uint8_t* block, uint32_t bytes) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < bytes + 2 * kGuard; ++i) {
    if (block[i] == kPaint) continue;
    if (i < kGuard || i >= kGuard + bytes) fail("the model wrote beside ", name);
    last = i - kGuard + 1;
  }
  return last;
}

static void print_line(const char* name, uint64_t number, uint64_t most) {
  board_print(name);
  board_print(" ");
  board_print_number(number);
  board_print(" ");
  board_print_number(most);
  board_print("\n");
}

static void read_input(const char* file, uint32_t run, void* data, uint32_t bytes) {
  if (board_read_file(file, run * bytes, data, bytes) != (int32_t)bytes) fail("cannot read ", file);
}

static void write_output(const char* file, const void* data, uint32_t bytes) {
  if (board_write_file(file, data, bytes) != (int32_t)bytes) fail("cannot write ", file);
}

static void check_code(int32_t code) {
  if (code == MODEL_OK) return;
  board_print("model_run returned ");
  board_print_number((uint64_t)code);
  board_print("\n");
  board_exit(1);
}

/* What board_instructions leaves on the stack is not the model's: it lies in the gap. */
static __attribute__((noinline)) int32_t run_below_a_gap(void) {
  uint8_t gap[kGap];
  frame = board_stack_pointer();
  int32_t code = model_run(&memory, &inputs, &outputs);
  __asm__ volatile("" : : "r"(gap) : "memory"); /* which is there until now */
  return code;
}

int main(void) {
#define PREPARE_INPUT(index, member, bytes) inputs.member = paint(input_##index, bytes);
#define READ_INPUT(index, member, bytes) read_input("input_" #index ".raw", run, (void*)inputs.member, bytes);
#define READ_INNER_INPUT(index, member, bytes) \
  read_input("input_" #index ".raw", run, model_input_##member##_address(&memory), bytes);
#define PREPARE_OUTPUT(index, member, bytes) outputs.member = paint(output_##index, bytes);
#define PREPARE_SHAPE(index, member, rank) outputs.member = shape_##index;
#define PREPARE_MEMORY(member, bytes) memory.member = paint(member, bytes);
  INPUTS(PREPARE_INPUT)
  OUTPUTS(PREPARE_OUTPUT)
  SHAPES(PREPARE_SHAPE)
  MEMORY(PREPARE_MEMORY)
  RESET()

  uint32_t earlier = 0, run = 0;
  read_input("earlier.raw", 0, &earlier, sizeof earlier);
  for (; run < earlier; ++run) {
    INPUTS(READ_INPUT)
    INNER_INPUTS(READ_INNER_INPUT)
    check_code(model_run(&memory, &inputs, &outputs));
  }
  INPUTS(READ_INPUT)
  INNER_INPUTS(READ_INNER_INPUT)
#ifdef COUNTS_KERNELS
  forget_kernel_counts();
#endif
  board_paint_stack();
  uint64_t begin = board_instructions();
  int32_t code = run_below_a_gap();
  uint64_t instructions = board_instructions() - begin;
  uint32_t stack = board_stack_used(frame);
  check_code(code);

#define CHECK_INPUT(index, member, bytes) used("input_" #index, input_##index, bytes);
#define FINISH_OUTPUT(index, member, bytes)      \
  used("output_" #index, output_##index, bytes); \
  write_output("output_" #index ".raw", output_##index + kGuard, bytes);
#define FINISH_INNER_OUTPUT(index, member, bytes) \
  write_output("output_" #index ".raw", model_output_##member##_address(&memory), bytes);
#define PRINT_SHAPE(index, member, rank) \
  for (int d = 0; d < (rank); ++d) print_line("shape_" #index, (uint64_t)shape_##index[d], (uint64_t)d);
#define PRINT_MEMORY(member, bytes) print_line(#member, used(#member, member, bytes), bytes);
  INPUTS(CHECK_INPUT)
  OUTPUTS(FINISH_OUTPUT)
  INNER_OUTPUTS(FINISH_INNER_OUTPUT)
  SHAPES(PRINT_SHAPE)
  MEMORY(PRINT_MEMORY)
#ifdef COUNTS_KERNELS
  print_kernel_counts(print_line);
#endif
  print_line("stack", stack, MODEL_STACK_BYTES);
  print_line("instructions", instructions, board_instruction_step);
  return 0;
}
