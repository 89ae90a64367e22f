import { books } from './0001Books.ts';
import { improve } from './0002Improve.ts';
import { signIn } from './0003SignIn.ts';

export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/** In order; a step that was released is never edited, only followed by another. */
export const migrations: readonly Migration[] = [books, improve, signIn];
