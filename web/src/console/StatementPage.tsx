import { useState } from 'preact/hooks';
import type { EntryKind, StatementEntry } from '../../../src/http/route/console/api.ts';
import { at, signed } from '../ui/format.ts';
import { WideTable } from '../ui/WideTable.tsx';
import { PagedList } from './PagedList.tsx';
import { usePages } from './usePages.ts';

const kinds: Readonly<Record<EntryKind, string>> = {
  grant: 'Granted',
  purchase: 'Purchased',
  reserve: 'Reserved for a call',
  settle: 'Call charged',
  release: 'Released, the call failed',
  refund: 'Refunded',
  adjust: 'Adjusted',
};

const payments = { free: 'free preview', preview: 'preview', full: 'full result' };

const queryOf = (kind: string, from: string, to: string) => {
  const query = new URLSearchParams();
  if (kind !== '') query.set('kind', kind);
  if (from !== '') query.set('from', from);
  // The last day is included.
  if (to !== '') query.set('to', new Date(Date.parse(to) + 86_400_000).toISOString().slice(0, 10));
  return query;
};

/** Every entry of the ledger, newest first. */
export function StatementPage() {
  const [kind, setKind] = useState('');
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  const query = queryOf(kind, from, to).toString();

  const pages = usePages<StatementEntry>(`statement?${query}`);

  return (
    <>
      <div class="row filters">
        <span class="field">
          <label for="kind">Kind</label>
          <select id="kind" value={kind} onChange={({ currentTarget }) => setKind(currentTarget.value)}>
            <option value="">all</option>
            {Object.entries(kinds).map(([id, name]) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </span>
        <span class="field">
          <label for="from">From (UTC)</label>
          <input
            id="from"
            type="date"
            value={from}
            onInput={({ currentTarget }) => setFrom(currentTarget.value)}
          />
        </span>
        <span class="field">
          <label for="to">To (UTC)</label>
          <input id="to" type="date" value={to} onInput={({ currentTarget }) => setTo(currentTarget.value)} />
        </span>
        <a class="button low" href={`/console/api/statement.csv?${query}`} download>
          Download CSV
        </a>
      </div>
      <PagedList pages={pages} empty={query === '' ? 'No entries yet.' : 'No matching entries.'}>
        {(entries) => (
          <WideTable label="Statement" testId="statement">
            <thead>
              <tr>
                <th>Time</th>
                <th>What</th>
                <th class="number">Credits</th>
                <th class="number">Balance</th>
                <th class="number">Uncertainty</th>
                <th>Note</th>
              </tr>
            </thead>
            <tbody>
              {entries.map((entry) => (
                <tr key={entry.id}>
                  <td class="nowrap">{at(entry.at)}</td>
                  <td>
                    {kinds[entry.kind]}
                    {entry.payment !== null && <span class="soft"> ({payments[entry.payment]})</span>}
                  </td>
                  <td class="number">{signed(entry.amount)}</td>
                  <td class="number">{entry.balance}</td>
                  <td class="number">{entry.uncertainty}</td>
                  <td class="long">
                    {entry.note ?? (entry.request !== null && <code class="soft">{entry.request}</code>)}
                  </td>
                </tr>
              ))}
            </tbody>
          </WideTable>
        )}
      </PagedList>
    </>
  );
}
