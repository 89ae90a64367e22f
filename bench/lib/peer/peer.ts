import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { childScript, peersFolder } from '../paths.ts';
import { memory } from '../server.ts';

export interface About {
  readonly title: string;
  readonly licence: string;
  /** `isnet`: the network that the product uses. */
  readonly weights: string;
}

/** Exports of bench/peers/<name>/peer.js (bench/peers/README.md). */
export interface Adapter {
  readonly about: About;
  prepare(options: { readonly warmUp: string }): Promise<void>;
  run(file: string): Promise<{ readonly png: Uint8Array; readonly ms: number }>;
  close?(): Promise<void>;
}

export interface Peer {
  readonly about: About;
  /** Until the first image was processed. */
  readonly prepareMs: number;
  /** Cuts a JPEG file into a PNG file; resolves to milliseconds. */
  run(file: string, out: string): Promise<number>;
  /** Peak resident MB of its own process. */
  peak(): Promise<number>;
  close(): Promise<void>;
}

interface Line {
  readonly about?: About;
  readonly prepareMs?: number;
  readonly ms?: number;
  readonly error?: string;
}

/** Why a peer cannot run, in words; undefined if it can. */
export function missing(folder: string): string | undefined {
  if (!existsSync(path.join(folder, 'peer.js'))) return 'there is no peer.js';
  const file = path.join(folder, 'package.json');
  const { dependencies = {} } = JSON.parse(readFileSync(file, 'utf8')) as { dependencies?: object };
  const installed = Object.keys(dependencies).every((name) =>
    existsSync(path.join(folder, 'node_modules', name)),
  );
  return installed ? undefined : 'its packages are not installed (peers --install)';
}

export const peerFolder = (name: string): string => path.join(peersFolder, name);

/** Starts a peer in a separate process. Rejects with its last message if it cannot be prepared. */
export async function openPeer(folder: string, warmUp: string): Promise<Peer> {
  const child = spawn(process.execPath, [childScript('peer/host.js'), path.join(folder, 'peer.js'), warmUp], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-2000);
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async (): Promise<Line> => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error(`the peer in ${path.basename(folder)} ended: ${said.trim().slice(-500)}`);
      if (value.startsWith('{"peer":true')) return JSON.parse(value) as Line;
    }
  };
  const { about, prepareMs, error: fault } = await answer();
  if (!about || prepareMs === undefined) {
    await ended;
    throw new Error(fault ?? `the peer in ${path.basename(folder)} did not say what it is`);
  }
  return {
    about,
    prepareMs,
    async run(file, out) {
      child.stdin.write(`${JSON.stringify({ file, out })}\n`);
      const { ms, error } = await answer();
      if (ms === undefined) throw new Error(`${about.title}: ${error ?? 'no time'}`);
      return ms;
    },
    peak: async () => (await memory(child.pid ?? 0)).peak,
    async close() {
      child.stdin.end();
      await ended;
    },
  };
}
