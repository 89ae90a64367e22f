import { headerOf, timings } from '../lib/call.ts';
import { type Done, fileName } from './Playground.tsx';

/** Worth a row of their own; the rest of an answer's headers is how HTTP works. */
const told = /^(?:x-|content-type|content-length|retry-after|idempotent-replayed)/;

const bytes = (count: number) =>
  count < 1e6 ? `${(count / 1e3).toFixed(1)} kB` : `${(count / 1e6).toFixed(2)} MB`;

function Timings({ done: { answer } }: { readonly done: Done }) {
  const stages = timings(headerOf(answer, 'server-timing'));
  if (stages.length === 0) return null;
  const served = stages.reduce((sum, { ms }) => sum + ms, 0);
  const rows = [...stages, { name: 'on the way', ms: Math.max(0, answer.ms - served) }];
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

/** What came back: the file, what it cost, how long each stage took, the headers; or the API's own error. */
export function Outcome({ done }: { readonly done: Done }) {
  const { answer, file, image, picture } = done;
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
  const charged = headerOf(answer, 'x-credits-charged');
  const name = fileName(picture, body.type);
  return (
    <section class="card stack" aria-label="Answer">
      <div class="row spread">
        <p role="status">
          <strong>{headerOf(answer, 'x-width')}</strong> × <strong>{headerOf(answer, 'x-height')}</strong>{' '}
          pixels, {bytes(body.size)}, {(ms / 1000).toFixed(2)} s,{' '}
          <strong data-testid="charged">{charged}</strong> {charged === '1' ? 'credit' : 'credits'}
          {headerOf(answer, 'idempotent-replayed') ? ' (a repeat)' : ''}
        </p>
        <a class="button primary" href={file} download={name} data-testid="download">
          Download
        </a>
      </div>
      {!image && <p class="soft">A browser does not show this kind of file; download it.</p>}
      <Timings done={done} />
      <details>
        <summary>Headers</summary>
        <div class="wide">
          <table>
            <tbody>
              {headers
                .filter(([header]) => told.test(header))
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
          </table>
        </div>
      </details>
    </section>
  );
}
