import { isAscii } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { type AppError, fail } from '../../errors.ts';
import { UploadBuffer } from '../../uploadBuffer.ts';
import { checkName, fileFields, type UploadedFile } from '../form.ts';
import { type BodyLimits, maxFields, maxFiles } from './limits.ts';
import { headerValue } from './parameters.ts';
import { PartReader, type PartReceiver, type Sink } from './partReader.ts';
import { receive } from './receive.ts';

/** Most bytes of the headers of one part. */
const maxHeaderBytes = 8 * 1024;
const maxHeaders = 32;
/** Includes parts that carry nothing: without a name, or without headers. */
const maxParts = maxFields + maxFiles;
/** RFC 2046, section 5.1.1. */
const maxBoundaryLength = 70;

const malformed = (detail: string): AppError => fail('malformed_request', { detail });

interface MultipartForm {
  /** In the order of the parts, repeated names included. */
  readonly texts: readonly (readonly [string, string])[];
  readonly files: ReadonlyMap<string, UploadedFile>;
  /** Whether any text has characters beyond ASCII. */
  readonly wide: boolean;
}

interface MultipartBounds {
  readonly limits: BodyLimits;
  readonly signal: AbortSignal;
  /** Called with the bytes of files and texts kept so far; may throw if there is no memory for them. */
  readonly kept: (files: number, texts: number) => void;
}

/** What the headers of a part state. */
interface Head {
  readonly name: string | undefined;
  readonly filename: string | undefined;
  readonly base64: boolean;
}

const transferEncodings: ReadonlySet<string> = new Set(['', 'binary', '7bit', '8bit', 'utf-8']);

/** The headers of a part, their names in lower case. A line that is no header ends them. */
function headersOf(text: string): readonly (readonly [string, string])[] {
  const headers: [string, string][] = [];
  for (const line of text.split('\r\n')) {
    if (line === '') continue;
    const colon = line.indexOf(':');
    const last = headers.at(-1);
    if (/[\r\n]/.test(line)) break;
    // A folded line continues the header before it.
    if (last && /^[ \t]/.test(line)) last[1] += line;
    else if (colon > 0) headers.push([line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]);
    else break;
  }
  return headers;
}

function headOf(text: string): Head {
  const headers = headersOf(text);
  if (headers.length === 0) throw malformed('A part of the form has no headers.');
  if (headers.length > maxHeaders) throw malformed(`A part of the form has more than ${maxHeaders} headers.`);
  if (text.length > maxHeaderBytes)
    throw malformed(`The headers of a part of the form have more than ${maxHeaderBytes / 1024} KB.`);
  const first = (name: string) => headers.find(([known]) => known === name)?.[1] ?? '';
  const { parameters } = headerValue(first('content-disposition'));
  const name = parameters.get('name');
  if (name !== undefined) checkName(name);
  const encoding = first('content-transfer-encoding').toLowerCase();
  if (encoding !== 'base64' && !transferEncodings.has(encoding))
    throw malformed('The Content-Transfer-Encoding of a part is not supported.');
  return { name, filename: parameters.get('filename'), base64: encoding === 'base64' };
}

/** Old browsers send whole paths, and `%22` for a quote. */
const label = (filename: string | undefined): string | undefined =>
  filename?.slice(filename.lastIndexOf('\\') + 1).replaceAll('%22', '"') || undefined;

interface Part {
  readonly name: string;
  readonly filename: string | undefined;
  readonly bytes: UploadBuffer;
}

type Write = (piece: Buffer) => void;

/** The parts of one form, from their headers to their bytes. Nothing is written to disk. */
class Parts implements PartReceiver {
  readonly #limits: BodyLimits;
  readonly #kept: MultipartBounds['kept'];
  /** Length of the whole body, 0 if unknown. */
  readonly #length: number;
  readonly #texts: Part[] = [];
  readonly #files = new Map<string, Part>();
  #count = 0;
  #fileCount = 0;
  #fileBytes = 0;
  #textBytes = 0;

