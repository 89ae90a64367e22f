import { send } from '@koa/send';
import { excerpt, fail } from '../../../errors.ts';
import type { Context, Middleware } from '../../context.ts';
import type { Route } from '../../router.ts';

/** Nothing from other origins, nothing inline. Images may also be blobs made by the page; HEIC is decoded by WebAssembly. */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const headers: Readonly<Record<string, string>> = {
  'Content-Security-Policy': pagePolicy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  Vary: 'Accept-Encoding',
};

/** A file of the built pages in an encoding that the browser accepts: brotli, gzip or none. */
async function sendFile(ctx: Context, folder: string, file: string, maxAge: number): Promise<void> {
  try {
    await send(ctx, file, { root: folder, maxAge, immutable: maxAge > 0 });
  } catch (error) {
    const missing = error instanceof Error && 'status' in error && Number(error.status) < 500;
    throw missing ? fail('not_found', { detail: `No such path: ${excerpt(ctx.path)}` }) : error;
  }
  ctx.set(headers);
}

const yearMs = 365 * 86_400 * 1000;

/** Playground and console, as `web/` builds them into `folder`. Asset names contain their hash. */
export function pagesRoutes(folder: string): Route[] {
  const page =
    (file: string): Middleware =>
    (ctx) =>
      sendFile(ctx, folder, file, 0);
  const asset: Middleware = (ctx) => sendFile(ctx, folder, ctx.path, yearMs);
  return [
    { method: 'GET', paths: ['/'], handlers: [page('index.html')] },
    { method: 'GET', paths: ['/console'], handlers: [page('console.html')] },
    { method: 'GET', paths: ['/assets/:file'], handlers: [asset] },
  ];
}
