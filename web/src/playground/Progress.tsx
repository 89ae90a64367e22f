import { useEffect, useState } from 'preact/hooks';
import type { Running } from './useCutout.ts';

/** Progress of the upload, then the time since the start. */
export function Progress({
  running: { started, upload },
  stop,
}: {
  readonly running: Running;
  readonly stop: () => void;
}) {
  const [now, setNow] = useState(started);
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 100);
    return () => clearInterval(timer);
  }, []);
  const sending = upload < 1;
  const percent = Math.round(upload * 100);
  return (
    <div class="card stack">
      <div class="row spread">
        <span>
          <span role="status">{sending ? 'Uploading' : 'Processing'}</span>
          <span class="soft">
            {' '}
            {sending ? `${percent} %` : `${(Math.max(0, now - started) / 1000).toFixed(1)} s`}
          </span>
        </span>
        <button type="button" class="plain" onClick={stop}>
          Stop
        </button>
      </div>
      <div
        class={sending ? 'progress' : 'progress waiting'}
        role="progressbar"
        aria-label="Progress"
        aria-valuenow={sending ? percent : undefined}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <span style={sending ? { width: `${percent}%` } : {}} />
      </div>
    </div>
  );
}
