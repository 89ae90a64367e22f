import type { Command } from 'commander';
import { type Answer, expectOk, openClient } from './lib/client.ts';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { drawnJpeg } from './lib/images.ts';
import { computed, type Figure, measured, type Outcome } from './lib/outcome.ts';
import { startPlainServer } from './lib/plainServer.ts';
import { memory, processorMs } from './lib/server.ts';
import { median, quantile } from './lib/stats.ts';
import { openTarget } from './lib/target.ts';

interface RepeatsOptions extends Shared {
  readonly mp: readonly number[];
  readonly parallel: number;
}

export const command: BenchCommand = {
  name: 'repeats',
  title: 'Repeated requests',
  summary: 'requests answered from kept results: how many a second, and what each costs the server',
  shared: { rounds: 3, seconds: 5 },
  options: (command: Command) =>
    command
      .option('--mp <list>', 'megapixels of the uploads', values.numbers, [0.06, 1])
      .option('--parallel <n>', 'requests at once', values.whole, 100),
  all: {},
};

/** Requests by how they are answered; `plain`: by a server that only reads the body and sends the same bytes. */
const WAYS = ['plain', 'image', 'key'] as const;
type Way = (typeof WAYS)[number];

/** One upload sent again and again for a while. */
interface Round {
  readonly perSecond: number;
  /** Milliseconds of each answer. */
  readonly times: readonly number[];
  /** Processor time of the server, milliseconds an answer. */
  readonly each: number;
}

export interface Upload {
  readonly megapixels: number;
  readonly kilobytes: number;
  readonly rounds: Readonly<Record<Way, readonly Round[]>>;
}

/** The goal is for uploads of about 18 kB. */
const GOAL = { megapixels: 0.06, atLeast: 0.35 };

/** Median over the rounds of the rate of repeats over that of the plain server in the same round. */
export const rateOverPlain = ({ rounds }: Upload, way: Way): number =>
  median(rounds[way].map(({ perSecond }, i) => perSecond / (rounds.plain[i]?.perSecond ?? Number.NaN)));

export function figuresOf(uploads: readonly Upload[]): readonly Figure[] {
  return uploads.flatMap((upload) => {
    const { megapixels, rounds } = upload;
    return WAYS.filter((way) => way !== 'plain').flatMap((way) => [
      measured(
        `repeats.${megapixels}mp.${way}`,
        `repeat by ${way}, ${megapixels} MP`,
        'ms',
        rounds[way].map(({ times }) => median(times)),
      ),
      computed(
        `repeats.${megapixels}mp.${way}.over_plain`,
        `repeats by ${way} a second, ${megapixels} MP, of a server that only reads and answers`,
        '×',
        rateOverPlain(upload, way),
        ...(megapixels === GOAL.megapixels ? [{ atLeast: GOAL.atLeast }] : []),
      ),
    ]);
  });
}

/** Sends requests, `parallel` at once, for `seconds`; each answer must pass `check`. */
async function sendFor(
  post: () => Promise<Answer>,
  check: (answer: Answer) => boolean,
  { parallel, seconds, pid }: { readonly parallel: number; readonly seconds: number; readonly pid: number },
): Promise<Round> {
  const times: number[] = [];
  const used = await processorMs(pid);
  const begin = performance.now();
  const worker = async () => {
    while (performance.now() - begin < seconds * 1000) {
      const answer = expectOk(await post());
      if (!check(answer)) throw new Error('the answer is not the expected one');
      times.push(answer.ms);
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  const elapsed = performance.now() - begin;
  return {
    perSecond: (1000 * times.length) / elapsed,
    times,
    each: ((await processorMs(pid)) - used) / times.length,
  };
}

/** Client and server share the machine; the client takes the smaller part. The ways alternate, round by round. */
export async function run(
  { mp, parallel, rounds: count, seconds }: RepeatsOptions,
  { progress }: Context,
): Promise<Outcome> {
  const { client, pid = 0, close } = await openTarget({}, { CUTOUT_LOG_LEVEL: 'info' });
  const uploads: Upload[] = [];
  const megabytes: number[] = [];
  try {
    for (const megapixels of mp) {
      const image = await drawnJpeg(megapixels);
      const fields = { size: 'preview', format: 'jpg' };
      const byImage = () => client.cutout(image, fields, { same: true });
      const byKey = () => client.cutout(image, fields, { same: true, idempotencyKey: `bench-${megapixels}` });
      const { body } = expectOk(await byImage());
      expectOk(await byKey());
      const plain = await startPlainServer({ type: 'image/jpeg', body });
      const plainClient = openClient({ url: plain.url, key: 'none' });
      const rounds: Record<Way, Round[]> = { plain: [], image: [], key: [] };
      const limits = { parallel, seconds };
      const same = (answer: Answer) => answer.body.equals(body);
      const repeated = (answer: Answer) => answer.replayed && same(answer);
      const send = {
        plain: () =>
          sendFor(() => plainClient.cutout(image, fields, { same: true }), same, {
            ...limits,
            pid: plain.pid,
          }),
        image: () => sendFor(byImage, repeated, { ...limits, pid }),
        key: () => sendFor(byKey, repeated, { ...limits, pid }),
      };
      try {
        for (let i = 0; i < count; i++)
          for (const way of WAYS) {
            progress(`${megapixels} MP, ${way}, ${i + 1} of ${count}`);
            rounds[way].push(await send[way]());
          }
      } finally {
        await plainClient.close();
        await plain.close();
      }
      uploads.push({ megapixels, kilobytes: image.length / 1000, rounds });
      megabytes.push((await memory(pid)).now);
    }
  } finally {
    await close();
  }
  return {
    settings: { parallel, rounds: count, seconds },
    figures: figuresOf(uploads),
    parts: [
      {
        kind: 'table',
        title: 'Repeats',
        columns: [
          'MP',
          'same',
          'upload kB',
          'answers a second',
          'of plain',
          'server ms each',
          'median ms',
          'p99 ms',
          'server MB',
        ],
        rows: uploads.flatMap((upload, i) =>
          WAYS.map((way) => {
            const rounds = upload.rounds[way];
            const times = rounds.flatMap((round) => round.times);
            return [
              upload.megapixels,
              way,
              upload.kilobytes,
              median(rounds.map(({ perSecond }) => perSecond)),
              rateOverPlain(upload, way),
              median(rounds.map(({ each }) => each)),
              median(times),
              quantile(times, 0.99),
              way === 'plain' ? null : (megabytes[i] ?? null),
            ];
          }),
        ),
        note: 'plain: a node:http server that reads the body and answers with the same bytes, in turn with the others.',
      },
    ],
  };
}
