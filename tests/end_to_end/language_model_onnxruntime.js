// Evaluates the model of examples/language_model on a whole text with ONNX Runtime, without a cache from before, and
// prints the likeliest next token after each of its tokens, on one line.
//
//   node language_model_onnxruntime.js MODULE_FOLDER MODEL.onnx TOKEN...
const [folder, path, ...rest] = process.argv.slice(2);
const ort = require(folder);

async function main() {
  const tokens = rest.map(Number);
  const session = await ort.InferenceSession.create(path, { logSeverityLevel: 3 });
  const text = (values) => new ort.Tensor("int64", BigInt64Array.from(values.map(BigInt)), [tokens.length]);
  const feeds = { tokens: text(tokens), positions: text(tokens.map((_, i) => i)) };
  for (const name of session.inputNames)
    if (!(name in feeds)) feeds[name] = new ort.Tensor("float32", new Float32Array(256 * 32), [256, 32]);
  const { logits } = await session.run(feeds, ["logits"]);
  const width = logits.dims[1];
  const best = tokens.map((_, i) => {
    const row = logits.data.subarray(i * width, (i + 1) * width);
    return row.reduce((top, value, j) => (value > row[top] ? j : top), 0);
  });
  console.log(best.join(" "));
}

main();
