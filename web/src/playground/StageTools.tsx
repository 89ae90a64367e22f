import type { Camera } from './camera.ts';
import type { Ground } from './ground.ts';

export type StageView = 'compare' | 'result' | 'original';

const names: Readonly<Record<StageView, string>> = {
  result: 'Result',
  compare: 'Compare',
  original: 'Original',
};

export function ViewButtons({
  views,
  view,
  choose,
}: {
  readonly views: readonly StageView[];
  readonly view: StageView;
  readonly choose: (view: StageView) => void;
}) {
  return (
    <span class="row" role="group" aria-label="Show">
      {views.map((each) => (
        <button
          key={each}
          type="button"
          class="plain"
          aria-pressed={view === each}
          onClick={() => choose(each)}
        >
          {names[each]}
        </button>
      ))}
    </span>
  );
}

export function ZoomButtons({ camera }: { readonly camera: Camera }) {
  return (
    <span class="row" role="group" aria-label="Zoom">
      <button type="button" class="plain" aria-label="Zoom out" onClick={() => camera.zoom(1 / 1.5)}>
        −
      </button>
      <span class="mono zoom">{Math.round(camera.shownScale * 100)} %</span>
      <button type="button" class="plain" aria-label="Zoom in" onClick={() => camera.zoom(1.5)}>
        +
      </button>
      <button type="button" class="plain" onClick={camera.fit}>
        Fit
      </button>
      <button type="button" class="plain" onClick={camera.actualSize}>
        1:1
      </button>
    </span>
  );
}

const swatches = [
  { id: 'checker', name: 'Transparent', ground: { kind: 'none' } },
  { id: 'white', name: 'White', ground: { kind: 'colour', hex: 'ffffff' } },
  { id: 'black', name: 'Black', ground: { kind: 'colour', hex: '000000' } },
  { id: 'green', name: 'Green', ground: { kind: 'colour', hex: '1db954' } },
] as const satisfies readonly { readonly ground: Ground; readonly id: string; readonly name: string }[];

/** Chooses what lies behind the subject, here and in the file. */
export function GroundButtons({
  ground,
  change,
}: {
  readonly ground: Ground;
  readonly change: (ground: Ground) => void;
}) {
  return (
    <span class="row grounds" role="group" aria-label="Background of the result">
      {swatches.map(({ id, name, ground: each }) => (
        <button
          key={id}
          type="button"
          class={`swatch ${id}`}
          aria-label={name}
          title={name}
          aria-pressed={JSON.stringify(ground) === JSON.stringify(each)}
          onClick={() => change(each)}
        />
      ))}
      <input
        type="color"
        aria-label="Any colour"
        title="Any colour"
        value={ground.kind === 'colour' ? `#${ground.hex}` : '#ffd166'}
        onInput={({ currentTarget }) => change({ kind: 'colour', hex: currentTarget.value.slice(1) })}
      />
      <label class="button plain file">
        Own background
        <input
          class="visually-hidden"
          type="file"
          accept="image/*"
          onChange={({ currentTarget }) => {
            const file = currentTarget.files?.[0];
            if (file) change({ kind: 'image', file });
            currentTarget.value = '';
          }}
        />
      </label>
    </span>
  );
}
