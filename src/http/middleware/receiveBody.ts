import { isAscii } from 'node:buffer';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { koaBody } from 'koa-body';
import { type AppError, fail } from '../../errors.ts';
import type { Hold, MemoryBudget } from '../../limits/memory.ts';
import { scanJson } from '../body/json.ts';
import { type BodyLimits, type BodyType, IMAGES } from '../body/limits.ts';
import { receiveMultipart } from '../body/multipart.ts';
import { receiveBytes } from '../body/receive.ts';
import { decodeUrlencoded, scanUrlencoded } from '../body/urlencoded.ts';
import type { Context, Middleware } from '../context.ts';
import { sendContinue } from '../deferContinue.ts';
import { emptyForm, type Form, textFields } from '../form.ts';
import { onResponseEnd } from '../onResponseEnd.ts';

/** When another upload may have made room. */
const retrySeconds = 2;

type Parser = ReturnType<typeof koaBody>;

/** Of JSON and of urlencoded forms, from bytes that were received, looked at, and shortened. */
const parse: Parser = koaBody({
  multipart: false,
  text: false,
  patchNode: false,
  jsonTypes: ['json'],
  // Bounded before: here no length is too large.
  jsonLimit: Number.MAX_SAFE_INTEGER,
  formLimit: Number.MAX_SAFE_INTEGER,
  // Names stay as they are sent: `shadow_type[person]` is one name, not a nested object.
  queryString: { allowDots: false, depth: 0, duplicates: 'last', decoder: decodeUrlencoded },
});

/** What koa-body reads of a context. Its request is these bytes, which came without any encoding. Rejects with SyntaxError for what is no JSON. */
async function parsed(ctx: Context, bytes: Buffer): Promise<unknown> {
  const req = Object.assign(Readable.from([bytes]), { headers: { 'content-length': String(bytes.length) } });
  const request: { body?: unknown } = {};
  const is = (types: string[]) => ctx.request.is(types);
  const standIn = { method: 'POST', is, req, request };
  try {
    await parse(standIn as unknown as Parameters<Parser>[0], async () => {});
  } catch (thrown) {
    throw thrown instanceof SyntaxError ? thrown : fail('malformed_request', { cause: thrown });
  }
  return request.body;
}

const expected: Readonly<Record<BodyType, string>> = {
  'multipart/form-data': 'multipart/form-data',
  urlencoded: 'application/x-www-form-urlencoded',
  json: 'application/json',
};

/** Undefined without a body: there is nothing to have a type. */
function typeOf(ctx: Context, { types }: BodyLimits): BodyType | undefined {
  const found = ctx.request.is([...types]) as BodyType | false | null;
  if (found === null || ctx.get('Content-Length') === '0') return undefined;
  if (found === false) {
    const words = types.map((type) => expected[type]).join(' or ');
    throw fail('unsupported_content_type', types.length > 1 ? {} : { detail: `Expected ${words}.` });
  }
  const encoding = ctx.get('Content-Encoding').trim().toLowerCase();
  if (encoding !== '' && encoding !== 'identity')
    throw fail('unsupported_content_type', { detail: 'A body must be sent without a Content-Encoding.' });
  return found;
}

const noRoom = () =>
  fail('service_unavailable', {
    reason: 'memory',
    detail: 'The memory of the server is used by other requests. Try again.',
    retryAfter: retrySeconds,
  });

/** What is set aside for a body of which nobody knows how long it becomes. It doubles, by `mostStep` bytes at most. */
const firstBytes = 16e3;
const mostStep = 4e6;

/** The memory of one request's body, until its answer is out. */
class BodyMemory {
  readonly #memory: MemoryBudget;
  readonly #account: string;
  readonly #hold: Hold;
  readonly #more: Hold[] = [];
  #bytes: number;

  /** Throws 503 where there is no room. */
  constructor(ctx: Context, memory: MemoryBudget, bytes: number) {
    this.#memory = memory;
    // All who send without a key are one account here.
    this.#account = ctx.state.account?.id ?? '';
    this.#hold = this.#take(bytes);
    this.#bytes = bytes;
    ctx.state.hold = this.#hold;
    onResponseEnd(ctx, () => {
      this.#hold.release();
      this.#releaseMore();
    });
  }

