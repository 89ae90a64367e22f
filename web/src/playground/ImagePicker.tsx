import { useState } from 'preact/hooks';
import { fileImage, type SourceImage } from './image.ts';
import { drawSample, samples } from './samples.ts';

/** Selects an image by file, address or sample; the page itself handles dropped and pasted ones. */
export function ImagePicker({
  first,
  hint,
  choose,
}: {
  /** True while there is no image yet. */
  readonly first: boolean;
  /** Formats and limits, as the service describes them. */
  readonly hint: string;
  readonly choose: (image: SourceImage) => void;
}) {
  const [address, setAddress] = useState('');
  const useAddress = () => {
    if (address !== '') choose({ kind: 'url', url: address });
  };
  return (
    <div class={first ? 'picker first' : 'picker'}>
      {first && <p class="invitation">Drop a photo here, paste one, or</p>}
      <div class="row ways">
        <label class={first ? 'button primary file' : 'button file'}>
          {first ? 'Choose a photo' : 'Choose another photo'}
          <input
            class="visually-hidden"
            type="file"
            accept="image/*,.heic,.heif,.avif"
            onChange={({ currentTarget }) => {
              const file = currentTarget.files?.[0];
              if (file) choose(fileImage(file));
              currentTarget.value = '';
            }}
          />
        </label>
        <details class="more">
          <summary>Sample or address</summary>
          <span class="samples">
            {samples.map((sample) => (
              <button
                key={sample.file}
                type="button"
                class="plain"
                onClick={() => void drawSample(sample).then((file) => choose(fileImage(file)))}
              >
                {sample.name}
              </button>
            ))}
          </span>
          <span class="address">
            <input
              type="url"
              aria-label="Image URL"
              placeholder="https://… image URL"
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
        </details>
      </div>
      {first && <p class="soft small hint">{hint}</p>}
    </div>
  );
}
