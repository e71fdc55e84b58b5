// Runs a decoder of ONNX Runtime GenAI's form with ONNX Runtime, caches that grow, always the likeliest token next. Prints
// a line for each new token: its number, and how far its logit is above the second, as a part of the logits' range.
//
//   node language_model_greedy.js MODULE_FOLDER MODEL.onnx COUNT TOKEN...
const [folder, path, count, ...prompt] = process.argv.slice(2);
const ort = require(folder);

async function main() {
  const session = await ort.InferenceSession.create(path, { logSeverityLevel: 3, intraOpNumThreads: 1 });
  const [layers, heads, size] = JSON.parse(process.env.CACHE_SHAPE);
  const integers = (values) => new ort.Tensor("int64", BigInt64Array.from(values.map(BigInt)), [1, values.length]);
  let caches = {};
  for (let i = 0; i < layers; ++i)
    for (const kind of ["key", "value"])
      caches[`past_key_values.${i}.${kind}`] = new ort.Tensor("float32", new Float32Array(0), [1, heads, 0, size]);
  let tokens = prompt.map(Number);
  for (let total = 0, step = 0; step < Number(count); ++step) {
    total += tokens.length;
    const feeds = { input_ids: integers(tokens), attention_mask: integers(Array(total).fill(1)), ...caches };
    const results = await session.run(feeds);
    const row = results.logits.data.slice(-results.logits.dims[2]);
    let best = 0, second = 1, least = row[0];
    for (let j = 1; j < row.length; ++j) {
      least = Math.min(least, row[j]);
      if (row[j] > row[best]) [best, second] = [j, best];
      else if (row[j] > row[second] || second === best) second = j;
    }
    console.log(best, (row[best] - row[second]) / (row[best] - least));
    for (const name of Object.keys(caches)) caches[name] = results[name.replace("past_key_values", "present")];
    tokens = [best];
  }
}

main();
