import type { AuditLog } from '../../../accounts/audit.ts';
import { isoTime } from '../../../billing/present.ts';
import type { AuditRow } from '../../../store/auditTable.ts';
import type { Context } from '../../context.ts';
import { parse } from '../../parameters.ts';
import type { Route } from '../../router.ts';
import type { Endpoints } from './access.ts';
import type { AuditEntry, Page } from './api.ts';
import { numberedPage, numberOf, readPage } from './page.ts';

const auditEntry = (row: AuditRow): AuditEntry => ({ ...row, at: isoTime(row.at) });

/** Operators: the audit log, newest first. */
export function auditRoutes({ audit }: { readonly audit: AuditLog }, { operator }: Endpoints): Route[] {
  const list = (ctx: Context): Promise<Page<AuditEntry>> => {
    const { before, limit } = parse(numberedPage, ctx.query);
    return readPage(limit, (most) => audit.list({ before, limit: most }), numberOf, auditEntry);
  };
  return [operator.get('operator/audit', list)];
}
