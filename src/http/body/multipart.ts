import { isAscii } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { Dicer } from '@fastify/busboy';
import { fail, malformed } from '../../errors.ts';
import { freeBuffer, UploadBuffer } from '../../uploadBuffer.ts';
import { checkName, maxFields, maxTextLength, type UploadedFile } from '../form.ts';
import { fieldNamed, type GivenField, type RouteFields } from '../routeFields.ts';
import { headerValue } from './headerValue.ts';
import { type BodyLimits, maxFiles } from './limits.ts';
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

/** What a body has. */
export interface GivenForm {
  /** The texts in the order of the body, repeated names included. */
  readonly given: readonly GivenField[];
  readonly files: ReadonlyMap<string, UploadedFile>;
  /** Names of files that the route does not have. */
  readonly ignored: readonly string[];
  /** Whether any text may have characters beyond Latin-1. */
  readonly wide: boolean;
}

interface MultipartBounds {
  readonly limits: BodyLimits;
  readonly fields: RouteFields;
  readonly signal: AbortSignal;
  /** Called with the bytes of files and texts kept so far; may throw if there is no memory for them. */
  readonly onBytes: (files: number, texts: number) => void;
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
  readonly end?: () => void;
}

const discarding: Sink = { write: () => {} };

/** The parts of one form, from their headers to their bytes. Nothing is written to disk. */
class Parts {
  readonly #limits: BodyLimits;
  readonly #onBytes: MultipartBounds['onBytes'];
  readonly #fields: RouteFields;
  /** Length of the whole body, 0 if unknown. */
  readonly #length: number;
  readonly #texts: TextPart[] = [];
  readonly #files = new Map<string, FilePart[]>();
  readonly #ignored: string[] = [];
  #count = 0;
  #fileCount = 0;
  #fileBytes = 0;
  #textBytes = 0;

  constructor({ limits, fields, onBytes }: MultipartBounds, length: number) {
    this.#limits = limits;
    this.#fields = fields;
    this.#onBytes = onBytes;
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

  /** Returns the form. The first of a repeated file that is not empty counts; throws if the others have other bytes. */
  form(): GivenForm {
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
      given: texts.map(([part, bytes]) => given(part, bytes.toString())),
      files,
      ignored: this.#ignored,
      wide,
    };
  }

  #sinkFor({ name, filename, json }: Head): Sink {
    if (name === '__proto__') this.#ignored.push(name);
    if (name === undefined || name === '__proto__') return discarding;
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
      this.#onBytes(this.#fileBytes, this.#textBytes);
      bytes.add(piece);
      // All of what one read returned: no other part is in it.
      freeBuffer(piece);
    };
    return { write };
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
    return { write };
  }

  #openText(name: string, json: boolean): Sink {
    const { text, tooLarge } = this.#limits;
    if (this.#texts.length === maxFields) throw malformed(`The form has more than ${maxFields} fields.`);
    const bytes = new UploadBuffer(64, text);
    this.#texts.push({ name, json, bytes });
    const write: Write = (piece) => {
      this.#textBytes += piece.length;
      if (this.#textBytes > text) throw tooLarge();
      this.#onBytes(this.#fileBytes, this.#textBytes);
      bytes.add(piece);
    };
    return { write };
  }
}

/** Decodes base64 as it arrives, in groups of four characters; other characters are skipped. */
function decoding({ write }: Sink): Sink {
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

class FormParser {
  readonly #parser: Dicer;
  readonly #parts: Parts;
  /** Parts whose end has not been parsed. */
  #open = 0;
  #finished = false;
  #failure: { readonly error: unknown } | undefined;
  #done = () => {};
  #fault = (_error: unknown) => {};

  constructor(boundary: string, parts: Parts) {
    const settings: DicerSettings = {
      boundary,
      maxHeaderPairs: maxHeaders + 1,
      maxHeaderSize: 2 * maxHeaderBytes,
      highWaterMark: bufferedBytes,
      partHwm: bufferedBytes,
    };
    this.#parts = parts;
    this.#parser = new Dicer(settings);
    this.#parser.on(
      'part',
      catchInListener((stream: Dicer.PartStream) => this.#begin(stream), this.#failed),
    );
    this.#parser.on('error', this.#broken);
    this.#parser.on('finish', () => {
      this.#finished = true;
      this.#over();
    });
  }

  /** Calls `fault` with the first error. */
  onFault(fault: (error: unknown) => void): void {
    this.#fault = fault;
  }

  /** Parses a piece; a returned promise is fulfilled when the parser can take more. */
  write(piece: Buffer): Promise<void> | undefined {
    return this.#parser.write(piece)
      ? undefined
      : new Promise((drained) => this.#parser.once('drain', drained));
  }

  /** The body is complete. Resolves when all parts are parsed; rejects with the first error. */
  end(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#done = resolve;
      this.#fault = reject;
      if (this.#failure) return reject(this.#failure.error);
      if (this.#finished) this.#over();
      else this.#parser.end();
    });
  }

  readonly #failed = (error: unknown): void => {
    this.#failure ??= { error };
    this.#fault(error);
  };

  readonly #broken = (cause: unknown): void =>
    this.#failed(
      fail('malformed_request', {
        detail:
          'The multipart body ends early or has a boundary that its Content-Type does not name. Send all parts and the closing boundary.',
        cause,
      }),
    );

  #begin(stream: Dicer.PartStream): void {
    // A piece of the body may contain thousands more parts.
    if (this.#failure) return;
    this.#open += 1;
    this.#parts.count();
    let sink: Sink = discarding;
    const listen = <A extends readonly unknown[]>(event: string, listener: (...args: A) => void) =>
      stream.on(event, catchInListener(listener, this.#failed));
    listen('header', (headers: object) => {
      sink = this.#parts.open(headers as Headers);
    });
    listen('data', (piece: Buffer) => sink.write(piece));
    listen('end', () => {
      sink.end?.();
      this.#open -= 1;
      this.#over();
    });
    stream.on('error', this.#broken);
  }

  #over(): void {
    if (this.#finished && this.#open === 0) this.#done();
  }
}

/** Parses a form while it arrives; parts, headers and the whole are bounded (decision 0188). Throws AppError. */
export async function receiveMultipart(req: IncomingMessage, bounds: MultipartBounds): Promise<GivenForm> {
  const { limits, signal } = bounds;
  const parts = new Parts(bounds, Number(req.headers['content-length'] ?? 0));
  const parser = new FormParser(boundaryOf(req), parts);
  const { multipart: maxBytes, tooLarge } = limits;
  await receive(req, { maxBytes, tooLarge, signal }, (failed) => {
    parser.onFault(failed);
    return (piece) => parser.write(piece);
  });
  await parser.end();
  return parts.form();
}
