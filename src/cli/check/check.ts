import type { Config } from '../../config/readConfig.ts';
import { UserError } from '../../errors.ts';
import { sampleBackground, sampleImage } from '../../image/sampleImage.ts';
import { maxFileBytes } from '../../inputLimits.ts';
import { configureImages } from '../../server/images.ts';
import { readInput } from '../run/files.ts';
import { type Answer, type AskLimits, ask } from './answer.ts';
import { compare, type Difference, isSameSubject, summaryOf } from './compare.ts';
import { bodyOf, type CheckRequest, type Fields, plain, requestsFor } from './requests.ts';

export interface CheckOptions {
  /** Address of the other service. */
  readonly against: string;
  /** Address of a running Cutout. */
  readonly server: string;
  /** Also asks for results that cost a whole credit. */
  readonly full: boolean;
  /** Fields that are added to every request. */
  readonly field: Fields;
  /** Seconds for one answer. */
  readonly timeout: number;
  readonly json: boolean;
  /** Lists the requests and sends none. */
  readonly dryRun: boolean;
}

interface Streams {
  readonly out: NodeJS.WritableStream;
  readonly err: NodeJS.WritableStream;
  /** Ends the check. */
  readonly signal: AbortSignal;
}

interface Service {
  readonly endpoint: URL;
  readonly key: string;
  /** The variable that has the key. */
  readonly variable: string;
}

interface Row {
  readonly request: string;
  readonly here: Answer;
  readonly there: Answer;
  readonly differences: readonly Difference[];
  /** Mean difference of the pictures, of 255. */
  readonly mean?: number | undefined;
}

/** As many requests in a row that one of the services does not answer end the check. */
const maxUnanswered = 3;
/** Largest answer that is read. */
const maxBytes = 256 * 1024 ** 2;
/** A key that no service gives out. */
const wrongKey = 'cutout-check-wrong-key';

/**
 * The service at an address: that of the API without `/v1.0`, or the whole path of its `removebg` (`cutout`). Throws
 * UserError.
 */
function serviceAt(option: string, address: string, variable: string, key: string | undefined): Service {
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UserError(`${option} must be an http or https address, not "${address}".`);
  if (url.username !== '' || url.password !== '')
    throw new UserError(`${option} must have no user name and password.`);
  if (key === undefined)
    throw new UserError(
      `Set ${variable} to the key of the service of ${option}, or to any text if it needs none.`,
    );
  url.search = '';
  url.pathname = url.pathname.replace(/\/$/, '');
  if (!/\/(?:removebg|cutout)$/.test(url.pathname)) url.pathname += '/v1.0/removebg';
  return { endpoint: url, key, variable };
}

/** Throws UserError if the answer to the plain request shows that no request can succeed. */
function assertUsable({ endpoint, variable }: Service, { status, contract, other }: Answer): void {
  const type = contract['Content-Type'] ?? 'nothing';
  if (status === 200 && type.startsWith('image/')) return;
  const to = other['Location'];
  const reason = to === undefined ? other['error title'] : `it redirects to ${to}`;
  const said = reason === undefined ? '' : `: ${reason}`;
  throw new UserError(
    `${endpoint.href} answers the plain request with status ${status} and ${type}${said}. Check the address, which may be the whole one of its removebg, and the key in ${variable}.`,
  );
}

/** A row as text: what a client can notice is marked by an exclamation mark. */
function describeRow({ request, here, there, differences, mean }: Row): string {
  const both = (text: (answer: Answer) => string) => [...new Set([text(here), text(there)])].join(' / ');
  const facts = [
    both(summaryOf),
    ...(mean === undefined ? [] : [`mean difference ${mean.toFixed(1)} of 255`]),
  ];
  const seconds = `${here.seconds.toFixed(2)} / ${there.seconds.toFixed(2)} s`;
  const lines = differences.map(
    ({ kind, what, here: one, there: other }) =>
      `  ${kind === 'contract' ? '!' : ' '} ${what}: ${one} / ${other}`,
  );
  return `${[`${request}: ${both(({ status }) => String(status))}, ${seconds}, ${facts.join(', ')}`, ...lines].join('\n')}\n`;
}

