import { useState } from 'preact/hooks';
import { drawSample, samples } from './samples.ts';

/** The picture to work on, and what the page shows of it. */
export type Chosen =
  | { readonly kind: 'file'; readonly file: File; readonly preview: string }
  | { readonly kind: 'url'; readonly url: string };

export const chosenFile = (file: File): Chosen => ({
  kind: 'file',
  file,
  preview: URL.createObjectURL(file),
});

/** Dropping and pasting are the stage's; here are the other ways: files, an address, a sample. */
export function PicturePicker({
  picture,
  choose,
}: {
  readonly picture: Chosen | undefined;
  readonly choose: (picture: Chosen) => void;
}) {
  const [address, setAddress] = useState('');
  const useAddress = () => {
    if (address !== '') choose({ kind: 'url', url: address });
  };
  return (
    <div class={picture ? 'picker' : 'picker first'}>
      {!picture && <p class="invitation">Drop a photo here, paste one, or</p>}
      <div class="row ways">
        <label class="button file">
          Choose a photo
          <input
            class="visually-hidden"
            type="file"
            accept="image/*"
            onChange={({ currentTarget }) => {
              const file = currentTarget.files?.[0];
              if (file) choose(chosenFile(file));
              currentTarget.value = '';
            }}
          />
        </label>
        <span class="samples">
          <span class="soft small">or a sample:</span>
          {samples.map((sample) => (
            <button
              key={sample.file}
              type="button"
              class="plain"
              onClick={() => void drawSample(sample).then((file) => choose(chosenFile(file)))}
            >
              {sample.name}
            </button>
          ))}
        </span>
        <span class="address">
          <input
            type="url"
            aria-label="Address of a picture"
            placeholder="https://… address of a picture"
            value={address}
            onInput={({ currentTarget }) => setAddress(currentTarget.value.trim())}
            onKeyDown={(event) => {
              if (event.key !== 'Enter') return;
              event.preventDefault();
              useAddress();
            }}
          />
          <button type="button" disabled={address === ''} onClick={useAddress}>
            Use
          </button>
        </span>
      </div>
    </div>
  );
}
