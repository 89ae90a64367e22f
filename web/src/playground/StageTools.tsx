import type { Camera } from './camera.ts';

export type StageView = 'compare' | 'result' | 'original';

const names: Readonly<Record<StageView, string>> = {
  compare: 'Compare',
  result: 'Result',
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

/** What is shown behind a result: a pattern or colour by its class, any colour, or an image. */
export interface Backdrop {
  readonly id: string;
  readonly colour: string;
  /** Object URL of the visitor's own image. */
  readonly own: string | undefined;
}

export const checkerboard: Backdrop = { id: 'checker', colour: '#ffd166', own: undefined };

const swatches = [
  { id: 'checker', name: 'Checkerboard' },
  { id: 'white', name: 'White' },
  { id: 'black', name: 'Black' },
  { id: 'green', name: 'Green' },
] as const;

export function BackdropButtons({
  backdrop,
  change,
}: {
  readonly backdrop: Backdrop;
  readonly change: (backdrop: Backdrop) => void;
}) {
  return (
    <span class="row grounds" role="group" aria-label="Behind the result, on this page only">
      {swatches.map(({ id, name }) => (
        <button
          key={id}
          type="button"
          class={`swatch ${id}`}
          aria-label={name}
          title={name}
          aria-pressed={backdrop.id === id}
          onClick={() => change({ ...backdrop, id })}
        />
      ))}
      <input
        type="color"
        aria-label="Any colour"
        title="Any colour"
        value={backdrop.colour}
        onInput={({ currentTarget }) => change({ ...backdrop, id: 'colour', colour: currentTarget.value })}
      />
      <label class="button plain file">
        Own background
        <input
          class="visually-hidden"
          type="file"
          accept="image/*"
          onChange={({ currentTarget }) => {
            const file = currentTarget.files?.[0];
            if (file) change({ ...backdrop, id: 'own', own: URL.createObjectURL(file) });
          }}
        />
      </label>
    </span>
  );
}
