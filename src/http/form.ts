import { type AppError, malformed } from '../errors.ts';

/**
 * The fields of a request, the same for all three content types: trimmed, the last value of a repeated field,
 * and without empty ones, which count as absent (docs/contract.md section 2).
 */
export interface Form {
  /** Text by field name. Nested JSON objects become names with brackets: `shadow_type[person]`. */
  readonly text: ReadonlyMap<string, string>;
  readonly files: ReadonlyMap<string, UploadedFile>;
}

export interface UploadedFile {
  readonly data: Buffer;
  /** File name given by the client; for labels only. */
  readonly name: string | undefined;
  /** Frees the memory of `data`, which nobody may read any more: it is empty afterwards. */
  readonly free: () => void;
}

export const emptyForm: Form = { text: new Map(), files: new Map() };

/** Characters of an option or a label, above what any of them needs. Images in base64 may be longer. */
export const maxTextLength = 2048;
/** The maximum number of characters of an address. */
export const maxUrlLength = 8192;
/** The maximum number of names and values of one body, whatever its type. */
export const maxFields = 1000;
/** The maximum number of characters of a field's name. */
export const maxNameLength = 200;

function scalar(value: unknown): string {
  if (typeof value === 'string') return value.trim();
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

export const nameTooLong = (): AppError =>
  malformed(`The name of a field has more than ${maxNameLength} characters.`);

export function checkName(name: string): void {
  if (name.length > maxNameLength) throw nameTooLong();
}

/**
 * Text fields from parsed name-value pairs, for routes that do not list their fields. Values other than text, number
 * and boolean are ignored. Throws `malformed_request` for a name that is too long.
 */
export function textFields(
  given: Iterable<{ readonly name: string; readonly value: unknown }>,
): Map<string, string> {
  const text = new Map<string, string>();
  for (const { name, value } of given) {
    checkName(name);
    const trimmed = scalar(Array.isArray(value) ? value.at(-1) : value);
    if (trimmed === '') text.delete(name);
    else text.set(name, trimmed);
  }
  return text;
}
