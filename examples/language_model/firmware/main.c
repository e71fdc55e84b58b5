/* Writes a text on a microcontroller: the decoder of a llama2.c checkpoint, always the likeliest token next. Weights are
 * read in place from flash; the caches of keys and values are RAM. The vocabulary comes from a file of the host, by
 * semihosting. Ends at the end of the text, or when the caches are full. */
#include "board.h"
#include "decoder.h"

enum {
  kPositions = DECODER_INPUT_ATTENTION_MASK_ELEMENTS,
  kVocabulary = DECODER_OUTPUT_LOGITS_ELEMENTS,
  kBegin = 1, /* also between texts */
  kEnd = 2,
  kFirstByte = 3 /* then one for each byte */
};

static uint8_t workspace[DECODER_WORKSPACE_BYTES] __attribute__((aligned(DECODER_ALIGNMENT)));
static uint8_t caches[DECODER_STATE_BYTES] __attribute__((aligned(DECODER_ALIGNMENT)));
static const decoder_memory memory = {.workspace = workspace, .state = caches};

/* Where each token's piece is in the file. */
static uint32_t pieces[kVocabulary];

/* The file: the longest piece, then for each token a score, a length and that many bytes. Returns 0 if it has fewer. */
static int find_pieces(void) {
  uint32_t at = 4;
  for (int token = 0; token < kVocabulary; ++token) {
    uint32_t numbers[2];
    if (board_read_file(VOCABULARY, at, numbers, sizeof numbers) != sizeof numbers) return 0;
    pieces[token] = at + 4;
    at += sizeof numbers + numbers[1];
  }
  return 1;
}

/* `is_first`: without the space before the first word. */
static void print_piece(int token, int is_first) {
  char text[65];
  uint32_t length = 1;
  if (token >= kFirstByte && token < kFirstByte + 256) {
    text[0] = (char)(token - kFirstByte);
  } else if (board_read_file(VOCABULARY, pieces[token], &length, 4) != 4 || length >= sizeof text ||
             board_read_file(VOCABULARY, pieces[token] + 4, text, length) != (int32_t)length) {
    length = 0;
  }
  text[length] = 0;
  board_print(is_first && text[0] == ' ' ? text + 1 : text);
}

/* The likeliest token behind this one, which stands at the position behind the last call's. */
static int next_token(int64_t token, int position) {
  static int64_t mask[kPositions];
  static float logits[kVocabulary];
  mask[position] = 1;
  const decoder_inputs inputs = {.input_ids = &token, .attention_mask = mask};
  const decoder_outputs outputs = {.logits = logits};
  if (decoder_run(&memory, &inputs, &outputs) != DECODER_OK) board_exit(1);
  int best = 0;
  for (int i = 1; i < kVocabulary; ++i)
    if (logits[i] > logits[best]) best = i;
  return best;
}

static void print_number(uint64_t number, const char* after) {
  board_print_number(number);
  board_print(after);
}

int main(void) {
  if (!find_pieces()) {
    board_print("cannot read the vocabulary of the model from " VOCABULARY "\n");
    return 1;
  }
  decoder_reset(&memory);
  uint64_t instructions = 0;
  uint32_t position = 0;
  for (int token = kBegin; position < kPositions; ++position) {
    const uint64_t begin = board_instructions();
    token = next_token(token, (int)position);
    instructions += board_instructions() - begin;
    if (token == kBegin || token == kEnd) break;
    print_piece(token, position == 0);
  }
  board_print(position < kPositions ? "\n" : "\nthe context is full\n");
  print_number(instructions / (position < kPositions ? position + 1 : position), " instructions per token\n");
  print_number(DECODER_CONSTANTS_BYTES, " bytes of weights, ");
  print_number(DECODER_CODE_BYTES, " of code, ");
  print_number(DECODER_WORKSPACE_BYTES, " of workspace, ");
  print_number(DECODER_STATE_BYTES, " of caches\n");
  return 0;
}
