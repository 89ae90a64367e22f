import type { Middleware } from '../../context.ts';
import { openApiDocument } from '../../openapi/document.ts';
import { referencePage } from '../../openapi/page.ts';
import { pagePolicy } from '../../openapi/style.ts';
import type { Route } from '../../router.ts';

/** The API reference, without a key. `origin`: public address of the service; default: that of the request. */
export function docsRoutes(version: string, origin?: string): Route[] {
  const document = openApiDocument(version);
  const text = `${JSON.stringify(document, undefined, 2)}\n`;
  const pageFor = referencePage(document);
  const description: Middleware = (ctx) => {
    ctx.set('Content-Type', 'application/json; charset=utf-8');
    ctx.body = text;
  };
  const page: Middleware = (ctx) => {
    ctx.set('Content-Type', 'text/html; charset=utf-8');
    ctx.set('Content-Security-Policy', pagePolicy);
    ctx.set('X-Content-Type-Options', 'nosniff');
    ctx.set('Referrer-Policy', 'no-referrer');
    ctx.body = pageFor(origin ?? `${ctx.secure ? 'https' : 'http'}://${ctx.host}`);
  };
  return [
    { method: 'GET', paths: ['/openapi.json'], handlers: [description] },
    { method: 'GET', paths: ['/docs'], handlers: [page] },
  ];
}
