import { isMarked, type MarkedBox, type MarkedPoint, type Marks } from './subject.ts';

/** What a click on the image means; `look`: nothing. */
export type Picking = 'look' | 'include' | 'exclude';

const names = { include: 'Choose subject', exclude: 'Not this' } as const;

/** Chooses what clicking on the image does: nothing, or saying what is in the subject and what is not. */
export function SubjectTools({
  pick,
  marks,
  choose,
  undo,
}: {
  readonly pick: Picking;
  readonly marks: Marks;
  readonly choose: (pick: Picking) => void;
  readonly undo: () => void;
}) {
  const marked = isMarked(marks);
  return (
    <span class="row" role="group" aria-label="Which subject">
      {(['include', 'exclude'] as const).map((each) => (
        <button
          key={each}
          type="button"
          class="plain"
          aria-pressed={pick === each}
          onClick={() => choose(pick === each ? 'look' : each)}
        >
          {names[each]}
        </button>
      ))}
      {(pick !== 'look' || marked) && (
        <button type="button" class="plain" disabled={!marked} aria-label="Undo point" onClick={undo}>
          Undo
        </button>
      )}
    </span>
  );
}

const place = ({ x, y }: { readonly x: number; readonly y: number }) => ({ left: `${x}%`, top: `${y}%` });

/** Points and box over the image, and the position that Enter marks. */
export function MarkLayer({
  marks: { points, box },
  drawn,
  cursor,
}: {
  readonly marks: Marks;
  /** A box that is being drawn. */
  readonly drawn: MarkedBox | undefined;
  readonly cursor: Omit<MarkedPoint, 'include'> | undefined;
}) {
  const shown = drawn ?? box;
  return (
    <div class="marks" data-testid="marks">
      {shown && (
        <span
          class="box"
          style={{
            ...place({ x: shown.x1, y: shown.y1 }),
            width: `${shown.x2 - shown.x1}%`,
            height: `${shown.y2 - shown.y1}%`,
          }}
        />
      )}
      {points.map((point, at) => (
        <span key={at} class={`mark ${point.include ? 'include' : 'exclude'}`} style={place(point)}>
          {point.include ? '+' : '−'}
        </span>
      ))}
      {cursor && <span class="mark cursor" style={place(cursor)} />}
    </div>
  );
}
