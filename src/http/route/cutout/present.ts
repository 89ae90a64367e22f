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
  if (json)
    ctx.body = JSON.stringify({
      data: {
        result_b64: result.bytes.toString('base64'),
        foreground_top: foreground.top,
        foreground_left: foreground.left,
        foreground_width: foreground.width,
        foreground_height: foreground.height,
      },
    });
  else ctx.body = result.bytes;
}
