import { type AppError, fail } from '../errors.ts';

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

/**
 * The maximum number of characters of an option or a label, above what any of them needs. Images in base64
 * may be longer.
 */
export const maxTextLength = 2048;
/** The maximum number of characters of an address. */
export const maxUrlLength = 8192;
/** The maximum number of characters of a field's name. */
export const maxNameLength = 200;

/** Fields that carry bytes, in multipart bodies only. */
export const fileFields: ReadonlySet<string> = new Set(['image_file', 'bg_image_file', 'mask_file']);

const last = (value: unknown): unknown => (Array.isArray(value) ? value.at(-1) : value);

function scalar(value: unknown): string {
  const text = typeof value === 'string' ? value.trim() : undefined;
  if (text !== undefined) return text;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

export const nameTooLong = (): AppError =>
  fail('malformed_request', { detail: `The name of a field has more than ${maxNameLength} characters.` });

export function checkName(name: string): void {
  if (name.length > maxNameLength) throw nameTooLong();
}

/**
 * Text fields from parsed name-value pairs. Values other than text, number, boolean or (one level of) object
 * are ignored; so are the names of file fields. Throws `malformed_request` for a name that is too long.
 */
export function textFields(pairs: Iterable<readonly [string, unknown]>): Map<string, string> {
  const text = new Map<string, string>();
  const put = (name: string, value: unknown): void => {
    checkName(name);
    const trimmed = scalar(last(value));
    if (trimmed !== '' && !fileFields.has(name)) text.set(name, trimmed);
    else text.delete(name);
  };
  for (const [name, value] of pairs) {
    checkName(name);
    const single = last(value);
    if (typeof single === 'object' && single !== null && !Array.isArray(single)) {
      for (const [key, inner] of Object.entries(single)) {
        checkName(key);
        put(`${name}[${key}]`, inner);
      }
    } else {
      put(name, single);
    }
  }
  return text;
}
