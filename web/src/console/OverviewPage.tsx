import type { Overview } from '../../../src/http/route/console/api.ts';
import { on } from '../ui/format.ts';
import { WideTable } from '../ui/WideTable.tsx';
import { Show } from './Show.tsx';
import { useLoad } from './useLoad.ts';

const kinds = ['full', 'preview', 'free'] as const;
const names = { full: 'Full results', preview: 'Paid previews', free: 'Free previews' };

/** Calls by day as stacked bars, and the same numbers as a table for screen readers. */
function UsageChart({ days }: { readonly days: Overview['days'] }) {
  const totals = days.map((day) => kinds.reduce((sum, kind) => sum + day[kind], 0));
  const most = Math.max(1, ...totals);
  const [width, height] = [720, 180];
  const step = width / days.length;
  return (
    <figure class="chart">
      <svg viewBox={`0 -8 ${width} ${height + 34}`} role="img" aria-label="Calls by day, last 30 days">
        <line x1="0" x2={width} y1={height} y2={height} class="axis" />
        <text x="0" y="4" class="tick">
          {most}
        </text>
        {days.map((day, index) => {
          let top = height;
          return (
            <g key={day.day}>
              <title>
                {`${day.day}: ${kinds.map((kind) => `${day[kind]} ${names[kind].toLowerCase()}`).join(', ')}; ${day.credits} credits`}
              </title>
              <rect x={index * step} y="0" width={step} height={height} class="hit" />
              {kinds.map((kind) => {
                const tall = (day[kind] / most) * (height - 12);
                top -= tall;
                return (
                  <rect
                    key={kind}
                    class={`bar-${kind}`}
                    x={index * step + 2}
                    y={top}
                    width={Math.max(1, step - 4)}
                    height={tall}
                  />
                );
              })}
            </g>
          );
        })}
        {[0, Math.floor(days.length / 2), days.length - 1].map((index) => {
          const anchor = index === 0 ? 'start' : index === days.length - 1 ? 'end' : 'middle';
          const x = index === 0 ? 0 : index === days.length - 1 ? width : (index + 0.5) * step;
          return (
            <text key={index} class="tick" x={x} y={height + 20} text-anchor={anchor}>
              {on(days[index]?.day ?? '')}
            </text>
          );
        })}
      </svg>
      <figcaption class="row small">
        {kinds.map((kind) => (
          <span key={kind}>
            <span class={`key bar-${kind}`} /> {names[kind]}
          </span>
        ))}
      </figcaption>
      <details>
        <summary>As a table</summary>
        <WideTable label="Calls by day">
          <thead>
            <tr>
              <th>Day (UTC)</th>
              {kinds.map((kind) => (
                <th key={kind} class="number">
                  {names[kind]}
                </th>
              ))}
              <th class="number">To review</th>
              <th class="number">Credits</th>
            </tr>
          </thead>
          <tbody>
            {days.toReversed().map((day) => (
              <tr key={day.day}>
                <td>{day.day}</td>
                {kinds.map((kind) => (
                  <td key={kind} class="number">
                    {day[kind]}
                  </td>
                ))}
                <td class="number">{day.toReview}</td>
                <td class="number">{day.credits}</td>
              </tr>
            ))}
          </tbody>
        </WideTable>
      </details>
    </figure>
  );
}

/** How many results of these days somebody should look at. */
function ToReview({ days }: { readonly days: Overview['days'] }) {
  const results = days.reduce((sum, { full, preview, free }) => sum + full + preview + free, 0);
  const toReview = days.reduce((sum, day) => sum + day.toReview, 0);
  if (toReview === 0) return null;
  return (
    <p class="soft small" data-testid="to-review">
      {toReview} of {results} results may need a look: their uncertainty is 0.5 or more. The statement names
      them.
    </p>
  );
}

export function OverviewPage() {
  const loaded = useLoad<Overview>('overview');
  return (
    <Show loaded={loaded}>
      {({ credits, free, days, rate }) => (
        <>
          <div class="tiles">
            <div class="card">
              <h2>Credits</h2>
              <p class="large" data-testid="credits">
                {credits}
              </p>
            </div>
            <div class="card">
              <h2>Free previews</h2>
              <p class="large">{free.leftToday}</p>
              <p class="soft small">
                left today, {free.leftThisMonth} of {free.perMonth} this month
              </p>
            </div>
            <div class="card">
              <h2>Rate</h2>
              <p class="large">{rate.limit === null ? 'no limit' : `${rate.remaining} MP`}</p>
              {rate.limit !== null && (
                <p class="soft small">
                  left of {rate.limit} megapixels a minute, renewed in {rate.resetSeconds} s
                </p>
              )}
            </div>
          </div>
          <section class="card stack">
            <h2>Calls by day</h2>
            <UsageChart days={days} />
            <ToReview days={days} />
          </section>
        </>
      )}
    </Show>
  );
}
