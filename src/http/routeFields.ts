import { malformed } from '../errors.ts';
import { checkName, maxFields, maxUrlLength } from './form.ts';

/** How one field of a route is read from a body (docs/contract.md section 2). */
export interface RouteField {
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
export type RouteFields = ReadonlyMap<string, RouteField>;

/** `image_file[]` and `image_file[0]`, as clients name the elements of a list; `shadow_type[person]`. */
const bracketed = /^([^[\]]+)\[([^[\]]*)\]$/;

interface FieldName {
  /** The name under which its value is kept: `image_file`, `shadow_type[person]`. */
  readonly name: string;
  /** The field: `image_file`, `shadow_type`. */
  readonly field: string;
  readonly known: RouteField;
}

/** The field that a name in a request stands for; undefined if the route has none. */
export function fieldNamed(name: string, fields: RouteFields): FieldName | undefined {
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

export interface GivenField {
  readonly name: string;
  /** Text, or any value of JSON. */
  readonly value: unknown;
  /** Whether it was written in JSON; a form may still have a text in the quotes of JSON. */
  readonly json: boolean;
}

/** The text fields of a body, and the names of those that were ignored. */
export interface ReadFields {
  readonly text: Map<string, string>;
  readonly ignored: readonly string[];
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Text without the quotes of a JSON text, which some clients write around every value of a form. */
function unquoted(text: string): string {
  if (text.length < 2 || !text.startsWith('"') || !text.endsWith('"')) return text;
  const inner = text.slice(1, -1);
  // An image in base64 is longer, and has nothing to unescape.
  if (text.length > maxUrlLength || !inner.includes('\\')) return inner;
  try {
    return JSON.parse(text) as string;
  } catch {
    return inner;
  }
}

/** The text that a value stands for; empty: absent. */
function textOf(value: unknown, json: boolean, { number }: RouteField): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return (json ? value : unquoted(value.trim())).trim();
  if (typeof value === 'number') return `${value}${number ?? ''}`;
  // The option refuses what is neither text nor number, and says what it received.
  return typeof value === 'boolean' ? String(value) : JSON.stringify(value);
}

function oneText({ value, json }: GivenField, known: RouteField): string {
  if (!Array.isArray(value)) return textOf(value, json, known);
  if (!known.list) return textOf(value.at(-1), json, known);
  return value.map((each) => textOf(each, json, known)).join(' ');
}

/**
 * Reads the text fields of a body. Fields that the route does not have, and file fields outside a multipart file, are
 * ignored and named. Throws `malformed_request` for a name that is too long.
 */
export function readRouteFields(given: Iterable<GivenField>, fields: RouteFields): ReadFields {
  const text = new Map<string, string>();
  const ignored: string[] = [];
  const put = (one: GivenField): void => {
    checkName(one.name);
    const found = fieldNamed(one.name, fields);
    if (!found || found.known.file) {
      ignored.push(one.name);
      return;
    }
    const value = oneText(one, found.known);
    if (value === '') text.delete(found.name);
    else text.set(found.name, value);
  };
  for (const one of given) {
    checkName(one.name);
    const single = Array.isArray(one.value) ? one.value.at(-1) : one.value;
    if (isObject(single) && fields.get(one.name)?.perSubject) {
      for (const [key, value] of Object.entries(single)) put({ ...one, name: `${one.name}[${key}]`, value });
    } else {
      put(one);
    }
  }
  return { text, ignored };
}

/** Adds the query's fields that the body does not have: some clients send the options of a POST there. */
export function addQuery({ text, ignored }: ReadFields, query: string, fields: RouteFields): ReadFields {
  if (query === '') return { text, ignored };
  const inBody = new Set([...text.keys()].map((name) => fieldNamed(name, fields)?.field));
  const pairs = [...new URLSearchParams(query)].filter(([, value]) => value.trim() !== '');
  if (pairs.length > maxFields) throw malformed(`The query has more than ${maxFields} fields.`);
  const given = pairs.map(([name, value]) => ({ name, value, json: false }));
  const read = readRouteFields(given, fields);
  const added = [...read.text].filter(([name]) => !inBody.has(fieldNamed(name, fields)?.field));
  return { text: new Map([...text, ...added]), ignored: [...ignored, ...read.ignored] };
}
