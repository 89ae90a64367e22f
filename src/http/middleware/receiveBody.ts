import { isAscii } from 'node:buffer';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { koaBody } from 'koa-body';
import { type AppError, clientClosed, fail, malformed } from '../../errors.ts';
import { outOfMemory } from '../../limits/limitErrors.ts';
import type { MemoryBudget, MemoryReservation } from '../../limits/memoryBudget.ts';
import { scanJson } from '../body/json.ts';
import { type BodyLimits, type BodyType, imageBodyLimits } from '../body/limits.ts';
import { type GivenForm, receiveMultipart } from '../body/multipart.ts';
import { receiveBytes, sendContinue } from '../body/receive.ts';
import { decodeUrlencoded, scanUrlencoded } from '../body/urlencoded.ts';
import { type Context, type Middleware, setHeaders } from '../context.ts';
import { emptyForm, type Form, textFields } from '../form.ts';
import { onResponseEnd } from '../onResponseEnd.ts';
import {
  addQuery,
  ignoredFields,
  type ReadFields,
  type RouteFields,
  readRouteFields,
} from '../routeFields.ts';

type Parser = ReturnType<typeof koaBody>;

/** Parses urlencoded forms from bytes that were received, scanned and shortened. */
const parse: Parser = koaBody({
  multipart: false,
  text: false,
  json: false,
  patchNode: false,
  // The length was limited before.
  formLimit: Number.MAX_SAFE_INTEGER,
  // Names stay as they are sent: `shadow_type[person]` is one name, not a nested object.
  queryString: { allowDots: false, depth: 0, duplicates: 'last', decoder: decodeUrlencoded },
});

/** Parses received bytes with koa-body, through the part of a context that it reads. */
async function parseForm(ctx: Context, bytes: Buffer): Promise<unknown> {
  const req = Object.assign(Readable.from([bytes]), { headers: { 'content-length': String(bytes.length) } });
  const request: { body?: unknown } = {};
  const is = (types: string[]) => ctx.request.is(types);
  const standIn = { method: 'POST', is, req, request };
  try {
    await parse(standIn as unknown as Parameters<Parser>[0], async () => {});
  } catch (thrown) {
    throw fail('malformed_request', { cause: thrown });
  }
  return request.body;
}

/**
 * Throws SyntaxError for invalid JSON; an empty body has no fields. Any name is a property of the object
 * itself, `__proto__` too, so that none reaches a prototype (koa-body would refuse that one).
 */
function parseJson(bytes: Buffer): unknown {
  const text = new TextDecoder().decode(bytes);
  return text === '' ? {} : JSON.parse(text);
}

const expected: Readonly<Record<BodyType, string>> = {
  'multipart/form-data': 'multipart/form-data',
  urlencoded: 'application/x-www-form-urlencoded',
  json: 'application/json',
};

/**
 * Undefined without a body; `unstated` for one whose type says nothing: none, or `text/plain`, which browsers write for
 * a text. It is read as JSON if it looks like it, where `lenient`: a page of another origin may send such a body
 * with the user's cookies.
 */
function typeOf(ctx: Context, { types }: BodyLimits, lenient: boolean): BodyType | 'unstated' | undefined {
  const found = ctx.request.is([...types]) as BodyType | false | null;
  if (found === null || ctx.get('Content-Length') === '0') return undefined;
  const unstated = lenient && (ctx.get('Content-Type').trim() === '' || ctx.request.is('text/plain'));
  if (found === false && !unstated) throw unsupportedType(types);
  const encoding = ctx.get('Content-Encoding').trim().toLowerCase();
  if (encoding !== '' && encoding !== 'identity')
    throw fail('unsupported_content_type', { detail: 'A body must be sent without a Content-Encoding.' });
  return found === false ? 'unstated' : found;
}

function unsupportedType(types: readonly BodyType[]): AppError {
  const words = types.map((type) => expected[type]).join(' or ');
  return fail('unsupported_content_type', types.length > 1 ? {} : { detail: `Expected ${words}.` });
}

/** Whether the first character is that of a JSON object. */
function looksLikeJson(bytes: Buffer): boolean {
  const start = bytes
    .subarray(0, 1024)
    .toString()
    .replace(/^\uFEFF/, '')
    .trimStart();
  return start.startsWith('{');
}

/** Memory reserved for a body of unknown length. It doubles, by `maxStep` bytes at most. */
const firstBytes = 16e3;
const maxStep = 4e6;

