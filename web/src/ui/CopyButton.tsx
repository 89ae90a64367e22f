import { useState } from 'preact/hooks';

/** Browsers offer the clipboard only over TLS or on the local machine; without it the text is selected for copying by hand. */
async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (!done) throw new Error('refused');
}

export function CopyButton({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [said, say] = useState('');
  const onClick = () => {
    copy(text)
      .then(
        () => say('Copied'),
        () => say('Select it and copy by hand'),
      )
      .finally(() => setTimeout(() => say(''), 2500));
  };
  return (
    <button type="button" onClick={onClick}>
      <span aria-live="polite">{said || label}</span>
    </button>
  );
}
