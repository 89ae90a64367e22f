import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Chosen, chosenFile } from './PicturePicker.tsx';
import type { Done } from './Playground.tsx';

const backdrops = [
  { id: 'checker', name: 'Checkerboard' },
  { id: 'white', name: 'White' },
  { id: 'black', name: 'Black' },
  { id: 'green', name: 'Green' },
] as const;

type View = 'compare' | 'result' | 'original';

/** Of the picture on the stage: `scale` in screen pixels a picture pixel, 0 = fitted; the middle moved by x, y. */
interface Camera {
  readonly scale: number;
  readonly x: number;
  readonly y: number;
}

const fitted: Camera = { scale: 0, x: 0, y: 0 };
const maxScale = 16;

interface Size {
  readonly width: number;
  readonly height: number;
}

const originalOf = (picture: Chosen | undefined) => (picture?.kind === 'file' ? picture.preview : undefined);

/** The picture and its cut-out: compare, zoom to pixels, lay over backgrounds. Takes dropped and pasted photos. */
export function Stage({
  picture,
  done,
  choose,
  children,
}: {
  readonly picture: Chosen | undefined;
  readonly done: Done | undefined;
  readonly choose: (picture: Chosen) => void;
  readonly children: ComponentChildren;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState<Size>({ width: 800, height: 560 });
  const [natural, setNatural] = useState<Size>();
  const [camera, setCamera] = useState(fitted);
  const [split, setSplit] = useState(50);
  const [wanted, setView] = useState<View>('compare');
  const [backdrop, setBackdrop] = useState('checker');
  const [colour, setColour] = useState('#ffd166');
  const [own, setOwn] = useState<string>();
  const [over, setOver] = useState(false);
  const drag = useRef<{ readonly x: number; readonly y: number; readonly divider: boolean }>(undefined);

  const before = originalOf(picture);
  const after = done?.image;
  const comparable = Boolean(before && after && done?.aligned);
  const view: View = !after ? 'original' : wanted === 'compare' && !comparable ? 'result' : wanted;
  const shown = view === 'original' ? before : after;

  const fit = natural ? Math.min(room.width / natural.width, room.height / natural.height, 1) : 1;
  const scale = camera.scale || fit;

  useLayoutEffect(() => {
    if (!frame.current) return undefined;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setRoom({ width: entry.contentRect.width, height: entry.contentRect.height });
    });
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);

  useEffect(() => setCamera(fitted), [picture, after]);
  useEffect(() => () => (before ? URL.revokeObjectURL(before) : undefined), [before]);
  useEffect(() => () => (own ? URL.revokeObjectURL(own) : undefined), [own]);
  useEffect(() => {
    const paste = (event: ClipboardEvent) => {
      const file = [...(event.clipboardData?.files ?? [])].find(({ type }) => type.startsWith('image/'));
      if (file) choose(chosenFile(file));
    };
    addEventListener('paste', paste);
    return () => removeEventListener('paste', paste);
  }, [choose]);

  /** Zooms about a point, given from the middle of the frame. */
  const zoom = (factor: number, x = 0, y = 0) =>
    setCamera((now) => {
      const from = now.scale || fit;
      const to = Math.min(maxScale, Math.max(fit, from * factor));
      if (to <= fit) return fitted;
      const grown = to / from;
      return { scale: to, x: x - (x - now.x) * grown, y: y - (y - now.y) * grown };
    });
  const pan = (x: number, y: number) => setCamera((now) => ({ ...now, x: now.x + x, y: now.y + y }));

  const onKeyDown = (event: KeyboardEvent) => {
    const step = 40;
    const keys: Readonly<Record<string, () => void>> = {
      '+': () => zoom(1.5),
      '=': () => zoom(1.5),
      '-': () => zoom(1 / 1.5),
      '0': () => setCamera(fitted),
      '1': () => setCamera({ scale: 1, x: 0, y: 0 }),
      ArrowLeft: () => pan(step, 0),
      ArrowRight: () => pan(-step, 0),
      ArrowUp: () => pan(0, step),
      ArrowDown: () => pan(0, -step),
    };
    const act = event.target === event.currentTarget ? keys[event.key] : undefined;
    if (!act) return;
    event.preventDefault();
    act();
  };

  const sheet = natural && { width: natural.width * scale, height: natural.height * scale };
  const sheetLeft = sheet ? room.width / 2 + camera.x - sheet.width / 2 : 0;
  const dividerX = sheet ? sheetLeft + (sheet.width * split) / 100 : 0;

  const at = (event: { clientX: number; clientY: number }) => {
    const box = frame.current?.getBoundingClientRect();
    return { x: event.clientX - (box?.left ?? 0), y: event.clientY - (box?.top ?? 0) };
  };
  const onPointerDown = (event: PointerEvent) => {
    if (!shown || event.button !== 0) return;
    frame.current?.setPointerCapture(event.pointerId);
    const { x, y } = at(event);
    const near = Math.abs(x - dividerX) < 28;
    drag.current = { x, y, divider: view === 'compare' && (near || !camera.scale) };
    onPointerMove(event);
  };
  const onPointerMove = (event: PointerEvent) => {
    if (!drag.current || !sheet) return;
    const { x, y } = at(event);
    if (drag.current.divider)
      setSplit(Math.round(Math.min(100, Math.max(0, ((x - sheetLeft) / sheet.width) * 100))));
    else pan(x - drag.current.x, y - drag.current.y);
    drag.current = { ...drag.current, x, y };
  };
  const onPointerUp = () => {
    drag.current = undefined;
  };
  const onWheel = (event: WheelEvent) => {
    if (!shown) return;
    event.preventDefault();
    const { x, y } = at(event);
    zoom(Math.exp(-event.deltaY / 400), x - room.width / 2, y - room.height / 2);
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    const file = event.dataTransfer?.files[0];
    if (file) choose(chosenFile(file));
  };

  const placed = sheet && {
    width: `${sheet.width}px`,
    height: `${sheet.height}px`,
    transform: `translate(calc(-50% + ${camera.x}px), calc(-50% + ${camera.y}px))`,
    imageRendering: scale > 2 ? 'pixelated' : 'auto',
  };
  const ground =
    backdrop === 'colour'
      ? { backgroundColor: colour }
      : backdrop === 'own' && own
        ? { backgroundImage: `url(${own})`, backgroundSize: 'cover', backgroundPosition: 'center' }
        : {};
  const measure = ({ currentTarget }: { currentTarget: HTMLImageElement }) =>
    setNatural({ width: currentTarget.naturalWidth, height: currentTarget.naturalHeight });

  return (
    <div class="stage">
      <div
        ref={frame}
        class={over ? 'frame over' : 'frame'}
        role="group"
        aria-label="Picture: + and - zoom, arrows move, 0 fits, 1 shows pixels as they are"
        tabIndex={0}
        onKeyDown={onKeyDown}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerCancel={onPointerUp}
        onWheel={onWheel}
        onDrop={onDrop}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
      >
        {shown && (
          <div class="sheet" style={placed}>
            <div
              class={`ground ${view === 'original' ? '' : backdrop}`}
              style={view === 'original' ? {} : ground}
            />
            <img src={shown} alt={view === 'original' ? 'Before' : 'After'} onLoad={measure} />
            {view === 'compare' && (
              <img
                class="before"
                src={before}
                alt="Before"
                style={{ clipPath: `inset(0 ${100 - split}% 0 0)` }}
              />
            )}
          </div>
        )}
        {view === 'compare' && sheet && <div class="divider" style={{ left: `${dividerX}px` }} />}
        {picture?.kind === 'url' && !after && (
          <p class="soft">The picture at {picture.url} is fetched by the service.</p>
        )}
        {!picture && children}
      </div>
      {picture && (
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
            <span class="row" role="group" aria-label="Show">
              {(['compare', 'result', 'original'] as const)
                .filter((each) => (each === 'compare' ? comparable : each === 'original' ? before : true))
                .map((each) => (
                  <button
                    key={each}
                    type="button"
                    class="plain"
                    aria-pressed={view === each}
                    onClick={() => setView(each)}
                  >
                    {{ compare: 'Compare', result: 'Result', original: 'Original' }[each]}
                  </button>
                ))}
            </span>
          )}
          <span class="row" role="group" aria-label="Zoom">
            <button type="button" class="plain" aria-label="Zoom out" onClick={() => zoom(1 / 1.5)}>
              −
            </button>
            <span class="mono zoom">{Math.round(scale * 100)} %</span>
            <button type="button" class="plain" aria-label="Zoom in" onClick={() => zoom(1.5)}>
              +
            </button>
            <button type="button" class="plain" onClick={() => setCamera(fitted)}>
              Fit
            </button>
            <button type="button" class="plain" onClick={() => setCamera({ scale: 1, x: 0, y: 0 })}>
              1:1
            </button>
          </span>
          {after && (
            <span class="row grounds" role="group" aria-label="Behind the result, on this page only">
              {backdrops.map(({ id, name }) => (
                <button
                  key={id}
                  type="button"
                  class={`swatch ${id}`}
                  aria-label={name}
                  title={name}
                  aria-pressed={backdrop === id}
                  onClick={() => setBackdrop(id)}
                />
              ))}
              <input
                type="color"
                aria-label="Any colour"
                title="Any colour"
                value={colour}
                onInput={({ currentTarget }) => {
                  setColour(currentTarget.value);
                  setBackdrop('colour');
                }}
              />
              <label class="button plain file">
                Own background
                <input
                  class="visually-hidden"
                  type="file"
                  accept="image/*"
                  onChange={({ currentTarget }) => {
                    const file = currentTarget.files?.[0];
                    if (!file) return;
                    setOwn(URL.createObjectURL(file));
                    setBackdrop('own');
                  }}
                />
              </label>
            </span>
          )}
        </div>
      )}
      {picture && children}
    </div>
  );
}
