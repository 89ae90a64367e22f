import { Writable } from 'node:stream';
import { koaBody } from 'koa-body';
import { Collected } from '../../collected.ts';
import { AppError, fail } from '../../errors.ts';
import type { Hold, MemoryBudget } from '../../limits/memory.ts';
import type { Context, Middleware } from '../context.ts';
import { onceEnded } from '../ended.ts';
import { continueUpload } from '../expect.ts';
import { emptyForm, type Form, fileFields, textFields, type UploadedFile } from '../form.ts';

const mebibyte = 1024 * 1024;
/** Most bytes of a body of each type, and of a file and a text in one. */
export interface BodyLimits {
  readonly file: number;
  readonly json: number;
  readonly urlencoded: number;
  readonly text: number;
  readonly tooLarge: () => AppError;
}

/** CONTRACT section 3. A legal file in base64 and percent-encoding fits. */
export const PICTURES: BodyLimits = {
  file: 22 * mebibyte,
  json: 32 * mebibyte,
  urlencoded: 48 * mebibyte,
  text: 32 * mebibyte,
  tooLarge: () => fail('file_too_large'),
};

const small = 256 * 1024;
/** For routes that take no picture. Some of them are open to anybody. */
export const SETTINGS: BodyLimits = {
  file: small,
  json: small,
  urlencoded: small,
  text: small,
  tooLarge: () => fail('file_too_large', { detail: 'A body may have 256 KB here.' }),
};

/** When another upload may have made room. */
const retrySeconds = 2;

type FormidableOptions = NonNullable<NonNullable<Parameters<typeof koaBody>[0]>['formidable']>;
type Part = Parameters<NonNullable<FormidableOptions['onPart']>>[0];

/**
 * Decides by its name what a part is, never by what it says of itself: clients send files without a type or
 * without a file name. Text is read as UTF-8; with the encoding that some clients name (8bit), formidable
 * throws where nobody can catch it.
 */
function settlePart(part: Part): void {
  const isFile = fileFields.has(part.name ?? '') || part.originalFilename !== null;
  part.mimetype = isFile ? 'application/octet-stream' : null;
  Object.assign(part, { transferEncoding: 'utf-8' });
}

/** Collects a file in memory, or only counts it when it is a field that does not exist. */
function sink(file: Collected | undefined, limits: BodyLimits): Writable {
  let size = 0;
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      if (size > limits.file) return done(limits.tooLarge());
      file?.add(chunk);
      done();
    },
  });
}

/**
 * A parser for one request, so that its files belong to it alone. Nothing touches a disk. `length`: bytes of the body, 0
 * when nobody said.
 */
function createParser(limits: BodyLimits, length: number) {
  const collected = new Map<unknown, Collected>();
  let field = '';
  const formidable: FormidableOptions = {
    maxFileSize: limits.file,
    // Checked while streaming, for all files together; `sink` does so for each.
    maxTotalFileSize: 3 * limits.file,
    maxFiles: 16,
    maxFields: 1000,
    maxFieldsSize: limits.text,
    allowEmptyFiles: true,
    minFileSize: 0,
    onPart: (part, handle) => {
      if (part.name === null || part.name === '__proto__') return;
      settlePart(part);
      handle(part);
    },
    // formidable announces a file and then, in the same turn, asks where to write it.
    onFileBegin: (name) => {
      field = name;
    },
    // Nothing is written, so no name needs to be random: drawing one costs more than all the rest of a part.
    filename: () => 'upload',
    fileWriteStreamHandler: (file) => {
      if (!fileFields.has(field)) return sink(undefined, limits);
      const before = [...collected.values()].reduce((sum, { size }) => sum + size, 0);
      const bytes = new Collected(Math.max(0, length - before), limits.file);
      collected.set(file, bytes);
      return sink(bytes, limits);
    },
  };
  const parse = koaBody({
    multipart: true,
    text: false,
    patchNode: false,
    jsonTypes: ['json'],
    jsonLimit: limits.json,
    formLimit: limits.urlencoded,
    // Names stay as they are sent: `shadow_type[person]` is one name, not a nested object.
    queryString: { allowDots: false, depth: 0, duplicates: 'last' },
    formidable,
  });
  return { parse, collected };
}

function uploads(files: object, collected: ReadonlyMap<unknown, Collected>): Map<string, UploadedFile> {
  const result = new Map<string, UploadedFile>();
  for (const [name, value] of Object.entries(files)) {
    const file = Array.isArray(value) ? value.at(-1) : value;
    const data = collected.get(file)?.take();
    if (data === undefined || data.length === 0) continue;
    const original = file.originalFilename;
    result.set(name, { data, name: typeof original === 'string' && original !== '' ? original : undefined });
  }
  return result;
}

