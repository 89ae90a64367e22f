import { books } from './0001Books.ts';
import { improve } from './0002Improve.ts';
import { signIn } from './0003SignIn.ts';
import { nodes } from './0004Nodes.ts';
import { booked } from './0005Booked.ts';
import { answers } from './0006Answers.ts';
import { formerAccounts } from './0007FormerAccounts.ts';
import { laterAccounts } from './0008LaterAccounts.ts';
import { lists } from './0009Lists.ts';
import { statements } from './0010Statements.ts';
import type { Migration } from './migration.ts';

/** In the order in which they are applied. */
export const migrations: readonly Migration[] = [
  books,
  improve,
  signIn,
  nodes,
  booked,
  answers,
  formerAccounts,
  laterAccounts,
  lists,
  statements,
];
