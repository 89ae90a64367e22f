#!/usr/bin/env node
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const inPackage = (file) => fileURLToPath(new URL(`../${file}`, import.meta.url));

const mainUrl = new URL('../build/ts/src/main.js', import.meta.url);
const main = fileURLToPath(mainUrl);
/** Binaries by platform: of a package made by `npm run package` only. */
const binaries = inPackage('build/binaries');

/** One sentence that says why Cutout cannot run here, or ''. */
async function problem() {
  if (existsSync(inPackage('scripts/setup/nodejs.js'))) {
    const { onSupportedNode } = await import('../scripts/setup/nodejs.js');
    await onSupportedNode();
  } else if (existsSync(binaries)) {
    const { packageSentence, systemSentence } = await import('../scripts/setup/requirements.js');
    const sentence = packageSentence(readdirSync(binaries)) || systemSentence();
    if (sentence) return sentence;
  }
  return existsSync(main) ? '' : 'it is not built yet; run `npm run setup` in its folder.';
}

/** Replaces this process by one whose environment has what a server needs before it starts, unless it has it already. */
async function replaceProcess() {
  if (!process.execve || process.send || !existsSync(inPackage('scripts/setup/process.js'))) return;
  const { processSettings } = await import('../scripts/setup/process.js');
  const settings = processSettings();
  if (Object.keys(settings).every((name) => name in process.env)) return;
  const args = [...process.execArgv, '--enable-source-maps', main, ...process.argv.slice(2)];
  process.execve(process.execPath, [process.execPath, ...args], { ...settings, ...process.env });
}

const sentence = await problem();
if (sentence) {
  console.error(`cutout: ${sentence}`);
  process.exitCode = 1;
} else {
  await replaceProcess();
  process.setSourceMapsEnabled(true);
  await import(mainUrl.href);
}
