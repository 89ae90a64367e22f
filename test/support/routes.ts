import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import type { State } from '../../src/http/context.ts';
import { deadline } from '../../src/http/middleware/deadline.ts';
import { errors } from '../../src/http/middleware/errors.ts';
import { record, requestId } from '../../src/http/middleware/record.ts';
import { createRouter, type Route } from '../../src/http/router.ts';
import { createLogger } from '../../src/ops/log.ts';
import { requestLog } from '../../src/ops/record.ts';
import type { Cleanup } from './stores.ts';

export interface Served {
  readonly url: string;
  /** Everything that was logged. */
  readonly log: () => string;
}

/** Some routes on a loopback port, with error handling. */
export async function serveRoutes(t: Cleanup, routes: readonly Route[]): Promise<Served> {
  let logged = '';
  const logger = createLogger('debug', { write: (line: string) => (logged += line) });
  const app = new Koa<State, object>();
  for (const middleware of [
    requestId,
    record([requestLog(logger)], logger),
    errors(logger),
    deadline(30),
    ...createRouter(routes),
  ])
    app.use(middleware);
  const handle = app.callback();
  const server = createServer((req, res) => void handle(req, res));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, log: () => logged };
}
