import type { AuditEntry } from '../../../src/http/route/console/api.ts';
import { at } from '../ui/format.ts';
import { WideTable } from '../ui/WideTable.tsx';
import { PagedList } from './PagedList.tsx';
import { usePages } from './usePages.ts';

/** The actor of an event. */
function Actor({ entry: { actor, address } }: { readonly entry: AuditEntry }) {
  if (actor !== null) return <code>{actor}</code>;
  return <>{address !== null ? 'admin token' : 'command line'}</>;
}

/** Operators: the audit log, newest first. */
export function AuditPage() {
  const pages = usePages<AuditEntry>('operator/audit');
  return (
    <PagedList pages={pages} empty="No events yet.">
      {(entries) => (
        <WideTable label="Audit log">
          <thead>
            <tr>
              <th>Time</th>
              <th>By</th>
              <th>Action</th>
              <th>Account or key</th>
              <th>Detail</th>
              <th>Address</th>
            </tr>
          </thead>
          <tbody>
            {entries.map((entry) => (
              <tr key={entry.id}>
                <td class="nowrap">{at(entry.at)}</td>
                <td>
                  <Actor entry={entry} />
                </td>
                <td>{entry.action}</td>
                <td>{entry.subject !== null && <code>{entry.subject}</code>}</td>
                <td class="long">{entry.detail}</td>
                <td>{entry.address !== null && <code>{entry.address}</code>}</td>
              </tr>
            ))}
          </tbody>
        </WideTable>
      )}
    </PagedList>
  );
}