/** What is sent to both services, and within which bounds. */
interface Sending {
  readonly photo: Buffer;
  readonly background: Buffer;
  readonly extra: Fields;
  readonly limits: AskLimits;
}

function send({ endpoint, key }: Service, request: CheckRequest, sending: Sending): Promise<Answer> {
  const { photo, background, extra, limits } = sending;
  const isAccount = request.asked === 'account';
  const { headers, body } = isAccount ? {} : bodyOf(request, photo, background, extra);
  const sent = {
    ...headers,
    'X-Api-Key': request.wrongKey ? wrongKey : key,
    Accept: request.accept ?? 'image/*, application/zip',
  };
  const url = isAccount ? new URL('account', endpoint) : endpoint;
  return ask(url, { headers: sent, ...(body && { method: 'POST', body }) }, limits);
}

/** Yields the comparison of each request, sent to one service after the other, so that their times are comparable. */
async function* compareServices(
  [own, other]: readonly [Service, Service],
  requests: readonly CheckRequest[],
  sending: Sending,
): AsyncGenerator<Row> {
  let isSame = false;
  let unanswered = 0;
  for (const request of requests) {
    const here = await send(own, request, sending);
    const there = await send(other, request, sending);
    if (request === plain) {
      assertUsable(own, here);
      assertUsable(other, there);
    }
    const { differences, mean } = compare(request, here, there, isSame);
    if (request === plain) isSame = isSameSubject(mean);
    unanswered = here.status === 0 || there.status === 0 ? unanswered + 1 : 0;
    yield { request: request.name, here, there, differences, mean };
    if (unanswered === maxUnanswered)
      throw new UserError(`${maxUnanswered} requests in a row had no answer from one of the services.`);
  }
}

async function readPhoto(file: string): Promise<Buffer> {
  return readInput(file, maxFileBytes).catch((error: unknown) => {
    throw new UserError(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  });
}

/**
 * `cutout check`: sends the same requests to this service and to another one and lists what differs. Resolves with
 * whether no difference is one of the contract. Rejects with UserError if nothing can be compared.
 */
export async function check(
  file: string | undefined,
  { against, server, full, field, timeout, json, dryRun }: CheckOptions,
  { accounts }: Pick<Config, 'accounts'>,
  { out, err, signal }: Streams,
): Promise<boolean> {
  const requests = requestsFor(full);
  const count = (kind: CheckRequest['asked']) => requests.filter(({ asked }) => asked === kind).length;
  err.write(
    `At most ${count('preview')} previews and ${count('full')} results of full size may be charged by each service; ${count('refused')} requests should be refused, which costs nothing.\n`,
  );
  if (dryRun) {
    out.write(requests.map(({ name, asked }) => `${name}: ${asked}\n`).join(''));
    return true;
  }
  const services = [
    serviceAt('--server', server, 'CUTOUT_API_KEY', accounts.apiKey),
    serviceAt('--against', against, 'CUTOUT_AGAINST_KEY', accounts.againstKey),
  ] as const;
  const limits = {
    timeoutMs: 1000 * timeout,
    image: { ...configureImages({ inputFormats: [] }), maxBytes },
    signal,
  };
  const photo = file === undefined ? await sampleImage() : await readPhoto(file);
  const sending = { photo, background: await sampleBackground(), extra: field, limits };
  const rows: Row[] = [];
  for await (const row of compareServices(services, requests, sending)) {
    rows.push(row);
    if (!json) out.write(describeRow(row));
  }
  if (json)
    out.write(
      `${JSON.stringify({ requests: rows }, (name, value) => (name === 'picture' ? undefined : value), 2)}\n`,
    );
  const noticed = rows
    .flatMap(({ differences }) => differences)
    .filter(({ kind }) => kind === 'contract').length;
  if (!json)
    out.write(
      `${noticed || 'no'} ${noticed === 1 ? 'difference' : 'differences'} that a client can notice (here / there)\n`,
    );
  return noticed === 0;
}
