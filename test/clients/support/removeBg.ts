// A program that uses npm's remove.bg as its documentation shows. Reads the calls as JSON from standard input and
// prints one outcome for each.
import { text } from 'node:stream/consumers';
import client from 'remove.bg';

export type Call =
  | ({ readonly verb: 'file'; readonly path: string } & Options)
  | ({ readonly verb: 'url'; readonly url: string } & Options)
  | ({ readonly verb: 'base64'; readonly base64img: string } & Options);

interface Options {
  readonly apiKey: string;
  readonly outputFile?: string;
  readonly [option: string]: unknown;
}

export type Outcome =
  | { readonly result: Readonly<Record<string, unknown>> }
  | { readonly errors: readonly Readonly<Record<string, unknown>>[] };

async function make({ verb, ...options }: Call): Promise<unknown> {
  if (verb === 'file')
    return client.removeBackgroundFromImageFile(options as { apiKey: string; path: string });
  if (verb === 'url') return client.removeBackgroundFromImageUrl(options as { apiKey: string; url: string });
  return client.removeBackgroundFromImageBase64(options as { apiKey: string; base64img: string });
}

const calls = JSON.parse(await text(process.stdin)) as Call[];
const outcomes: unknown[] = [];
for (const call of calls) {
  try {
    outcomes.push({ result: await make(call) });
  } catch (errors) {
    outcomes.push({ errors });
  }
}
process.stdout.write(JSON.stringify(outcomes));