/** Codes of formidable (FormidableError.js) that have a meaning of their own; all others: not a form. */
const formidableErrors: Readonly<Record<number, () => AppError>> = {
  1002: () => fail('client_closed'),
  1007: () => fail('malformed_request', { detail: 'The form has more than 1000 fields.' }),
  1015: () => fail('malformed_request', { detail: 'The form has more than 16 files.' }),
  1013: () => fail('malformed_request', { detail: 'The Content-Type names no boundary.' }),
};

/** Its codes for bodies over a limit. */
const tooLarge: ReadonlySet<number> = new Set([1006, 1009, 1016]);

function bodyError(thrown: unknown, limits: BodyLimits): AppError {
  if (thrown instanceof AppError) return thrown;
  if (!(thrown instanceof Error)) return fail('internal_error', { cause: thrown });
  const { code, status, type } = thrown as Error & { code?: unknown; status?: unknown; type?: unknown };
  const known = typeof code === 'number' ? formidableErrors[code]?.() : undefined;
  if (known) return known;
  if (type === 'request.aborted' || code === 'ECONNRESET') return fail('client_closed');
  if (status === 413 || (typeof code === 'number' && tooLarge.has(code))) return limits.tooLarge();
  if (status === 415)
    return fail('malformed_request', { detail: 'The Content-Encoding of the body is not supported.' });
  if (thrown instanceof SyntaxError)
    return fail('malformed_request', { detail: 'The body is not a JSON object.' });
  return fail('malformed_request', { cause: thrown });
}

/** Rejects with the signal's reason once it is aborted; the work then goes on unobserved. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, stop } = rejection(signal);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    stop();
  }
}

function rejection(signal: AbortSignal): { promise: Promise<never>; stop: () => void } {
  let stop = () => {};
  const promise = new Promise<never>((_resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    stop = () => signal.removeEventListener('abort', abort);
  });
  return { promise, stop };
}

function checkType(ctx: Context): 'none' | 'multipart' | 'text' {
  const type = ctx.request.is('multipart/form-data', 'urlencoded', 'json');
  // Without a body there is nothing to have a type.
  if (type === null || ctx.get('Content-Length') === '0') return 'none';
  if (!type) throw fail('unsupported_content_type');
  return type === 'multipart/form-data' ? 'multipart' : 'text';
}

/**
 * Memory that a body takes while it is read, as many times its length: of text its pieces, they put together, and what is
 * parsed of it.
 */
const whileRead = { multipart: 1, text: 3 } as const;
/** A character of a form: itself, and the byte of a file that it may stand for in base64. */
const bytesOfCharacter = 1.75;

/** Bytes that are announced; of a body without a length, as many as it may take, a file being moved while it grows. */
function announced(ctx: Context, kind: 'multipart' | 'text', limits: BodyLimits): number {
  const most = kind === 'multipart' ? 2 * limits.file : limits.json;
  const length = Number(ctx.get('Content-Length') || most);
  return Math.min(length, Math.max(3 * limits.file, limits.urlencoded));
}

/** Sets the memory of the request aside until its answer is out. */
function holdMemory(ctx: Context, memory: MemoryBudget, bytes: number): Hold {
  // All who send without a key are one account here.
  const hold = memory.hold(ctx.state.account?.id ?? '', bytes);
  if (!hold)
    throw fail('service_unavailable', {
      reason: 'memory',
      detail: 'The memory of the server is taken by other requests. Try again.',
      headers: { 'Retry-After': String(retrySeconds) },
    });
  ctx.state.hold = hold;
  onceEnded(ctx, hold.release);
  return hold;
}

async function readForm(ctx: Context, memory: MemoryBudget, limits: BodyLimits): Promise<Form> {
  const kind = checkType(ctx);
  if (kind === 'none') return emptyForm;
  const hold = holdMemory(ctx, memory, whileRead[kind] * announced(ctx, kind, limits));
  continueUpload(ctx.req, ctx.res);
  const { parse, collected } = createParser(limits, Number(ctx.get('Content-Length') || 0));
  try {
    await unlessAborted(
      parse(ctx as Parameters<typeof parse>[0], async () => {}),
      ctx.state.signal,
    );
  } catch (thrown) {
    throw bodyError(thrown, limits);
  }
  const { body, files } = ctx.request;
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw fail('malformed_request', { detail: 'The body is not a JSON object.' });
  const form = { text: textFields(Object.entries(body)), files: uploads(files ?? {}, collected) };
  const characters = [...form.text.values()].reduce((sum, text) => sum + text.length, 0);
  const bytes = [...form.files.values()].reduce((sum, { data }) => sum + data.length, 0);
  hold.resize(bytesOfCharacter * characters + bytes);
  // The parsed body can be many megabytes of base64: from here on only the form holds them.
  ctx.request.body = null;
  return form;
}

/** Reads the body, whichever of the three types it has, into `ctx.state.form`; 503 where memory has no room for it. */
export const body =
  (memory: MemoryBudget, limits: BodyLimits = PICTURES): Middleware =>
  async (ctx, next) => {
    ctx.state.form = await ctx.state.notes.timed('upload', () => readForm(ctx, memory, limits));
    await next();
  };
