import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { BenchCommand, Context, Shared } from './lib/command.ts';
import { freePort } from './lib/freePort.ts';
import { measured, type Outcome } from './lib/outcome.ts';
import { main, modelsFolder, root } from './lib/paths.ts';
import { quantile } from './lib/stats.ts';

/** From the outside in: the difference between one and the next is the cost of that layer. */
const ways = {
  'npm start': ['npm', 'start'],
  'set-up check and server': [process.execPath, 'scripts/start.js'],
  'server alone': [process.execPath, '--enable-source-maps', main, 'serve', '--no-pull'],
} as const;

export const command: BenchCommand = {
  name: 'start',
  title: 'Second start',
  summary: 'from the command to the first 200 of /health/ready, with everything in place',
  shared: { rounds: 5 },
  options: (own) => own,
  all: {},
};

interface Start {
  /** Milliseconds until the port answers, and until the network is warm. */
  readonly answers: number;
  readonly ready: number;
  /** Part of that for opening the network and its first run, as reported by the server. */
  readonly network: number;
}

async function start([program, ...args]: readonly [string, ...string[]], data: string): Promise<Start> {
  const port = await freePort();
  const began = performance.now();
  const child = spawn(program, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      CUTOUT_PORT: String(port),
      CUTOUT_HOST: '127.0.0.1',
      CUTOUT_DATA_DIR: data,
      CUTOUT_MODELS_DIR: modelsFolder(),
    },
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  const ended = once(child, 'close');
  let answers: number | undefined;
  try {
    for (;;) {
      if (child.exitCode !== null) throw new Error(`it ended while starting:\n${text}`);
      const status = await fetch(`http://127.0.0.1:${port}/health/ready`).then(
        (answer) => answer.status,
        () => undefined,
      );
      const now = performance.now() - began;
      if (status !== undefined) answers ??= now;
      const network = /ready in (\d+) ms/.exec(text)?.[1];
      if (status === 200 && answers !== undefined && network !== undefined)
        return { answers, ready: now, network: Number(network) };
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

/** The variants alternate, round by round, after a first start that creates the account and the copy of the network. */
export async function run({ rounds }: Shared, { progress }: Context): Promise<Outcome> {
  const data = mkdtempSync(path.join(tmpdir(), 'cutout-bench-'));
  const starts = Object.keys(ways).map((name) => ({
    name: name as keyof typeof ways,
    samples: [] as Start[],
  }));
  try {
    progress('first start');
    await start(ways['npm start'], data);
    for (let round = 0; round < rounds; round++)
      for (const { name, samples } of starts) {
        progress(`${name}, ${round + 1} of ${rounds}`);
        samples.push(await start(ways[name], data));
      }
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
  const names = { ready: 'ready', answers: 'port answers', network: 'network opened and run once' } as const;
  return {
    settings: { rounds },
    figures: starts.map(({ name, samples }) =>
      measured(
        `start.${name.replaceAll(/\W+/g, '_')}`,
        `${name}, until ready`,
        'ms',
        samples.map(({ ready }) => ready),
        ...(name === 'npm start' ? [{ atMost: 2000 }] : []),
      ),
    ),
    parts: [
      {
        kind: 'table',
        title: 'Starts',
        columns: ['what', 'until', 'min ms', 'median ms', 'max ms'],
        rows: starts.flatMap(({ name, samples }) =>
          Object.entries(names).map(([key, title]) => [
            name,
            title,
            ...[0, 0.5, 1].map((q) =>
              quantile(
                samples.map((one) => one[key as keyof Start]),
                q,
              ),
            ),
          ]),
        ),
      },
    ],
  };
}
