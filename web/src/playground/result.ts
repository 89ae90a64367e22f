import { type Answer, headerOf } from '../lib/call.ts';
import type { SourceImage } from './image.ts';
import { isAligned, showsSubject, type Values } from './request.ts';

/** Outcome of one request. */
export interface Result {
  readonly answer: Answer;
  readonly source: SourceImage;
  /** What was asked for. */
  readonly values: Values;
  /** Object URL of the answer's body, for downloading. */
  readonly file: string;
  /** Object URL of the result as an image; absent if the browser cannot show it. */
  readonly image: string | undefined;
  /** Whether every pixel of the result has the position that it has in the source, apart from the size. */
  readonly aligned: boolean;
  /** Whether its alpha shows what the subject is, so that it can be touched up. */
  readonly showsSubject: boolean;
}

async function imageOf({ status, body }: Answer, file: string): Promise<string | undefined> {
  if (status !== 200) return undefined;
  if (body.type.startsWith('image/')) return file;
  if (!body.type.startsWith('application/json')) return undefined;
  const { data } = JSON.parse(await body.text()) as { data: { result_b64: string } };
  const bytes = Uint8Array.from(atob(data.result_b64), (character) => character.charCodeAt(0));
  return URL.createObjectURL(new Blob([bytes]));
}

export async function resultOf(answer: Answer, source: SourceImage, values: Values): Promise<Result> {
  const file = URL.createObjectURL(answer.body);
  return {
    answer,
    source,
    values,
    file,
    image: await imageOf(answer, file),
    aligned: isAligned(values),
    showsSubject: showsSubject(values),
  };
}

export function revoke({ file, image }: Result): void {
  for (const url of new Set([file, image])) if (url) URL.revokeObjectURL(url);
}

/** Saves a result as a file. */
export function save(result: Result): void {
  const link = document.createElement('a');
  link.href = result.file;
  link.download = fileName(result);
  link.click();
}

/** Credits charged, as the answer reports them; 0 for errors. */
export const chargeOf = ({ answer }: Result): number => Number(headerOf(answer, 'x-credits-charged') ?? 0);

/** Whether the service finds it likelier than not that a person has to look at the result. */
export const needsLook = ({ answer }: Result): boolean =>
  Number(headerOf(answer, 'x-uncertainty-score') ?? -1) >= 0.5;

/** Size that `size=full` would give, if it is larger than this result. */
export function largerSize({
  answer,
}: Result): { readonly width: number; readonly height: number } | undefined {
  const [width = 0, height = 0, maxWidth = 0, maxHeight = 0] = [
    'x-width',
    'x-height',
    'x-max-width',
    'x-max-height',
  ].map((name) => Number(headerOf(answer, name)));
  return maxWidth * maxHeight > width * height ? { width: maxWidth, height: maxHeight } : undefined;
}

const extension: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/avif': 'avif',
  'application/zip': 'zip',
  'application/json': 'json',
};

/** File name under which a result is saved. */
export function fileName({ source, answer }: Result): string {
  const name = source.kind === 'file' ? source.file.name : (source.url.split('/').at(-1) ?? '');
  const stem = name.replace(/[?#].*$/, '').replace(/\.[^.]*$/, '') || 'image';
  return `${stem}-cutout.${extension[answer.body.type.split(';')[0] ?? ''] ?? 'bin'}`;
}
