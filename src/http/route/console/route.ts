import type { PriceList } from '../../../billing/price.ts';
import type { Middleware } from '../../context.ts';
import type { Route } from '../../router.ts';
import { type AccessParts, createEndpoints } from './access.ts';
import { type DeletionParts, deletionRoutes } from './deletion.ts';
import { type ExportParts, exportRoutes } from './export.ts';
import { type ImageParts, imageRoutes } from './images.ts';
import { type KeyParts, keyRoutes } from './keys.ts';
import { type AccountParts, accountRoutes, auditRoutes } from './operator.ts';
import { type OverviewParts, overviewRoutes } from './overview.ts';
import { optionRoutes, purchaseRoutes } from './purchases.ts';
import { type SessionParts, sessionRoutes } from './session.ts';
import { statementRoutes } from './statement.ts';

export type ConsoleParts = AccessParts &
  SessionParts &
  OverviewParts &
  KeyParts &
  ImageParts &
  ExportParts &
  DeletionParts &
  AccountParts & { readonly prices: PriceList };

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
