import { useEffect, useState } from 'preact/hooks';
import type { Running } from './useCutout.ts';

/** Seconds after which the networks for points are being downloaded or loaded. */
const patience = 3;

/** Progress of the upload, then the time since the start; lies on the picture. */
export function Progress({
  running: { started, upload, choosing },
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
  const seconds = Math.max(0, now - started) / 1000;
  return (
    <div class="on-picture stack" data-testid="progress">
      <div class="row spread">
        <span>
          <span role="status">{sending ? 'Uploading' : 'Processing'}</span>
          <span class="soft"> {sending ? `${percent} %` : `${seconds.toFixed(1)} s`}</span>
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
      {choosing && seconds > patience && (
        <p class="small">
          The network that finds what you clicked on is loaded; the first time it is downloaded (about 150
          MB).
        </p>
      )}
    </div>
  );
}
