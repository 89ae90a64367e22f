// The forms of a network in one engine: node formsRun.js NETWORK THREADS ROUNDS FORM…
// Each FORM is a key of preparedForms (paths.ts). Runs them in turn and prints one JSON line: the milliseconds of the
// runs of each, and of the processor meanwhile.
import { loadNetwork, openEngine } from './engine.ts';
import { type PreparedForm, preparedForms } from './paths.ts';

const [network = '', threads, rounds, ...forms] = process.argv.slice(2);
const engine = openEngine(Number(threads), { pixelThreads: 1 });
const files = preparedForms(network);
for (const form of forms as PreparedForm[]) await loadNetwork(engine, network, files[form], form);
const size = { width: 64, height: 64 };
const times = Object.fromEntries(
  forms.map((form) => [form, { wall: [] as number[], processor: [] as number[] }]),
);
for (let round = 0; round < Number(rounds); round++) {
  for (const form of forms) {
    const data = new Uint8Array(size.width * size.height * 4).fill(255);
    const before = process.cpuUsage();
    const { inferMs } = await engine.matte(
      { data, ...size },
      { network: form, hiddenColour: 'clear', ...size },
    );
    const { user, system } = process.cpuUsage(before);
    times[form]?.wall.push(inferMs);
    times[form]?.processor.push((user + system) / 1000);
  }
}
await engine.close(0);
console.log(JSON.stringify(times));
