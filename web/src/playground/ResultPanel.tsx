import { type Answer, headerOf, timings } from '../lib/call.ts';
import { bytes, credits } from '../ui/format.ts';
import { WideTable } from '../ui/WideTable.tsx';
import { chargeOf, fileName, largerSize, type Result } from './result.ts';

/** Headers of the API, as opposed to those of HTTP. */
const listed = /^(?:x-|content-type|content-length|retry-after|idempotent-replayed)/;

function Timings({ answer }: { readonly answer: Answer }) {
  const stages = timings(headerOf(answer, 'server-timing'));
  if (stages.length === 0) return null;
  const served = stages.reduce((sum, { ms }) => sum + ms, 0);
  const rows = [...stages, { name: 'transfer', ms: Math.max(0, answer.ms - served) }];
  const longest = Math.max(...rows.map(({ ms }) => ms), 1);
  return (
    <div class="stack">
      <h3>Time by stage</h3>
      <dl class="timings">
        {rows.map(({ name, ms }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <span class="bar" style={{ width: `${(ms / longest) * 100}%` }} />
              <span class="number">{ms.toFixed(ms < 10 ? 1 : 0)} ms</span>
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** The answer: file, cost, time of each stage and headers, or the API's error. */
export function ResultPanel({
  result,
  fullSize,
  fullPrice,
  busy,
}: {
  readonly result: Result;
  /** Requests the same image at full size. */
  readonly fullSize: () => void;
  /** Price of that in credits, if known. */
  readonly fullPrice: number | undefined;
  readonly busy: boolean;
}) {
  const { answer, file, image } = result;
  const { status, body, errors, headers, ms } = answer;
  if (errors.length > 0)
    return (
      <div class="notice error stack" role="alert" data-testid="error">
        {errors.map(({ code, title, detail }) => (
          <p key={code}>
            <strong>{title}</strong> {detail} <code>{code}</code> <code>HTTP {status}</code>
          </p>
        ))}
      </div>
    );
  const larger = largerSize(result);
  return (
    <section class="card stack" aria-label="Answer">
      <div class="row spread">
        <p role="status">
          <strong>{headerOf(answer, 'x-width')}</strong> × <strong>{headerOf(answer, 'x-height')}</strong>{' '}
          pixels, {bytes(body.size)}, {(ms / 1000).toFixed(2)} s,{' '}
          <strong data-testid="charged">{credits(chargeOf(result))}</strong>
          {headerOf(answer, 'idempotent-replayed') ? ' (cached result)' : ''}
        </p>
        <span class="row">
          {larger && (
            <button type="button" disabled={busy} onClick={fullSize} data-testid="full-size">
              Full size, {larger.width} × {larger.height}
              {fullPrice !== undefined && ` (${credits(fullPrice)})`}
            </button>
          )}
          <a class="button primary" href={file} download={fileName(result)} data-testid="download">
            Download
          </a>
        </span>
      </div>
      {!image && <p class="soft">This format cannot be shown here. Download the file.</p>}
      <Timings answer={answer} />
      <details>
        <summary>Headers</summary>
        <WideTable label="Headers">
          <tbody>
            {headers
              .filter(([header]) => listed.test(header))
              .map(([header, value]) => (
                <tr key={header}>
                  <th scope="row">
                    <code>{header}</code>
                  </th>
                  <td>
                    <code>{value}</code>
                  </td>
                </tr>
              ))}
          </tbody>
        </WideTable>
      </details>
    </section>
  );
}
