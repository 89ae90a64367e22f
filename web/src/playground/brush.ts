import type { Size } from './camera.ts';

/** What a stroke does to the subject. */
export type Brush = 'erase' | 'restore';

/** A line drawn with a round brush, in pixels of the result. */
export interface Stroke {
  readonly brush: Brush;
  readonly radius: number;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** The service uses masks at up to this many pixels a side. */
const longestSide = 2048;

/** Canvas pixels per pixel of the result. */
export const canvasScale = ({ width, height }: Size): number =>
  Math.min(1, longestSide / Math.max(width, height));

/** Colours of the strokes over the image; a mask has white and black. */
export const overlayColours: Readonly<Record<Brush, string>> = {
  erase: 'rgb(230 40 60)',
  restore: 'rgb(30 160 90)',
};
const maskColours: Readonly<Record<Brush, string>> = { erase: 'black', restore: 'white' };

/** Draws strokes, the last on top, on a canvas with `scale` pixels per pixel of the result. */
export function drawStrokes(
  context: CanvasRenderingContext2D,
  strokes: readonly Stroke[],
  colours: Readonly<Record<Brush, string>>,
  scale: number,
): void {
  context.lineCap = 'round';
  context.lineJoin = 'round';
  for (const { brush, radius, points } of strokes) {
    const [first, ...rest] = points;
    if (!first) continue;
    context.strokeStyle = colours[brush];
    context.lineWidth = 2 * radius * scale;
    context.beginPath();
    context.moveTo(first[0] * scale, first[1] * scale);
    // A line without length is drawn as a dot.
    for (const [x, y] of rest.length > 0 ? rest : [first]) context.lineTo(x * scale, y * scale);
    context.stroke();
  }
}

/** The bytes of a canvas as PNG, at once: a request that is sent next has them. */
function pngOf(canvas: HTMLCanvasElement): Uint8Array<ArrayBuffer> {
  const [, base64 = ''] = canvas.toDataURL('image/png').split(',');
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** The alpha of a shown result as a gray image, with the strokes in black and white: a mask for the next request. */
export function maskOf(result: HTMLImageElement, strokes: readonly Stroke[]): File | undefined {
  const { naturalWidth: width, naturalHeight: height } = result;
  const scale = canvasScale({ width, height });
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const context = canvas.getContext('2d');
  if (!context) return undefined;
  const fill = (colour: string, how: GlobalCompositeOperation) => {
    context.globalCompositeOperation = how;
    context.fillStyle = colour;
    context.fillRect(0, 0, canvas.width, canvas.height);
  };
  context.drawImage(result, 0, 0, canvas.width, canvas.height);
  fill('white', 'source-in');
  fill('black', 'destination-over');
  context.globalCompositeOperation = 'source-over';
  drawStrokes(context, strokes, maskColours, scale);
  return new File([pngOf(canvas)], 'mask.png', { type: 'image/png' });
}
