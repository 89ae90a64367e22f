import { malformed } from '../../../errors.ts';
import type { HandInRequest, TakeImage } from '../../../improve/takeImage.ts';
import { accountOf, formOf, type Middleware } from '../../context.ts';
import { type Form, maxTextLength } from '../../form.ts';
import { parseSource, sourceFields } from '../../imageSourceFields.ts';
import type { RouteFields } from '../../routeFields.ts';
import type { Route } from '../../router.ts';

export const improveFields: RouteFields = new Map([...sourceFields, ['image_filename', {}], ['tag', {}]]);

/** The last part of a URL's path; undefined if it has none. */
function nameIn(url: string | undefined): string | undefined {
  const path = url === undefined ? undefined : URL.parse(url)?.pathname;
  try {
    return decodeURIComponent(path?.split('/').at(-1) ?? '') || undefined;
  } catch {
    return undefined;
  }
}

function readLabel(form: Form, field: 'image_filename' | 'tag'): string | undefined {
  const label = form.text.get(field);
  if (label === undefined || label.length <= maxTextLength) return label;
  throw malformed(`${field} has more than ${maxTextLength} characters.`);
}

/** The label defaults to the name of the upload (docs/contract.md section 9). */
const parseHandIn = (form: Form): HandInRequest => ({
  source: parseSource(form),
  filename:
    readLabel(form, 'image_filename') ??
    form.files.get('image_file')?.name ??
    nameIn(form.text.get('image_url')),
  tag: readLabel(form, 'tag'),
});

/** `POST /v1.0/improve`: hands in an image to be stored. */
export function improveRoute(before: readonly Middleware[], takeImage: TakeImage): Route {
  const handler: Middleware = async (ctx) => {
    const { id: accountId } = accountOf(ctx);
    const { signal, telemetry } = ctx.state;
    const id = await takeImage(parseHandIn(formOf(ctx)), { accountId, signal, telemetry });
    telemetry.add({ image: id });
    ctx.body = { id };
  };
  return { method: 'POST', paths: ['/v1.0/improve'], handlers: [...before, handler] };
}
