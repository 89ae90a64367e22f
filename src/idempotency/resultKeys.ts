import { textHash } from './hash.ts';

/** Key of an account's result for a content. */
export const contentKey = (accountId: string, content: string): string => `${accountId}:content:${content}`;

/** A key's hash, for where others may read it: it reveals neither account nor request. */
export const keyName = textHash;
