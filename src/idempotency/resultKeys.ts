import { textHash } from './hash.ts';

/** Under which an account's result of a content is kept. */
export const contentKey = (accountId: string, content: string): string => `${accountId}:content:${content}`;

/** A key where others may read it: says nothing of accounts and calls. */
export const keyName = textHash;
