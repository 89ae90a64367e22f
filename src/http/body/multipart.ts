import { isAscii } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { Dicer } from '@fastify/busboy';
import { type AppError, fail } from '../../errors.ts';
import { freeBuffer, UploadBuffer } from '../../uploadBuffer.ts';
import { checkName, maxFields, maxTextLength, type UploadedFile } from '../form.ts';
import type { GivenField } from '../givenFields.ts';
import { fieldNamed, type KnownFields } from '../knownFields.ts';
import { type BodyLimits, maxFiles } from './limits.ts';
import { headerValue } from './parameters.ts';
import { catchInListener, receive } from './receive.ts';

/** The maximum number of bytes of the headers of one part. */
const maxHeaderBytes = 8 * 1024;
const maxHeaders = 32;
/** Includes parts that carry nothing: without a name, or without headers. */
const maxParts = maxFields + maxFiles;
/** RFC 2046, section 5.1.1. */
const maxBoundaryLength = 70;

/** Bytes that the parser may buffer: more than one read from a connection returns. */
const bufferedBytes = 256 * 1024;

type Headers = Readonly<Record<string, readonly string[]>>;

const malformed = (detail: string): AppError => fail('malformed_request', { detail });

interface MultipartForm {
  /** In the order of the parts, repeated names included. */
  readonly texts: readonly GivenField[];
  readonly files: ReadonlyMap<string, UploadedFile>;
  /** Names of files that the route does not have. */
  readonly ignored: readonly string[];
  /** Whether any text has characters beyond ASCII. */
  readonly wide: boolean;
}

interface MultipartBounds {
  readonly limits: BodyLimits;
  readonly fields: KnownFields;
  readonly signal: AbortSignal;
  /** Called with the bytes of files and texts kept so far; may throw if there is no memory for them. */
  readonly kept: (files: number, texts: number) => void;
}

/** What the headers of a part state. */
interface Head {
  readonly name: string | undefined;
  readonly filename: string | undefined;
  readonly base64: boolean;
  /** Declared to be JSON, as generated clients do with every text. */
  readonly json: boolean;
}

const transferEncodings: ReadonlySet<string> = new Set(['', 'binary', '7bit', '8bit', 'utf-8']);

function headOf(headers: Headers): Head {
  const lines = Object.entries(headers).flatMap(([name, values]) => values.map((value) => name + value));
  if (lines.length === 0) throw malformed('A part of the form has no headers.');
  if (lines.length > maxHeaders) throw malformed(`A part of the form has more than ${maxHeaders} headers.`);
  if (lines.reduce((sum, line) => sum + line.length, 0) > maxHeaderBytes)
    throw malformed(`The headers of a part of the form have more than ${maxHeaderBytes / 1024} KB.`);
  const { parameters } = headerValue(headers['content-disposition']?.[0] ?? '');
  const name = parameters.get('name');
  if (name !== undefined) checkName(name);
  const encoding = (headers['content-transfer-encoding']?.[0] ?? '').trim().toLowerCase();
  if (encoding !== 'base64' && !transferEncodings.has(encoding))
    throw malformed('The Content-Transfer-Encoding of a part is not supported.');
  const type = headerValue(headers['content-type']?.[0] ?? '').value.toLowerCase();
  return {
    name,
    filename: parameters.get('filename'),
    base64: encoding === 'base64',
    json: type === 'application/json',
  };
}

/** Old browsers send whole paths, and `%22` for a quote. */
const label = (filename: string | undefined): string | undefined =>
  filename?.slice(filename.lastIndexOf('\\') + 1).replaceAll('%22', '"') || undefined;

interface FilePart {
  readonly filename: string | undefined;
  readonly bytes: UploadBuffer;
}

interface TextPart {
  readonly name: string;
  readonly json: boolean;
  readonly bytes: UploadBuffer;
}