  constructor({ limits, kept }: MultipartBounds, length: number) {
    this.#limits = limits;
    this.#kept = kept;
    this.#length = length;
  }

  count(): void {
    this.#count += 1;
    if (this.#count > maxParts) throw malformed(`The form has more than ${maxParts} parts.`);
  }

  open(headers: string): Sink {
    const head = headOf(headers);
    const write = this.#writerFor(head);
    return head.base64 ? decoding(write) : { write, end: () => {} };
  }

  /** Of a repeated file the last counts, even if it is empty. */
  form(): MultipartForm {
    const files = new Map<string, UploadedFile>();
    for (const [name, part] of this.#files) {
      const data = part.bytes.take();
      if (data.length > 0) files.set(name, { data, name: label(part.filename) });
    }
    const texts = this.#texts.map(({ name, bytes }) => [name, bytes.take()] as const);
    const wide = texts.some(([, bytes]) => !isAscii(bytes));
    return { texts: texts.map(([name, bytes]) => [name, bytes.toString()]), files, wide };
  }

  #writerFor({ name, filename }: Head): Write {
    if (name === undefined || name === '__proto__') return () => {};
    // Decided by the name alone: clients send files without a type or a file name.
    if (fileFields.has(name)) return this.#openFile({ name, filename });
    if (filename !== undefined) return this.#openUnknownFile();
    return this.#openText({ name, filename });
  }

  #countFile(): void {
    this.#fileCount += 1;
    if (this.#fileCount > maxFiles) throw malformed(`The form has more than ${maxFiles} files.`);
  }

  #openFile(head: Omit<Part, 'bytes'>): Write {
    this.#countFile();
    const { file, tooLarge } = this.#limits;
    const before = this.#files.get(head.name);
    if (before) this.#fileBytes -= before.bytes.size;
    const left = Math.max(0, this.#length - this.#fileBytes - this.#textBytes);
    const bytes = new UploadBuffer(left, file);
    this.#files.set(head.name, { ...head, bytes });
    return (piece) => {
      if (bytes.size + piece.length > file) throw tooLarge();
      this.#fileBytes += piece.length;
      this.#kept(this.#fileBytes, this.#textBytes);
      bytes.add(piece);
    };
  }

  /** Counted and discarded. */
  #openUnknownFile(): Write {
    this.#countFile();
    const { file, tooLarge } = this.#limits;
    let size = 0;
    return (piece) => {
      size += piece.length;
      if (size > file) throw tooLarge();
    };
  }

  #openText(head: Omit<Part, 'bytes'>): Write {
    const { text, tooLarge } = this.#limits;
    if (this.#texts.length === maxFields) throw malformed(`The form has more than ${maxFields} fields.`);
    const bytes = new UploadBuffer(64, text);
    this.#texts.push({ ...head, bytes });
    return (piece) => {
      this.#textBytes += piece.length;
      if (this.#textBytes > text) throw tooLarge();
      this.#kept(this.#fileBytes, this.#textBytes);
      bytes.add(piece);
    };
  }
}

/** Decodes base64 as it arrives, in groups of four characters; other characters are skipped. */
function decoding(write: Write): Sink {
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

function boundaryOf(req: IncomingMessage): string {
  const boundary = headerValue(req.headers['content-type'] ?? '').parameters.get('boundary');
  // No header contains a CR, on which the search relies.
  if (!boundary || boundary.includes('\r')) throw malformed('The Content-Type has no boundary.');
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
  const parts = new Parts(bounds, Number(req.headers['content-length'] ?? 0));
  const reader = new PartReader(boundaryOf(req), maxHeaderBytes, parts);
  const { multipart: maxBytes, tooLarge } = limits;
  await receive(req, { maxBytes, tooLarge, signal }, (piece) => reader.write(piece));
  if (!reader.complete) throw malformed('The form ends before its last boundary.');
  return parts.form();
}
