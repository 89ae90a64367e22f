import { unzipSync } from 'fflate';
import { z } from 'zod';
import { decode } from '../../image/decode.ts';
import { ImageError } from '../../image/errors.ts';
import { probe } from '../../image/probe.ts';
import type { ProbeLimits } from '../../image/types.ts';
import { shown } from '../httpResponse.ts';
import type { Answer } from './service.ts';

/** One image of an answer. */
export interface ImageFacts {
  readonly format: string;
  readonly width: number;
  readonly height: number;
  readonly channels: string;
}

/** Pixels of an image, for comparisons. */
export interface Planes {
  readonly width: number;
  readonly height: number;
  /** Alpha, or the gray values of a matte; absent if the image is opaque. */
  readonly alpha?: Uint8Array;
  /** Straight RGBA. */
  readonly rgba: Uint8Array;
}

/** What an answer says, in the terms that are compared. */
export interface Observation {
  readonly status: number;
  readonly ms: number;
  readonly contentType: string;
  readonly headers: Headers;
  readonly error?: { readonly shape: string; readonly codes: string; readonly titles: string };
  /** Keys of a JSON answer that is no error, with dots; entries of a ZIP. */
  readonly parts?: string;
  readonly image?: ImageFacts;
  readonly planes?: Planes;
  /** Why a result cannot be read. */
  readonly unreadable?: string;
}

/** Longest time to decode an image. */
const timeoutSeconds = 60;

const envelope = z.object({ errors: z.array(z.record(z.string(), z.unknown())).min(1) });

/** Levels and members of a JSON text that are looked at. */
const maxDepth = 8;
const maxMembers = 40;

/** The paths of all values; a list counts as its first element. */
function pathsOf(value: unknown, path = '', depth = 0): string[] {
  if (typeof value !== 'object' || value === null || depth === maxDepth) return [path];
  if (Array.isArray(value)) return pathsOf(value[0], `${path}[]`, depth + 1);
  return Object.entries(value)
    .slice(0, maxMembers)
    .flatMap(([key, inner]) => pathsOf(inner, path === '' ? key : `${path}.${key}`, depth + 1));
}

const shapeOf = (value: unknown) => shown(pathsOf(value).sort().join(', '));

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? shown(value) : 'absent');

function errorOf(body: Buffer): NonNullable<Observation['error']> {
  const json = parsed(body);
  const found = envelope.safeParse(json);
  if (!found.success)
    return { shape: json === undefined ? 'no JSON' : shapeOf(json), codes: 'absent', titles: 'absent' };
  const { errors } = found.data;
  const all = (key: string) => errors.map((error) => textOf(error[key])).join(', ');
  return { shape: shapeOf(json), codes: all('code'), titles: all('title') };
}

/** The image and its pixels. Rejects with ImageError. */
async function imageOf(
  bytes: Uint8Array,
  limits: ProbeLimits,
): Promise<Pick<Observation, 'image' | 'planes'>> {
  const found = await probe(bytes, limits);
  const { format, width, height, colour, hasAlpha } = found;
  const { data: rgba } = await decode(bytes, found, found, { timeoutSeconds });
  const gray = colour === 'gray' && !hasAlpha;
  const from = gray ? 0 : 3;
  const alpha = new Uint8Array(width * height);
  for (let i = 0; i < alpha.length; i++) alpha[i] = rgba[4 * i + from] ?? 0;
  const opaque = !gray && alpha.every((value) => value === 255);
  return {
    image: { format, width, height, channels: hasAlpha ? `${colour} and alpha` : colour },
    planes: { width, height, rgba, ...(!opaque && { alpha }) },
  };
}

/** The entries of a ZIP and the image with the matte. Rejects with ImageError. */
async function zipOf(body: Buffer, limits: ProbeLimits): Promise<Partial<Observation>> {
  let entries: Record<string, Uint8Array>;
  try {
    // An entry that claims more than an image may have is not unpacked.
    entries = unzipSync(body, { filter: ({ originalSize }) => originalSize <= limits.maxBytes });
  } catch (error) {
    throw new ImageError('failed_to_read_image', 'The ZIP cannot be read.', error);
  }
  const parts = Object.keys(entries).map(shown).slice(0, 20).join(', ');
  const matte = entries['alpha.png'];
  return { parts, ...(matte && (await imageOf(matte, limits))) };
}

const jsonResult = z.object({ data: z.object({ result_b64: z.string() }) });

async function resultOf(
  contentType: string,
  body: Buffer,
  limits: ProbeLimits,
): Promise<Partial<Observation>> {
  if (contentType === 'application/zip') return zipOf(body, limits);
  if (contentType !== 'application/json') return imageOf(body, limits);
  const json = parsed(body);
  const parts = json === undefined ? 'no JSON' : shapeOf(json);
  const result = jsonResult.safeParse(json);
  if (!result.success) return { parts };
  return { parts, ...(await imageOf(Buffer.from(result.data.data.result_b64, 'base64'), limits)) };
}

/** Reads an answer; what cannot be read is part of what was observed. */
export async function observe(
  { status, headers, body, ms }: Answer,
  limits: ProbeLimits,
): Promise<Observation> {
  const contentType = (headers.get('Content-Type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const base = { status, ms, headers, contentType };
  if (status !== 200) return { ...base, error: errorOf(body) };
  try {
    return { ...base, ...(await resultOf(contentType, body, limits)) };
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    return { ...base, unreadable: error.detail };
  }
}
