import { useEffect, useState } from 'preact/hooks';

export interface Working {
  /** `performance.now()` of the click. */
  readonly started: number;
  /** Share of the upload, 0 to 1. */
  readonly upload: number;
}

/** How far a request is: measured while it is sent, a running clock while the service works. */
export function Progress({
  working: { started, upload },
  stop,
}: {
  readonly working: Working;
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
          <span role="status">{sending ? 'Sending the picture' : 'The service works'}</span>
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
