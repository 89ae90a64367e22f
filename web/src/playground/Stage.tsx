import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { BrushTools } from './BrushTools.tsx';
import { type Brush, canvasScale, drawStrokes, maskOf, overlayColours, type Stroke } from './brush.ts';
import { type Size, useCamera } from './camera.ts';
import { type Ground, groundOf } from './ground.ts';
import type { SourceImage } from './image.ts';
import type { Result } from './result.ts';
import { GroundButtons, type StageView, ViewButtons, ZoomButtons } from './StageTools.tsx';
import { MarkLayer, type Picking, SubjectTools } from './SubjectTools.tsx';

import { boxBetween, isMarked, type Marks, undone } from './subject.ts';

interface Corner {
  readonly x: number;
  readonly y: number;
}

const middle: Corner = { x: 50, y: 50 };

const inside = (percent: number) => Math.min(100, Math.max(0, percent));

/** An image and its cut-out: compare, zoom to pixels, show on backgrounds, touch up with a brush. */
export function Stage({
  image,
  result,
  over,
  onMask,
  marks,
  onMarks,
  ground,
  onGround,
  onPicture,
  children,
}: {
  readonly image: SourceImage | undefined;
  readonly result: Result | undefined;
  /** A file is being dragged over the page. */
  readonly over: boolean;
  /** The touched-up alpha of the result, as a mask for the next request; undefined: nothing is touched up any more. */
  readonly onMask: (mask: File | undefined) => void;
  /** Points and a box that say which subject is meant; undefined where the service takes none. */
  readonly marks: Marks | undefined;
  readonly onMarks: (marks: Marks) => void;
  /** What lies behind the subject. */
  readonly ground: Ground;
  readonly onGround: (ground: Ground) => void;
  /** Progress, and what can be done with the result; lies over the lower edge of the picture. */
  readonly onPicture: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState<Size>({ width: 800, height: 560 });
  const [natural, setNatural] = useState<Size>();
  const [split, setSplit] = useState(50);
  const [wanted, setWanted] = useState<StageView>('result');
  const drag = useRef<{ readonly x: number; readonly y: number; readonly divider: boolean }>(undefined);
  const [brush, setBrush] = useState<Brush>();
  const [brushSize, setBrushSize] = useState(40);
  const [strokes, setStrokes] = useState<readonly Stroke[]>([]);
  const [stroke, setStroke] = useState<Stroke>();
  const [picking, setPicking] = useState<Picking>('look');
  /** Corners of a box that is being drawn, in percent. */
  const [corners, setCorners] = useState<readonly [Corner, Corner]>();
  const [cursor, setCursor] = useState<Corner>(middle);
  const overlay = useRef<HTMLCanvasElement>(null);
  /** The result, also while the original is shown. */
  const resultPicture = useRef<HTMLImageElement>(null);
  const camera = useCamera(room, natural);

  const before = image?.kind === 'file' ? image.preview : undefined;
  const after = result?.image;
  const comparable = Boolean(before && after && result?.aligned);
  const view: StageView = !after ? 'original' : wanted === 'compare' && !comparable ? 'result' : wanted;
  /** A file with a background is shown as it is. */
  const transparent = result !== undefined && groundOf(result.values).kind === 'none';
  const file = ground.kind === 'image' ? ground.file : undefined;
  const own = useMemo(() => (file ? URL.createObjectURL(file) : undefined), [file]);
  const paintable = after !== undefined && result?.showsSubject === true && view !== 'original';
  const painting = paintable ? brush : undefined;
  // What is to be restored is visible in the original only.
  const shown = view === 'original' || painting === 'restore' ? before : after;
  const pickable =
    marks !== undefined && (before ?? after) !== undefined && (view === 'original' || comparable);
  const pick = pickable && !painting ? picking : 'look';

  useLayoutEffect(() => {
    if (!frame.current) return undefined;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setRoom({ width: entry.contentRect.width, height: entry.contentRect.height });
    });
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  useEffect(camera.fit, [image, after]);
  useEffect(() => {
    setStrokes([]);
    setStroke(undefined);
    setWanted('result');
  }, [after]);
  const canvas = natural && {
    width: Math.round(natural.width * canvasScale(natural)),
    height: Math.round(natural.height * canvasScale(natural)),
  };
  useLayoutEffect(() => {
    const context = overlay.current?.getContext('2d');
    if (!context || !natural) return;
    context.clearRect(0, 0, context.canvas.width, context.canvas.height);
    drawStrokes(context, stroke ? [...strokes, stroke] : strokes, overlayColours, canvasScale(natural));
  });
  useEffect(() => () => (before ? URL.revokeObjectURL(before) : undefined), [before]);
  useEffect(() => () => (own ? URL.revokeObjectURL(own) : undefined), [own]);

  const touchUp = (next: readonly Stroke[]) => {
    setStrokes(next);
    onMask(resultPicture.current && next.length > 0 ? maskOf(resultPicture.current, next) : undefined);
  };
  const undo = () => touchUp(strokes.slice(0, -1));

  const addPoint = ({ x, y }: Corner, include: boolean) => {
    if (marks) onMarks({ ...marks, points: [...marks.points, { x, y, include }] });
  };
  const undoMark = () => {
    if (marks) onMarks(undone(marks));
  };
  /** Keys while points are chosen: arrows move the cursor, Enter marks what is under it. */
  const onPickKey = (event: KeyboardEvent): boolean => {
    const step = event.shiftKey ? 0.5 : 2;
    const moves: Readonly<Record<string, readonly [number, number]>> = {
      ArrowLeft: [-step, 0],
      ArrowRight: [step, 0],
      ArrowUp: [0, -step],
      ArrowDown: [0, step],
    };
    const move = moves[event.key];
    if (move) setCursor((now) => ({ x: inside(now.x + move[0]), y: inside(now.y + move[1]) }));
    else if (event.key === 'Enter') addPoint(cursor, (pick === 'include') !== event.altKey);
    else if (event.key === 'Escape') setPicking('look');
    else if (event.key === 'z' && (event.ctrlKey || event.metaKey)) undoMark();
    else return false;
    return true;
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (pick !== 'look' && event.target === event.currentTarget && onPickKey(event)) {
      event.preventDefault();
      return;
    }
    if (event.key === 'z' && (event.ctrlKey || event.metaKey) && strokes.length > 0) {
      event.preventDefault();
      undo();
      return;
    }
    const step = 40;
    const keys: Readonly<Record<string, () => void>> = {
      '+': () => camera.zoom(1.5),
      '=': () => camera.zoom(1.5),
      '-': () => camera.zoom(1 / 1.5),
      '0': camera.fit,
      '1': camera.actualSize,
      ArrowLeft: () => camera.pan(step, 0),
      ArrowRight: () => camera.pan(-step, 0),
      ArrowUp: () => camera.pan(0, step),
      ArrowDown: () => camera.pan(0, -step),
    };
    const act = event.target === event.currentTarget ? keys[event.key] : undefined;
    if (!act) return;
    event.preventDefault();
    act();
  };

  const { shownScale } = camera;
  const sheet = natural && { width: natural.width * shownScale, height: natural.height * shownScale };
  const sheetLeft = sheet ? room.width / 2 + camera.x - sheet.width / 2 : 0;
  const dividerX = sheet ? sheetLeft + (sheet.width * split) / 100 : 0;

  /** A position in the frame as pixels of the image. */
  const onImage = (x: number, y: number, { height }: Size) =>
    [(x - sheetLeft) / shownScale, (y - (room.height / 2 + camera.y - height / 2)) / shownScale] as const;
  const at = (event: { clientX: number; clientY: number }) => {
    const box = frame.current?.getBoundingClientRect();
    return { x: event.clientX - (box?.left ?? 0), y: event.clientY - (box?.top ?? 0) };
  };
  /** A position in the frame in percent of the image. */
  const inPercent = (event: PointerEvent, size: Size): Corner => {
    const { x, y } = at(event);
    const [left, top] = onImage(x, y, size);
    return {
      x: inside((100 * left * shownScale) / size.width),
      y: inside((100 * top * shownScale) / size.height),
    };
  };
  const onPointerDown = (event: PointerEvent) => {
    if (!shown || event.button !== 0) return;
    frame.current?.setPointerCapture(event.pointerId);
    const { x, y } = at(event);
    if (painting && sheet) {
      setStroke({ brush: painting, radius: brushSize / 2 / shownScale, points: [onImage(x, y, sheet)] });
      return;
    }
    if (pick !== 'look' && sheet) {
      const corner = inPercent(event, sheet);
      setCorners([corner, corner]);
      return;
    }
    const near = Math.abs(x - dividerX) < 28;
    drag.current = { x, y, divider: view === 'compare' && (near || camera.isFitted) };
    onPointerMove(event);
  };
  const onPointerMove = (event: PointerEvent) => {
    if (stroke && sheet) {
      const { x, y } = at(event);
      setStroke({ ...stroke, points: [...stroke.points, onImage(x, y, sheet)] });
      return;
    }
    if (corners && sheet) {
      setCorners([corners[0], inPercent(event, sheet)]);
      return;
    }
    if (!drag.current || !sheet) return;
    const { x, y } = at(event);
    if (drag.current.divider)
      setSplit(Math.round(Math.min(100, Math.max(0, ((x - sheetLeft) / sheet.width) * 100))));
    else camera.pan(x - drag.current.x, y - drag.current.y);
    drag.current = { ...drag.current, x, y };
  };
  const onPointerUp = (event: PointerEvent) => {
    if (corners && marks) {
      const box = boxBetween(...corners);
      setCorners(undefined);
      if (box) onMarks({ ...marks, box });
      else if (event.type === 'pointerup') addPoint(corners[0], (pick === 'include') !== event.altKey);
    }
    if (stroke) {
      setStroke(undefined);
      touchUp([...strokes, stroke]);
    }
    drag.current = undefined;
  };
  const onWheel = (event: WheelEvent) => {
    if (!shown) return;
    event.preventDefault();
    const { x, y } = at(event);
    camera.zoom(Math.exp(-event.deltaY / 400), x - room.width / 2, y - room.height / 2);
  };

  const placed = sheet && {
    width: `${sheet.width}px`,
    height: `${sheet.height}px`,
    transform: `translate(calc(-50% + ${camera.x}px), calc(-50% + ${camera.y}px))`,
    imageRendering: shownScale > 2 ? 'pixelated' : 'auto',
  };
  const behind =
    ground.kind === 'colour'
      ? { backgroundColor: `#${ground.hex}` }
      : own
        ? { backgroundImage: `url(${own})`, backgroundSize: 'cover', backgroundPosition: 'center' }
        : {};
  const measure = ({ currentTarget }: { currentTarget: HTMLImageElement }) =>
    setNatural({ width: currentTarget.naturalWidth, height: currentTarget.naturalHeight });

  return (
    <div class="stage">
      <div class="picture">
        <div
          ref={frame}
          class={`frame${over ? ' over' : ''}${painting || pick !== 'look' ? ' painting' : ''}`}
          role="group"
          aria-label={
            pick === 'look'
              ? 'Image: + and - zoom, arrows move, 0 fits, 1 shows actual pixels'
              : 'Image: arrows move the cursor, Enter marks the subject, Alt+Enter what is not in it, Escape ends'
          }
          tabIndex={0}
          onKeyDown={onKeyDown}
          onPointerDown={onPointerDown}
          onPointerMove={onPointerMove}
          onPointerUp={onPointerUp}
          onPointerCancel={onPointerUp}
          onWheel={onWheel}
        >
          {shown && (
            <div class="sheet" style={placed}>
              <div
                class={shown === before || ground.kind !== 'none' ? 'ground' : 'ground checker'}
                style={shown === before || !transparent ? {} : behind}
              />
              <img
                src={shown}
                alt={shown === before ? 'Before' : 'After'}
                onLoad={painting ? undefined : measure}
              />
              {paintable && <img ref={resultPicture} src={after} alt="" hidden />}
              {view === 'compare' && !painting && (
                <img
                  class="before"
                  src={before}
                  alt="Before"
                  style={{ clipPath: `inset(0 ${100 - split}% 0 0)` }}
                />
              )}
              {pickable && marks && (pick !== 'look' || isMarked(marks)) && (
                <MarkLayer
                  marks={marks}
                  drawn={corners && boxBetween(...corners)}
                  cursor={pick === 'look' ? undefined : cursor}
                />
              )}
              {paintable && (
                <canvas
                  ref={overlay}
                  class="strokes"
                  width={canvas?.width}
                  height={canvas?.height}
                  data-testid="strokes"
                />
              )}
            </div>
          )}
          {view === 'compare' && !painting && sheet && (
            <div class="divider" style={{ left: `${dividerX}px` }} />
          )}
          {image?.kind === 'url' && !after && (
            <p class="soft">The service downloads the image from {image.url}.</p>
          )}
          {!image && children}
        </div>
        {onPicture}
      </div>
      {image && (
        <div class="row tools">
          {comparable && view === 'compare' && (
            <label class="split">
              <span class="visually-hidden">Before and after</span>
              <input
                type="range"
                min="0"
                max="100"
                value={split}
                onInput={({ currentTarget }) => setSplit(Number(currentTarget.value))}
              />
            </label>
          )}
          {after && (
            <ViewButtons
              views={[
                'result',
                ...(comparable ? (['compare'] as const) : []),
                ...(before ? (['original'] as const) : []),
              ]}
              view={view}
              choose={setWanted}
            />
          )}
          <ZoomButtons camera={camera} />
          {pickable && marks && (
            <SubjectTools
              pick={pick}
              marks={marks}
              choose={(next) => {
                setPicking(next);
                setBrush(undefined);
              }}
              undo={undoMark}
            />
          )}
          {paintable && (
            <BrushTools
              brush={brush}
              size={brushSize}
              strokes={strokes.length}
              choose={(next) => {
                setBrush(next);
                setPicking('look');
              }}
              resize={setBrushSize}
              undo={undo}
            />
          )}
          {after && <GroundButtons ground={ground} change={onGround} />}
        </div>
      )}
      {pick !== 'look' && (
        <p class="soft small">
          Click on the subject, Alt-click on what is not in it, or drag a box around it: it is cut out at
          once.
        </p>
      )}
      {strokes.length > 0 && (
        <p class="soft small">Red is taken away, green is kept; it is sent when you pause.</p>
      )}
      {image && children}
    </div>
  );
}
