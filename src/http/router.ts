import Router from '@koa/router';
import { excerpt, fail } from '../errors.ts';
import type { Middleware, State } from './context.ts';
import { preflight } from './middleware/cors.ts';

export interface Route {
  readonly method: 'GET' | 'POST';
  readonly paths: readonly string[];
  /** Its middlewares, in the order in which a request passes them. */
  readonly handlers: readonly Middleware[];
}

/** Records the route's pattern for log, metrics and traces. */
const named =
  (path: string): Middleware =>
  async (ctx, next) => {
    ctx.state.route = path;
    await next();
  };

/** All routes, preflights for each, and the answers to unknown paths and methods. */
export function createRouter(routes: readonly Route[]): Middleware[] {
  const router = new Router<State, object>();
  for (const { method, paths, handlers } of routes) {
    for (const path of paths) {
      router.register(path, method === 'GET' ? ['GET', 'HEAD'] : [method], [named(path), ...handlers]);
      router.register(path, ['OPTIONS'], [named(path), preflight]);
    }
  }
  const unmatched: Middleware = (ctx) => {
    const allowed = [
      ...new Set(router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods)),
    ].sort();
    if (allowed.length === 0) throw fail('not_found', { detail: `No such path: ${excerpt(ctx.path)}` });
    throw fail('method_not_allowed', {
      detail: `${excerpt(ctx.path)} accepts ${allowed.join(', ')}, received ${excerpt(ctx.method, 20)}.`,
      headers: { Allow: allowed.join(', ') },
    });
  };
  // The router adds `params` and `router` to the context itself, which its type requires beforehand.
  return [router.routes() as unknown as Middleware, unmatched];
}
