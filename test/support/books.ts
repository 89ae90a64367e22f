import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Books, openBooks, type ServedBooks, serveBooks } from '../../src/billing/books.ts';
import { type BillingOptions, credits, standardBilling } from '../../src/billing/price.ts';

const root = fileURLToPath(new URL('../../../../', import.meta.url));

export const nativeBinding = path.join(root, 'build', 'sqlite', 'better_sqlite3.node');

export interface Cleanup {
  teardown(clean: () => void): void;
}

/** An empty folder that is gone after the test. */
export function testFolder(t: Cleanup): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-books-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A clock that stands still until the test moves it. */
export class TestClock {
  at: number;

  constructor(at = '2026-11-21T12:00:00Z') {
    this.at = Date.parse(at);
  }

  readonly now = () => this.at;

  forward(milliseconds: number): void {
    this.at += milliseconds;
  }

  set(at: string): void {
    this.at = Date.parse(at);
  }
}

export const noFreePreviews: BillingOptions = {
  ...standardBilling,
  freePreviews: { perMonth: 0, perDay: 0 },
};

export interface TestBooks extends Books {
  readonly clock: TestClock;
  readonly dataDir: string;
}

/** Books in a folder of their own, without a server. */
export function testBooks(t: Cleanup, billing: BillingOptions = standardBilling): TestBooks {
  const dataDir = testFolder(t);
  const clock = new TestClock();
  const books = openBooks({ dataDir, nativeBinding, billing, now: clock.now });
  t.teardown(() => books.close());
  return { ...books, clock, dataDir };
}

export function testServer(
  t: Cleanup,
  dataDir: string,
  options: { billing?: BillingOptions; clock?: TestClock } = {},
): ServedBooks {
  const { billing = standardBilling, clock = new TestClock() } = options;
  const onError = (error: unknown) => {
    throw error;
  };
  const books = serveBooks({ dataDir, nativeBinding, billing, now: clock.now, onError });
  t.teardown(() => books.database.open && books.close());
  return books;
}

/** A new account with so many credits. */
export function accountWith(books: Books, amount: number): string {
  const { id } = books.accounts.create('Test');
  if (amount > 0) books.ledger.post(id, { kind: 'grant', amount: credits(amount) });
  return id;
}
