// Times llama.cpp in this process by npm's node-llama-cpp and prints one JSON object.
//
//   language_llama.mjs FOLDER_OF_NODE_MODULES MODEL.gguf THREADS CAPACITY TOKENS PAST SECONDS
//
// A run takes TOKENS tokens behind PAST ones and chooses the next: latency_ms includes that choice. base_rss_bytes is what
// node held before the model was loaded, peak_rss_bytes the process's largest resident size.
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';

const [modules, modelPath, ...numbers] = process.argv.slice(2);
const [threads, capacity, tokens, past, seconds] = numbers.map(Number);
const {getLlama} = await import(pathToFileURL(join(modules, 'node-llama-cpp/dist/index.js')));
const memory = (key) => 1024 * Number(new RegExp(`${key}:\\s*(\\d+)`).exec(readFileSync('/proc/self/status', 'utf8'))[1]);
const ids = (count) => Array.from({length: count}, (_, i) => 300 + i);

const llama = await getLlama({gpu: false, build: 'never', logLevel: 'error', maxThreads: threads});
const base = memory('VmHWM');
const start = performance.now();
const model = await llama.loadModel({modelPath});
const context = await model.createContext({contextSize: capacity, threads, batchSize: 512, flashAttention: true});
const load = performance.now() - start;
const sequence = context.getSequence();
if (past > 0) await sequence.evaluateWithoutGeneratingNewTokens(ids(past));
const times = [];
let token;
for (let run = 0, begin = performance.now(); run < 5 || performance.now() - begin < seconds * 1e3; run++) {
  if (sequence.nextTokenIndex > past) await sequence.eraseContextTokenRanges([{start: past, end: sequence.nextTokenIndex}]);
  const from = performance.now();
  for await (const next of sequence.evaluate(ids(tokens), {temperature: 0, yieldEogToken: true})) {
    times.push(performance.now() - from);
    token = next;
    break;
  }
  if (run === 0) times.pop(), begin = performance.now();
}
times.sort((a, b) => a - b);
console.log(JSON.stringify({
  load_ms: load, latency_ms: {median: times[times.length >> 1], min: times[0]}, runs: times.length, token,
  base_rss_bytes: base, peak_rss_bytes: memory('VmHWM')}));
process.exit(0);
