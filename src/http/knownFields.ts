/** How one field of a route is read from a body (docs/contract.md section 2). */
export interface KnownField {
  /** Carries bytes, in multipart bodies only. */
  readonly file?: boolean;
  /** Also exists per type of subject: `name[person]`. */
  readonly perSubject?: boolean;
  /** Unit of a JSON number, which has none of its own; absent: the number is read as its text. */
  readonly number?: 'px' | '%';
  /** The values of a JSON list are one value, separated by spaces; otherwise the last one counts. */
  readonly list?: boolean;
}

/** The fields of a route by name; all others are ignored, and the answer says so. */
export type KnownFields = ReadonlyMap<string, KnownField>;

/** `image_file[]` and `image_file[0]`, as clients name the elements of a list; `shadow_type[person]`. */
const bracketed = /^([^[\]]+)\[([^[\]]*)\]$/;

export interface FieldName {
  /** The name under which its value is kept: `image_file`, `shadow_type[person]`. */
  readonly name: string;
  /** The field: `image_file`, `shadow_type`. */
  readonly field: string;
  readonly known: KnownField;
}

/** The field that a name in a request stands for; undefined if the route has none. */
export function fieldNamed(name: string, fields: KnownFields): FieldName | undefined {
  const known = fields.get(name);
  if (known) return { name, field: name, known };
  const [, field = '', index = ''] = bracketed.exec(name) ?? [];
  const base = fields.get(field);
  if (!base) return undefined;
  if (/^\d*$/.test(index)) return { name: field, field, known: base };
  return base.perSubject ? { name, field, known: base } : undefined;
}

/** The maximum number of characters of a name in `X-Ignored-Fields`, and of names. */
const maxShown = 64;
const maxNames = 20;

/** A name as it may stand in a header: percent-encoded, shortened between two characters. */
const escaped = (name: string): string =>
  encodeURIComponent(name.replace(/\p{Surrogate}/gu, '\uFFFD'))
    .slice(0, maxShown)
    .replace(/%[0-9A-F]?$/, '');

/** The value of `X-Ignored-Fields`; undefined if nothing was ignored. */
export function ignoredFields(names: Iterable<string>): string | undefined {
  const all = [...new Set(names)];
  if (all.length === 0) return undefined;
  const more = all.length > maxNames ? [`and ${all.length - maxNames} more`] : [];
  return [...all.slice(0, maxNames).map(escaped), ...more].join(', ');
}
