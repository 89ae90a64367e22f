import { formatCredits } from '../../../billing/price.ts';
import type { CutoutResult } from '../../../cutout/cutout.ts';
import type { Stages } from '../../../ops/telemetry.ts';
import { type Context, setHeaders } from '../../context.ts';
import { rateHeaders } from '../../rateHeaders.ts';

/** JSON if Accept names it; a wildcard means the image (docs/contract.md section 2). */
function wantsJson(accept: string): boolean {
  return accept.split(',').some((range) => {
    const [type, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
    return type === 'application/json' && Number(quality) > 0;
  });
}

/** `decode;dur=12.3, queue;dur=0.1, …` */
const serverTiming = (stages: Stages): string =>
  Object.entries(stages)
    .map(([name, ms]) => `${name};dur=${ms.toFixed(1)}`)
    .join(', ');

/** Bytes of the image that are written in base64 at a time: a multiple of 3. */
const base64Step = 48 * 1024;

interface JsonParts {
  readonly before: string;
  readonly base64: number;
  readonly after: string;
}

/** What surrounds the image in JSON (docs/contract.md section 7.3), and its length in base64. */
function jsonParts({ bytes, foreground }: CutoutResult): JsonParts {
  const { top, left, width, height } = foreground;
  const rest = {
    foreground_top: top,
    foreground_left: left,
    foreground_width: width,
    foreground_height: height,
  };
  return {
    before: '{"data":{"result_b64":"',
    base64: 4 * Math.ceil(bytes.length / 3),
    after: `",${JSON.stringify(rest).slice(1)}}`,
  };
}

/** Written in place: as strings the image would take three times its length in base64 until it is sent. */
function jsonBody(result: CutoutResult): Buffer {
  const { before, base64, after } = jsonParts(result);
  const body = Buffer.allocUnsafe(before.length + base64 + after.length);
  let at = body.write(before, 'latin1');
  for (let from = 0; from < result.bytes.length; from += base64Step)
    at += body.write(result.bytes.toString('base64', from, from + base64Step), at, 'latin1');
  body.write(after, at, 'latin1');
  return body;
}

/** Length in bytes of the body that `present` sets. */
export function bodyLength(ctx: Context, result: CutoutResult): number {
  if (!wantsJson(ctx.get('Accept'))) return result.bytes.length;
  const { before, base64, after } = jsonParts(result);
  return before.length + base64 + after.length;
}

/** Sets the headers of docs/contract.md section 7.1 and the image, as bytes or in JSON (7.3). */
export function present(ctx: Context, result: CutoutResult): void {
  const { foreground, max, type } = result;
  const json = wantsJson(ctx.get('Accept'));
  setHeaders(ctx, {
    ...(type !== undefined && { 'X-Type': type }),
    'X-Width': String(result.width),
    'X-Height': String(result.height),
    'X-Max-Width': String(max.width),
    'X-Max-Height': String(max.height),
    'X-Credits-Charged': formatCredits(result.charged),
    'X-Foreground-Top': String(foreground.top),
    'X-Foreground-Left': String(foreground.left),
    'X-Foreground-Width': String(foreground.width),
    'X-Foreground-Height': String(foreground.height),
    ...rateHeaders(result.rate),
    // The stages are those of the first call.
    ...(result.replayed
      ? { 'Idempotent-Replayed': 'true' }
      : { 'Server-Timing': serverTiming(result.stages) }),
    // Before the body: Koa then looks for no type of its own.
    'Content-Type': json ? 'application/json; charset=utf-8' : result.contentType,
  });
  ctx.status = 200;
  ctx.body = json ? jsonBody(result) : result.bytes;
}