  /** It takes as many bytes at least; throws 503 where there is no room for them. */
  need(bytes: number): void {
    const missing = bytes - this.#bytes;
    if (missing <= 0) return;
    const step = Math.max(missing, Math.min(mostStep, this.#bytes));
    this.#more.push(this.#take(step));
    this.#bytes += step;
  }

  /** It has been read: these are left of it. */
  settle(bytes: number): void {
    this.#hold.resize(bytes);
    this.#releaseMore();
  }

  #take(bytes: number): Hold {
    const hold = this.#memory.hold(this.#account, bytes);
    if (!hold) throw noRoom();
    return hold;
  }

  #releaseMore(): void {
    for (const hold of this.#more.splice(0)) hold.release();
  }
}

/**
 * Memory that a body takes, as many times its bytes. A file: itself; one whose length nobody said is moved while it
 * grows. A text: its bytes, they as text, and what is parsed of it; one with characters beyond Latin-1 has two bytes for
 * each. Texts in a form grow.
 */
const costs = { file: 1, growingFile: 2, text: 3, wideText: 5, formText: 5 } as const;
/** A character of a form that was read: itself, and the byte of a file that it may stand for in base64. */
const characterBytes = { latin: 1.75, wide: 2.75 } as const;

const mostBytes = (type: BodyType, limits: BodyLimits): number =>
  limits[type === 'multipart/form-data' ? 'multipart' : type];

/** Memory for a body of so many bytes; where nobody said how many, it grows with what comes. */
function memoryFor(type: BodyType, length: number | undefined): number {
  if (length === undefined) return firstBytes;
  return type === 'multipart/form-data' ? length : costs.text * length;
}

/**
 * Bytes that the largest legal body takes while it is read. An image in base64 has no more characters than JSON may have,
 * however it is sent, and a label beside it may be of wide ones.
 */
export const largestBody =
  mostStep +
  Math.max(
    costs.text * IMAGES.urlencoded,
    costs.wideText * IMAGES.json,
    costs.growingFile * IMAGES.multipart,
  );

interface Read {
  readonly form: Form;
  /** Whether any of its texts has characters beyond Latin-1. */
  readonly wide: boolean;
}

/** Names and values of a body. Every step takes no longer than others can wait. */
async function parseTexts(
  ctx: Context,
  type: 'json' | 'urlencoded',
  bytes: Buffer,
  memory: BodyMemory,
): Promise<Read> {
  await turn();
  const ascii = isAscii(bytes);
  const scanned = await (type === 'json' ? scanJson(bytes) : scanUrlencoded(bytes));
  const wide = scanned.wide || !ascii;
  memory.need(costs[wide ? 'wideText' : 'text'] * bytes.length);
  const short = await scanned.shorten();
  await turn();
  const values = short.restore(await parsed(ctx, short.bytes));
  if (typeof values !== 'object' || values === null || Array.isArray(values))
    throw new SyntaxError('no object');
  return { form: { text: textFields(Object.entries(values)), files: emptyForm.files }, wide };
}

async function readTexts(
  ctx: Context,
  type: 'json' | 'urlencoded',
  limits: BodyLimits,
  memory: BodyMemory,
): Promise<Read> {
  const { signal } = ctx.state;
  const arrived = (received: number) => memory.need(costs.text * received);
  const bounds = { most: limits[type], tooLarge: limits.tooLarge, signal, arrived };
  const bytes = await receiveBytes(ctx.req, bounds);
  try {
    return await parseTexts(ctx, type, bytes, memory);
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    throw fail('malformed_request', { detail: 'The body is not a JSON object.' });
  }
}

async function readParts(
  ctx: Context,
  length: number | undefined,
  limits: BodyLimits,
  memory: BodyMemory,
): Promise<Read> {
  const file = length === undefined ? costs.growingFile : costs.file;
  const kept = (files: number, texts: number) => memory.need(file * files + costs.formText * texts);
  const { texts, files, wide } = await receiveMultipart(ctx.req, { limits, signal: ctx.state.signal, kept });
  return { form: { text: textFields(texts), files }, wide };
}

async function readForm(ctx: Context, memory: MemoryBudget, limits: BodyLimits): Promise<Form> {
  const type = typeOf(ctx, limits);
  if (!type) return emptyForm;
  const given = ctx.get('Content-Length');
  const length = given === '' ? undefined : Number(given);
  if (length !== undefined && length > mostBytes(type, limits)) throw limits.tooLarge();
  const own = new BodyMemory(ctx, memory, memoryFor(type, length));
  sendContinue(ctx.req, ctx.res);
  const { form, wide } =
    type === 'multipart/form-data'
      ? await readParts(ctx, length, limits, own)
      : await readTexts(ctx, type, limits, own);
  const characters = [...form.text.values()].reduce((sum, text) => sum + text.length, 0);
  const bytes = [...form.files.values()].reduce((sum, { data }) => sum + data.length, 0);
  own.settle(characterBytes[wide ? 'wide' : 'latin'] * characters + bytes);
  return form;
}

/**
 * Reads the body, whichever of its types it has, into `ctx.state.form`; 503 where memory has no room for it. What let the
 * request in must still hold afterwards.
 */
export const receiveBody =
  (memory: MemoryBudget, limits: BodyLimits = IMAGES): Middleware =>
  async (ctx, next) => {
    ctx.state.form = await ctx.state.telemetry.timed('upload', () => readForm(ctx, memory, limits));
    // Whoever sends slowly decides how long ago the guards were asked.
    for (const allowed of ctx.state.still ?? []) await allowed();
    await next();
  };

/** Bytes that the bodies of strangers may have together, while they are read. */
const mostRawBytes = 8 * 1024 * 1024;

/**
 * The bytes of a body as they were sent, for what is signed; of any type, `most` of them at most. Who sends them is not known
 * yet: they count as they come, and all of them together have little room. Throws 503 where there is none.
 */
export function receiveRawBody(memory: MemoryBudget) {
  let reading = 0;
  return async (ctx: Context, most: number, tooLarge: () => AppError): Promise<Buffer> => {
    const own = new BodyMemory(ctx, memory, firstBytes);
    let before = 0;
    const arrived = (received: number) => {
      reading += received - before;
      before = received;
      if (reading > mostRawBytes) throw noRoom();
      own.need(costs.growingFile * received);
    };
    onResponseEnd(ctx, () => {
      reading -= before;
      before = 0;
    });
    sendContinue(ctx.req, ctx.res);
    return receiveBytes(ctx.req, { most, tooLarge, signal: ctx.state.signal, arrived });
  };
}

export type RawBody = ReturnType<typeof receiveRawBody>;
