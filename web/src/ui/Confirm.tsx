import { useState } from 'preact/hooks';

/** A button that asks for confirmation, in place, before an action that cannot be undone. */
export function Confirm({
  label,
  question,
  act,
}: {
  readonly label: string;
  readonly question: string;
  readonly act: () => void;
}) {
  const [asked, ask] = useState(false);
  if (!asked)
    return (
      <button type="button" class="plain" onClick={() => ask(true)}>
        {label}
      </button>
    );
  return (
    <span class="row">
      <span role="alert" class="small">
        {question}
      </span>
      <button
        type="button"
        class="danger"
        onClick={() => {
          ask(false);
          act();
        }}
      >
        {label}
      </button>
      <button type="button" class="plain" onClick={() => ask(false)}>
        Cancel
      </button>
    </span>
  );
}
