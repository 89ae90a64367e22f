// Cuts files out one after another with @imgly/background-removal-node and prints one JSON line each:
//   node peer.js RUNS OUT_FOLDER FILE...
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { removeBackground } from '@imgly/background-removal-node';

const [runs, out, ...files] = process.argv.slice(2);
for (const file of files) {
  const source = new Blob([await readFile(file)], { type: 'image/jpeg' });
  for (let run = 0; run < Number(runs); run++) {
    const started = performance.now();
    const blob = await removeBackground(source, {
      model: 'medium',
      output: { format: 'image/png', quality: 1 },
    });
    const bytes = Buffer.from(await blob.arrayBuffer());
    const ms = performance.now() - started;
    await writeFile(path.join(out, `${path.parse(file).name}.png`), bytes);
    console.log(JSON.stringify({ file: path.basename(file), run, ms, bytes: bytes.length }));
  }
}