/** An option is short; what is longer is not parsed as JSON. */
function jsonValue(text: string): unknown {
  try {
    return text.length > maxTextLength ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function given({ name, json }: TextPart, text: string): GivenField {
  const value = json ? jsonValue(text) : undefined;
  return value === undefined ? { name, value: text, json: false } : { name, value, json: true };
}

type Write = (piece: Buffer) => void;

/** Receives the bytes of a part. */
interface Sink {
  readonly write: Write;
  readonly end: () => void;
}

/** The parts of one form, from their headers to their bytes. Nothing is written to disk. */
class Parts {
  readonly #limits: BodyLimits;
  readonly #kept: MultipartBounds['kept'];
  readonly #fields: KnownFields;
  /** Length of the whole body, 0 if unknown. */
  readonly #length: number;
  readonly #texts: TextPart[] = [];
  readonly #files = new Map<string, FilePart[]>();
  readonly #ignored: string[] = [];
  #count = 0;
  #fileCount = 0;
  #fileBytes = 0;
  #textBytes = 0;

  constructor({ limits, fields, kept }: MultipartBounds, length: number) {
    this.#limits = limits;
    this.#fields = fields;
    this.#kept = kept;
    this.#length = length;
  }

  /** Counts one more part of any kind. */
  count(): void {
    this.#count += 1;
    if (this.#count > maxParts) throw malformed(`The form has more than ${maxParts} parts.`);
  }

  /** Chooses the receiver for a part with these headers. */
  open(headers: Headers): Sink {
    const head = headOf(headers);
    const sink = this.#sinkFor(head);
    return head.base64 ? decoding(sink) : sink;
  }

  /** Of a repeated file the first that is not empty counts; the others have the same bytes. */
  form(): MultipartForm {
    const files = new Map<string, UploadedFile>();
    for (const [name, parts] of this.#files) {
      const [first, ...others] = parts.filter(({ bytes }) => bytes.size > 0);
      if (!first) continue;
      const data = first.bytes.take();
      for (const { bytes } of others) {
        if (!bytes.take().equals(data))
          throw malformed(`${name} was sent more than once, with different files. Send one file as ${name}.`);
        bytes.free();
      }
      files.set(name, { data, name: label(first.filename), free: () => first.bytes.free() });
    }
    const texts = this.#texts.map((part) => [part, part.bytes.take()] as const);
    const wide = texts.some(([, bytes]) => !isAscii(bytes));
    return {
      texts: texts.map(([part, bytes]) => given(part, bytes.toString())),
      files,
      ignored: this.#ignored,
      wide,
    };
  }

  #sinkFor({ name, filename, json }: Head): Sink {
    if (name === '__proto__') this.#ignored.push(name);
    if (name === undefined || name === '__proto__') return { write: () => {}, end: () => {} };
    // Decided by the name alone: clients send files without a type or a file name, and options with one.
    const found = fieldNamed(name, this.#fields);
    if (found?.known.file) return this.#openFile(found.name, filename);
    if (!found && filename !== undefined) return this.#openUnknownFile(name);
    return this.#openText(name, json);
  }

  #countFile(): void {
    this.#fileCount += 1;
    if (this.#fileCount > maxFiles) throw malformed(`The form has more than ${maxFiles} files.`);
  }

  #openFile(name: string, filename: string | undefined): Sink {
    this.#countFile();
    const { file, tooLarge } = this.#limits;
    const left = Math.max(0, this.#length - this.#fileBytes - this.#textBytes);
    const bytes = new UploadBuffer(left, file);
    this.#files.set(name, [...(this.#files.get(name) ?? []), { filename, bytes }]);
    const write: Write = (piece) => {
      if (bytes.size + piece.length > file) throw tooLarge();
      this.#fileBytes += piece.length;
      this.#kept(this.#fileBytes, this.#textBytes);
      bytes.add(piece);
      // All of what one read returned: no other part is in it.
      freeBuffer(piece);
    };
    return { write, end: () => {} };
  }

  /** Counted and discarded. */
  #openUnknownFile(name: string): Sink {
    this.#countFile();
    this.#ignored.push(name);
    const { file, tooLarge } = this.#limits;
    let size = 0;
    const write: Write = (piece) => {
      size += piece.length;
      if (size > file) throw tooLarge();
    };
    return { write, end: () => {} };
  }

  #openText(name: string, json: boolean): Sink {
    const { text, tooLarge } = this.#limits;
    if (this.#texts.length === maxFields) throw malformed(`The form has more than ${maxFields} fields.`);
    const bytes = new UploadBuffer(64, text);
    this.#texts.push({ name, json, bytes });
    const write: Write = (piece) => {
      this.#textBytes += piece.length;
      if (this.#textBytes > text) throw tooLarge();
      this.#kept(this.#fileBytes, this.#textBytes);
      bytes.add(piece);
    };
    return { write, end: () => {} };
  }
}

/** Decodes base64 as it arrives, in groups of four characters; other characters are skipped. */
function decoding({ write, end }: Sink): Sink {
  let rest = '';
  return {
    write: (piece) => {
      const text = rest + piece.toString('latin1').replace(/[^A-Za-z0-9+/_-]+/g, '');
      const whole = text.length - (text.length % 4);
      rest = text.slice(whole);
      if (whole > 0) write(Buffer.from(text.slice(0, whole), 'base64'));
    },
    end: () => {
      if (rest !== '') write(Buffer.from(rest, 'base64'));
      end();
    },
  };
}

/** Settings of Dicer that its types lack. */
interface DicerSettings extends Dicer.Config {
  readonly highWaterMark: number;
  readonly partHwm: number;
  /** Longer headers are truncated. Twice the accepted length, so that truncation is detected. */
  readonly maxHeaderSize: number;
}

function boundaryOf(req: IncomingMessage): string {
  const boundary = headerValue(req.headers['content-type'] ?? '').parameters.get('boundary');
  if (!boundary)
    throw malformed(
      'The Content-Type has no boundary. Let the client set this header: it writes the boundary of the body that it makes.',
    );
  if (boundary.length > maxBoundaryLength)
    throw malformed(`The boundary of the form has more than ${maxBoundaryLength} characters.`);
  return boundary;
}

/**
 * Parses a form while it arrives; the parts, their headers and the whole are bounded (docs/decisions/0188).
 * Rejects with an AppError.
 */
export async function receiveMultipart(
  req: IncomingMessage,
  bounds: MultipartBounds,
): Promise<MultipartForm> {
  const { limits, signal } = bounds;
  const settings: DicerSettings = {
    boundary: boundaryOf(req),
    maxHeaderPairs: maxHeaders + 1,
    maxHeaderSize: 2 * maxHeaderBytes,
    highWaterMark: bufferedBytes,
    partHwm: bufferedBytes,
  };
  const parser = new Dicer(settings);
  const parts = new Parts(bounds, Number(req.headers['content-length'] ?? 0));
  let open = 0;
  let finished = false;
  let done = () => {};
  const over = () => {
    if (finished && open === 0) done();
  };
  const { maxBytes, tooLarge } = { maxBytes: limits.multipart, tooLarge: limits.tooLarge };
  let fault = (_error: unknown) => {};
  let failure: { readonly error: unknown } | undefined;
  const failed = (error: unknown) => {
    failure ??= { error };
    fault(error);
  };
  const broken = (cause: unknown) =>
    failed(
      fail('malformed_request', {
        detail:
          'The multipart body ends early or has a boundary that its Content-Type does not name. Send all parts and the closing boundary.',
        cause,
      }),
    );
  const begin = (stream: Dicer.PartStream) => {
    // A piece of the body may contain thousands more parts.
    if (failure) return;
    open += 1;
    parts.count();
    let sink: Sink = { write: () => {}, end: () => {} };
    const read = (headers: object) => {
      sink = parts.open(headers as Headers);
    };
    stream.on('header', catchInListener(read, failed));
    stream.on(
      'data',
      catchInListener((piece: Buffer | string) => sink.write(piece as Buffer), failed),
    );
    const end = () => {
      sink.end();
      open -= 1;
      over();
    };
    stream.on('end', catchInListener(end, failed));
    stream.on('error', broken);
  };
  parser.on('part', catchInListener(begin, failed));
  parser.on('error', broken);
  parser.on('finish', () => {
    finished = true;
    over();
  });
  await receive(req, { maxBytes, tooLarge, signal }, (rejected) => {
    fault = rejected;
    return (piece) =>
      parser.write(piece) ? undefined : new Promise((drained) => parser.once('drain', drained));
  });
  await new Promise<void>((resolve, reject) => {
    done = resolve;
    fault = reject;
    if (failure) return reject(failure.error);
    if (finished) over();
    else parser.end();
  });
  return parts.form();
}
