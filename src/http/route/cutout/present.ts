import { Readable } from 'node:stream';
import { formatCredits } from '../../../billing/price.ts';
import type { CutoutResult } from '../../../cutout/answer.ts';
import type { Stages } from '../../../ops/telemetry.ts';
import { type Context, setHeaders } from '../../context.ts';
import { ownTurn } from '../../eventLoop.ts';
import { rateHeaders } from '../../middleware/rateWindow.ts';

/** Ranges of `Accept` that the bytes of a result fit. */
const isBytes = (type: string): boolean =>
  type === '*/*' ||
  type.startsWith('image/') ||
  type === 'application/octet-stream' ||
  type === 'application/zip';

/**
 * JSON if Accept names it and admits no bytes (docs/contract.md section 2): axios sends
 * `application/json, text/plain, *\/*` and its users save the answer as an image.
 */
function wantsJson(accept: string): boolean {
  const types = accept.split(',').flatMap((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
    return Number(quality) > 0 ? [type] : [];
  });
  return types.includes('application/json') && !types.some(isBytes);
}

/** `decode;dur=12.3, queue;dur=0.1, …` */
const serverTiming = (stages: Stages): string =>
  Object.entries(stages)
    .map(([name, ms]) => `${name};dur=${ms.toFixed(1)}`)
    .join(', ');

/** Bytes of the image that are written in base64 in one turn of the event loop, in a fraction of a millisecond: a multiple of 3. */
const base64Step = 192 * 1024;

/** The image in JSON (docs/contract.md section 7.3): a stream, so that the base64 text is never in memory as a whole. */
function jsonBody({ bytes, foreground, uncertainty }: CutoutResult) {
  const { top, left, width, height } = foreground;
  const rest = {
    foreground_top: top,
    foreground_left: left,
    foreground_width: width,
    foreground_height: height,
    uncertainty,
  };
  const before = '{"data":{"result_b64":"';
  const after = `",${JSON.stringify(rest).slice(1)}}`;
  async function* pieces(): AsyncGenerator<string> {
    yield before;
    for (let from = 0; from < bytes.length; from += base64Step) {
      await ownTurn();
      yield bytes.toString('base64', from, from + base64Step);
    }
    yield after;
  }
  return {
    contentType: 'application/json; charset=utf-8',
    body: Readable.from(pieces(), { objectMode: false }),
    length: before.length + 4 * Math.ceil(bytes.length / 3) + after.length,
  };
}

/** Sets the headers of docs/contract.md section 7.1 and the body. */
export function present(ctx: Context, result: CutoutResult): void {
  const { foreground, max, type } = result;
  const { contentType, body, length } = wantsJson(ctx.get('Accept'))
    ? jsonBody(result)
    : { contentType: result.contentType, body: result.bytes, length: result.bytes.length };
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
    'X-Uncertainty-Score': String(result.uncertainty),
    ...rateHeaders(result.rate),
    // The stages are those of the first call.
    ...(result.replayed
      ? { 'Idempotent-Replayed': 'true' }
      : { 'Server-Timing': serverTiming(result.stages) }),
    // Before the body: Koa then looks for no type of its own.
    'Content-Type': contentType,
  });
  ctx.status = 200;
  ctx.body = body;
  ctx.length = length;
}
