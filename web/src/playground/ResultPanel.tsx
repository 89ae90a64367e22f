import { type Answer, headerOf, timings } from '../lib/call.ts';
import { bytes, credits } from '../ui/format.ts';
import { WideTable } from '../ui/WideTable.tsx';
import { chargeOf, fileName, largerSize, needsLook, type Result } from './result.ts';

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

/** Why there is no result: the API's error. */
export function ErrorNotice({ answer: { errors, status } }: { readonly answer: Answer }) {
  return (
    <div class="notice error stack" role="alert" data-testid="error">
      {errors.map(({ code, title, detail }) => (
        <p key={code}>
          <strong>{title}</strong> {detail} <code>{code}</code> <code>HTTP {status}</code>
        </p>
      ))}
    </div>
  );
}

/** What to do with a result; lies on the picture. */
export function ResultBar({
  result,
  fullSize,
  fullPrice,
  saveOnGround,
  busy,
}: {
  readonly result: Result;
  /** Requests the same image at full size. */
  readonly fullSize: () => void;
  /** Price of that in words, if known. */
  readonly fullPrice: string | undefined;
  /** Requests and saves the result on the background that is shown, and what that costs; undefined: the file has it. */
  readonly saveOnGround: { readonly save: () => void; readonly words: string } | undefined;
  readonly busy: boolean;
}) {
  const { answer, file } = result;
  const larger = largerSize(result);
  return (
    <div class="on-picture row spread" role="group" aria-label="Result">
      <span class="row">
        {saveOnGround ? (
          <button
            type="button"
            class="primary"
            disabled={busy}
            onClick={saveOnGround.save}
            data-testid="download-on-ground"
          >
            Download{saveOnGround.words && ` (${saveOnGround.words})`}
          </button>
        ) : (
          <a class="button primary" href={file} download={fileName(result)} data-testid="download">
            Download
          </a>
        )}
        {larger && (
          <button type="button" disabled={busy} onClick={fullSize} data-testid="full-size">
            <span>
              Full size
              <span class="wide-only">
                , {larger.width} × {larger.height}
              </span>
              {fullPrice !== undefined && ` (${fullPrice})`}
            </span>
          </button>
        )}
      </span>
      <p role="status" class="small">
        {headerOf(answer, 'x-width')} × {headerOf(answer, 'x-height')},{' '}
        <span data-testid="charged">{credits(chargeOf(result))}</span>
        {headerOf(answer, 'idempotent-replayed') ? ' (cached result)' : ''}
        {needsLook(result) && (
          <span data-testid="needs-look" title="The service is not sure what the subject is.">
            . Check it: something may be missing or too much.
          </span>
        )}
      </p>
    </div>
  );
}

/** Size in bytes, time of each stage and headers of an answer. */
export function AnswerDetails({ result: { answer, image } }: { readonly result: Result }) {
  const { body, headers, ms } = answer;
  return (
    <details class="answer">
      <summary>Answer</summary>
      <div class="stack">
        <p>
          {bytes(body.size)} in {(ms / 1000).toFixed(2)} s.
          {!image && ' This format cannot be shown here. Download the file.'}
        </p>
        <Timings answer={answer} />
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
      </div>
    </details>
  );
}
