import type { SizeName } from '../image/size.ts';
import type { OutputFormat } from '../image/types.ts';

/** Where the picture comes from. Exactly one, checked by whoever makes the request. */
export type Source =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'base64'; readonly text: string }
  | { readonly kind: 'url'; readonly url: string };

/** Kinds of subject that a caller may name; `auto` leaves it to the classifier. */
export type SubjectType =
  | 'auto'
  | 'person'
  | 'product'
  | 'car'
  | 'animal'
  | 'graphic'
  | 'transportation'
  | 'other';

/** How finely the kind is told in the answer; `none` does not tell it. */
export type TypeLevel = 'none' | '1' | '2';

/** What is asked for, with every alias resolved and every default filled in. Frozen; all later steps follow from it. */
export interface CutoutRequest {
  readonly source: Source;
  readonly size: SizeName | 'auto';
  readonly type: SubjectType;
  readonly typeLevel: TypeLevel;
  readonly format: OutputFormat | 'auto';
  readonly channels: 'rgba' | 'alpha';
}

/**
 * The canonical text of everything but the picture: equal for calls that ask for the same in different words.
 * A request is plain data, made with its fields in one order.
 */
export function settingsOf({ source: _, ...settings }: CutoutRequest): string {
  return JSON.stringify(settings);
}
