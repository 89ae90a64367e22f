import type { Brush } from './brush.ts';

const names: Readonly<Record<Brush, string>> = { erase: 'Erase', restore: 'Restore' };

/** Chooses what dragging over the result does: nothing, or painting what is no subject or is one. */
export function BrushTools({
  brush,
  size,
  strokes,
  choose,
  resize,
  undo,
}: {
  readonly brush: Brush | undefined;
  /** Diameter in pixels of the screen. */
  readonly size: number;
  /** Number of strokes that can be undone. */
  readonly strokes: number;
  readonly choose: (brush: Brush | undefined) => void;
  readonly resize: (size: number) => void;
  readonly undo: () => void;
}) {
  return (
    <span class="row" role="group" aria-label="Touch up">
      {(['erase', 'restore'] as const).map((each) => (
        <button
          key={each}
          type="button"
          class="plain"
          aria-pressed={brush === each}
          onClick={() => choose(brush === each ? undefined : each)}
        >
          {names[each]}
        </button>
      ))}
      {brush && (
        <label class="split">
          <span class="visually-hidden">Brush size</span>
          <input
            type="range"
            min="4"
            max="160"
            value={size}
            onInput={({ currentTarget }) => resize(Number(currentTarget.value))}
          />
        </label>
      )}
      {(brush || strokes > 0) && (
        <button type="button" class="plain" disabled={strokes === 0} onClick={undo}>
          Undo
        </button>
      )}
    </span>
  );
}
