import { fail } from '../errors.ts';
import { checkName, maxFields, maxUrlLength } from './form.ts';
import { fieldNamed, type KnownField, type KnownFields } from './knownFields.ts';

/** A field as a body has it. */
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
function textOf(value: unknown, json: boolean, { number }: KnownField): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return (json ? value : unquoted(value.trim())).trim();
  if (typeof value === 'number') return `${value}${number ?? ''}`;
  // The option refuses what is neither text nor number, and says what it received.
  return typeof value === 'boolean' ? String(value) : JSON.stringify(value);
}

function oneText({ value, json }: GivenField, known: KnownField): string {
  if (!Array.isArray(value)) return textOf(value, json, known);
  if (!known.list) return textOf(value.at(-1), json, known);
  return value.map((each) => textOf(each, json, known)).join(' ');
}

/**
 * Reads the text fields of a body. Fields that the route does not have, and file fields outside a multipart file, are
 * ignored and named. Throws `malformed_request` for a name that is too long.
 */
export function readKnown(given: Iterable<GivenField>, fields: KnownFields): ReadFields {
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

/**
 * Adds the fields of a request's query that its body does not have: some clients send the options of a POST there.
 */
export function addQuery({ text, ignored }: ReadFields, query: string, fields: KnownFields): ReadFields {
  if (query === '') return { text, ignored };
  const inBody = new Set([...text.keys()].map((name) => fieldNamed(name, fields)?.field));
  const pairs = [...new URLSearchParams(query)].filter(([, value]) => value.trim() !== '');
  if (pairs.length > maxFields)
    throw fail('malformed_request', { detail: `The query has more than ${maxFields} fields.` });
  const given = pairs.map(([name, value]) => ({ name, value, json: false }));
  const read = readKnown(given, fields);
  const added = [...read.text].filter(([name]) => !inBody.has(fieldNamed(name, fields)?.field));
  return { text: new Map([...text, ...added]), ignored: [...ignored, ...read.ignored] };
}
