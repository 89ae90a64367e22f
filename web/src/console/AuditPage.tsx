import { useState } from 'preact/hooks';
import type { Audit } from '../../../src/http/route/console/api.ts';
import { at } from '../ui/format.ts';
import { Show } from '../ui/Show.tsx';
import { useLoad } from '../ui/useLoad.ts';

/** Operators: who did what, newest first. The log is append-only. */
export function AuditPage() {
  const [before, setBefore] = useState<number | null>(null);
  const loaded = useLoad<Audit>(`operator/audit?limit=100${before === null ? '' : `&before=${before}`}`);
  return (
    <Show loaded={loaded}>
      {({ entries, next }) => (
        <>
          <div class="wide">
            <table>
              <thead>
                <tr>
                  <th>Time</th>
                  <th>Who</th>
                  <th>What</th>
                  <th>To</th>
                  <th>Detail</th>
                  <th>From</th>
                </tr>
              </thead>
              <tbody>
                {entries.map((entry) => (
                  <tr key={entry.id}>
                    <td class="nowrap">{at(entry.at)}</td>
                    <td>
                      {entry.actor !== null ? (
                        <code>{entry.actor}</code>
                      ) : entry.address !== null ? (
                        'admin token'
                      ) : (
                        'command line'
                      )}
                    </td>
                    <td>{entry.action}</td>
                    <td>{entry.subject !== null && <code>{entry.subject}</code>}</td>
                    <td>{entry.detail}</td>
                    <td>{entry.address !== null && <code>{entry.address}</code>}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="row">
            {before !== null && (
              <button type="button" onClick={() => setBefore(null)}>
                Newest
              </button>
            )}
            {next !== null && (
              <button type="button" onClick={() => setBefore(next)}>
                Older
              </button>
            )}
          </p>
        </>
      )}
    </Show>
  );
}
