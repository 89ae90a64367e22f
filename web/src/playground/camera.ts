import { useState } from 'preact/hooks';

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** `scale` is screen pixels per image pixel, 0 = fitted; the image's centre is (x, y) from the centre of the frame. */
interface View {
  readonly scale: number;
  readonly x: number;
  readonly y: number;
}

const fitted: View = { scale: 0, x: 0, y: 0 };
const maxScale = 16;

export interface Camera extends View {
  /** The effective scale, also while fitted. */
  readonly shownScale: number;
  readonly isFitted: boolean;
  /** Zooms about a point, relative to the centre of the frame. */
  readonly zoom: (factor: number, x?: number, y?: number) => void;
  readonly pan: (x: number, y: number) => void;
  readonly fit: () => void;
  /** One image pixel per screen pixel. */
  readonly actualSize: () => void;
}

/** View of an image of size `natural` in a frame of size `frame`, CSS pixels. */
export function useCamera(frame: Size, natural: Size | undefined): Camera {
  const [view, setView] = useState(fitted);
  const fitScale = natural ? Math.min(frame.width / natural.width, frame.height / natural.height, 1) : 1;
  return {
    ...view,
    shownScale: view.scale || fitScale,
    isFitted: view.scale === 0,
    zoom: (factor, x = 0, y = 0) =>
      setView((now) => {
        const from = now.scale || fitScale;
        const to = Math.min(maxScale, Math.max(fitScale, from * factor));
        if (to <= fitScale) return fitted;
        const ratio = to / from;
        return { scale: to, x: x - (x - now.x) * ratio, y: y - (y - now.y) * ratio };
      }),
    pan: (x, y) => setView((now) => ({ ...now, x: now.x + x, y: now.y + y })),
    fit: () => setView(fitted),
    actualSize: () => setView({ scale: 1, x: 0, y: 0 }),
  };
}
