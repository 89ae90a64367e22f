/** What a terminal obeys instead of showing it: control characters but for tab and ends of lines, and changes of direction. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const obeyed = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/** The text with such characters written as in JSON: names come from files, accounts and identity providers. */
export const printable = (text: string): string =>
  text.replaceAll(obeyed, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

type Write = NodeJS.WriteStream['write'];

/** The streams that `printSafely` has changed, with their own `write`. */
const own = new WeakMap<object, Write>();

/** From now on texts that are written to this stream are printable; bytes stay as they are. */
export function printSafely(stream: NodeJS.WriteStream): void {
  const write = stream.write.bind(stream) as (chunk: string | Uint8Array, ...rest: unknown[]) => boolean;
  own.set(stream, stream.write.bind(stream));
  stream.write = ((chunk: string | Uint8Array, ...rest: unknown[]) =>
    write(typeof chunk === 'string' ? printable(chunk) : chunk, ...rest)) as Write;
}

/** The stream as it was, for what moves the cursor of a terminal. */
export function unfiltered<Stream extends NodeJS.WritableStream>(stream: Stream): Stream {
  const write = own.get(stream);
  return write ? (Object.create(stream, { write: { value: write } }) as Stream) : stream;
}
