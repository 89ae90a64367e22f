import type { Middleware } from '../../context.ts';
import type { Route } from '../../router.ts';
import { type ConsoleParts, createEndpoints } from './access.ts';
import { deletionRoutes } from './deletion.ts';
import { exportRoutes } from './export.ts';
import { imageRoutes } from './images.ts';
import { keyRoutes } from './keys.ts';
import { accountRoutes, auditRoutes } from './operator.ts';
import { overviewRoutes } from './overview.ts';
import { optionRoutes, purchaseRoutes } from './purchases.ts';
import { sessionRoutes } from './session.ts';
import { statementRoutes } from './statement.ts';

/** The console's API (api.ts says what goes over the wire). `body` reads JSON into the form of the request. */
export function consoleRoutes(parts: ConsoleParts, body: Middleware): Route[] {
  const endpoints = createEndpoints(parts, body);
  return [
    optionRoutes,
    sessionRoutes,
    overviewRoutes,
    keyRoutes,
    statementRoutes,
    purchaseRoutes,
    imageRoutes,
    exportRoutes,
    deletionRoutes,
    accountRoutes,
    auditRoutes,
  ].flatMap((routesOf) => routesOf(parts, endpoints));
}