/** Memory of one request's body, held until its answer is sent or reading it has failed. */
class BodyMemory {
  readonly #reservation: MemoryReservation;
  #bytes: number;
  /** Whether nothing is held any more; the body of a request that has ended may still be parsed. */
  #ended = false;

  /** Throws 503 if there is no room. */
  constructor(ctx: Context, memory: MemoryBudget, bytes: number) {
    // All requests without a key count as one account.
    const reservation = memory.reserveUpload(ctx.state.account?.id ?? '', bytes);
    if (!reservation) throw outOfMemory();
    this.#reservation = reservation;
    this.#bytes = bytes;
    ctx.state.memory = reservation;
    onResponseEnd(ctx, () => this.release());
  }

  /** Idempotent. */
  release(): void {
    this.#ended = true;
    this.#reservation.release();
  }

  /** Reserves at least `bytes` in all; throws 503 if there is no room, 499 once the request has ended. */
  need(bytes: number): void {
    if (this.#ended) throw clientClosed;
    const missing = bytes - this.#bytes;
    if (missing <= 0) return;
    const step = Math.max(missing, Math.min(maxStep, this.#bytes));
    if (!this.#reservation.grow(step)) throw outOfMemory();
    this.#bytes += step;
  }

  /** The body is read: reduces the reservation to what is left of it. */
  shrinkTo(bytes: number): void {
    this.#reservation.resize(bytes);
  }
}

/**
 * Memory of a body, as a multiple of its bytes. A file: itself; one of unknown length is copied as it grows.
 * A text: its bytes, their text, and what is parsed of it; with characters beyond Latin-1 every character
 * takes two bytes. Texts in a form grow.
 */
const costs = { file: 1, growingFile: 2, text: 3, wideText: 5, formText: 5 } as const;
/** Memory per character of a form: its own, and the byte of a base64 file that it may stand for. */
const characterBytes = { latin: 1.75, wide: 2.75 } as const;

function maxBytesOf(type: BodyType | 'unstated', limits: BodyLimits): number {
  if (type === 'multipart/form-data') return limits.multipart;
  return limits[type === 'unstated' ? 'json' : type];
}

/** Memory reserved for a body of known length; for an unknown one it grows with what arrives. */
function memoryFor(type: BodyType | 'unstated', length: number | undefined): number {
  if (length === undefined) return firstBytes;
  return type === 'multipart/form-data' ? length : costs.text * length;
}

/**
 * Bytes that the largest allowed body takes while it is read. An image in base64 has at most as many
 * characters as JSON may have, however it is sent, and a label beside it may contain wide ones.
 */
export const largestBody =
  maxStep +
  Math.max(
    costs.text * imageBodyLimits.urlencoded,
    costs.wideText * imageBodyLimits.json,
    costs.growingFile * imageBodyLimits.multipart,
  );

const nothing: GivenForm = { given: [], files: emptyForm.files, ignored: [], wide: false };

/** Names and values of a body, parsed in steps short enough for the event loop. */
async function parseTexts(
  ctx: Context,
  type: 'json' | 'urlencoded',
  bytes: Buffer,
  memory: BodyMemory,
): Promise<GivenForm> {
  await turn();
  const ascii = isAscii(bytes);
  const scanned = await (type === 'json' ? scanJson(bytes) : scanUrlencoded(bytes));
  const wide = scanned.wide || !ascii;
  memory.need(costs[wide ? 'wideText' : 'text'] * bytes.length);
  const short = await scanned.shorten();
  await turn();
  // Nothing is parsed for a client that has disconnected.
  ctx.state.signal.throwIfAborted();
  const json = type === 'json';
  const values = short.restore(json ? parseJson(short.bytes) : await parseForm(ctx, short.bytes));
  if (typeof values !== 'object' || values === null || Array.isArray(values))
    throw new SyntaxError('no object');
  const given = Object.entries(values).map(([name, value]) => ({ name, value: value as unknown, json }));
  return { ...nothing, given, wide };
}

async function readTexts(
  ctx: Context,
  type: 'json' | 'urlencoded' | 'unstated',
  limits: BodyLimits,
  memory: BodyMemory,
): Promise<GivenForm> {
  const { signal } = ctx.state;
  const arrived = (received: number) => memory.need(costs.text * received);
  const bounds = { maxBytes: maxBytesOf(type, limits), tooLarge: limits.tooLarge, signal, arrived };
  const bytes = await receiveBytes(ctx.req, bounds);
  // curl and axios declare a text of JSON to be urlencoded if nobody sets its type.
  const json = type === 'json' || (limits.types.includes('json') && looksLikeJson(bytes));
  if (type === 'unstated' && !json) throw unsupportedType(limits.types);
  if (json && bytes.length > limits.json) throw limits.tooLarge();
  try {
    return await parseTexts(ctx, json ? 'json' : 'urlencoded', bytes, memory);
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    throw malformed('The body is not a JSON object.');
  }
}

async function readParts(
  ctx: Context,
  length: number | undefined,
  limits: BodyLimits,
  memory: BodyMemory,
  fields: RouteFields,
): Promise<GivenForm> {
  const file = length === undefined ? costs.growingFile : costs.file;
  const onBytes = (files: number, texts: number) => memory.need(file * files + costs.formText * texts);
  const { signal } = ctx.state;
  return receiveMultipart(ctx.req, { limits, signal, onBytes, fields });
}

/** Reads the body's fields and those of the query; what the route does not have is named in the answer and in the log. */
function fieldsOf(ctx: Context, { given, ignored }: GivenForm, fields: RouteFields | undefined): ReadFields {
  if (!fields) return { text: textFields(given), ignored: [] };
  const read = addQuery(readRouteFields(given, fields), ctx.querystring, fields);
  const names = ignoredFields([...read.ignored, ...ignored]);
  if (names !== undefined) {
    setHeaders(ctx, { 'X-Ignored-Fields': names });
    ctx.state.telemetry.add({ ignored: names });
  }
  return read;
}

async function readForm(
  ctx: Context,
  memory: MemoryBudget,
  limits: BodyLimits,
  fields: RouteFields | undefined,
): Promise<Form> {
  const type = typeOf(ctx, limits, fields !== undefined);
  if (!type) return { ...emptyForm, text: fieldsOf(ctx, nothing, fields).text };
  const given = ctx.get('Content-Length');
  const length = given === '' ? undefined : Number(given);
  if (length !== undefined && length > maxBytesOf(type, limits)) throw limits.tooLarge();
  const own = new BodyMemory(ctx, memory, memoryFor(type, length));
  sendContinue(ctx.req, ctx.res);
  const reading =
    type === 'multipart/form-data'
      ? readParts(ctx, length, limits, own, fields ?? noFields)
      : readTexts(ctx, type, limits, own);
  try {
    const read = await reading;
    const { text } = fieldsOf(ctx, read, fields);
    const characters = [...text.values()].reduce((sum, value) => sum + value.length, 0);
    const bytes = [...read.files.values()].reduce((sum, { data }) => sum + data.length, 0);
    own.shrinkTo(characterBytes[read.wide ? 'wide' : 'latin'] * characters + bytes);
    return { text, files: read.files };
  } catch (error) {
    // The connection may linger for its answer.
    own.release();
    throw error;
  }
}

const noFields: RouteFields = new Map();

/**
 * Reads a body of any allowed type into `ctx.state.form`; 503 if there is no memory for it. A slow upload may take long:
 * routes put guards behind it that check again what admitted the request. `fields`: those of the route, for one that
 * takes them from the query too and names what it ignores.
 */
export const receiveBody =
  (memory: MemoryBudget, limits: BodyLimits, fields?: RouteFields): Middleware =>
  async (ctx, next) => {
    ctx.state.form = await ctx.state.telemetry.timed('upload', () => readForm(ctx, memory, limits, fields));
    await next();
  };

/** The maximum number of bytes of all unauthenticated bodies together, while they are read. */
const maxRawBytes = 8 * 1024 * 1024;

/**
 * Reads the bytes of a body as sent, for signature checks: any type, at most `maxBytes` bytes. The sender is unknown,
 * so all such bodies together get little memory, counted as they arrive. Throws 503 if there is none.
 */
export function receiveRawBody(memory: MemoryBudget) {
  let reading = 0;
  return async (ctx: Context, maxBytes: number, tooLarge: () => AppError): Promise<Buffer> => {
    const own = new BodyMemory(ctx, memory, firstBytes);
    let before = 0;
    const arrived = (received: number) => {
      reading += received - before;
      before = received;
      if (reading > maxRawBytes) throw outOfMemory();
      own.need(costs.growingFile * received);
    };
    onResponseEnd(ctx, () => {
      reading -= before;
      before = 0;
    });
    sendContinue(ctx.req, ctx.res);
    return receiveBytes(ctx.req, { maxBytes, tooLarge, signal: ctx.state.signal, arrived });
  };
}

export type RawBody = ReturnType<typeof receiveRawBody>;
