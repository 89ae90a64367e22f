import fs, { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isInsufficientCredits } from '../../src/billing/insufficientCredits.ts';
import { type BillingOptions, credits, standardBilling } from '../../src/billing/price.ts';
import { openStores, type ServedStores, type Stores, serveStores } from '../../src/billing/stores.ts';

export interface Cleanup {
  teardown(clean: () => void | Promise<void>): void;
}

/** An empty folder that is removed after the test. */
export function testFolder(t: Cleanup): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-books-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A clock that advances only when the test moves it. */
export class TestClock {
  at: number;

  constructor(at = '2026-11-21T12:00:00Z') {
    this.at = Date.parse(at);
  }

  readonly now = () => this.at;
  /** Both clocks of a limit; here the wall clock is never set, so they are the same. */
  readonly elapsed = this.now;

  forward(milliseconds: number): void {
    this.at += milliseconds;
  }

  set(at: string): void {
    this.at = Date.parse(at);
  }
}

/** For `catch`: undefined where credits are missing. */
export function undefinedIfInsufficient(error: unknown): undefined {
  if (!isInsufficientCredits(error)) throw error;
}

export const noFreePreviews: BillingOptions = {
  ...standardBilling,
  freePreviews: { perMonth: 0, perDay: 0 },
};

/** Stores are closed once, by the test or after it. */
function once(close: () => Promise<void>): () => Promise<void> {
  let closed: Promise<void> | undefined;
  return () => {
    closed ??= close();
    return closed;
  };
}

/** Location of the stores of a test. */
export interface Place {
  readonly dataDir: string;
  /** PostgreSQL; without it SQLite in the folder. */
  readonly databaseUrl?: string;
}

/**
 * Replaces the disk until the test ends: `answer` receives a function that completes a sync. Without `disk` syncs complete
 * at once, for tests that count turns of the event loop.
 */
export function withDisk(
  t: Cleanup,
  disk: (descriptor: number, answer: (error: Error | null) => void) => void = (_descriptor, answer) =>
    answer(null),
): void {
  const real = fs.fdatasync;
  const set = (fdatasync: unknown) => void Object.assign(fs, { fdatasync });
  set(disk);
  t.teardown(() => set(real));
}

/** An empty location, removed after the test. */
export type NewPlace = (t: Cleanup) => Promise<Place>;

export const sqlitePlace: NewPlace = async (t) => ({ dataDir: testFolder(t) });

export interface TestStores extends Stores, Place {
  readonly clock: TestClock;
}

/** Stores of their own, without a server. */
export async function testStores(
  t: Cleanup,
  billing: BillingOptions = standardBilling,
  newPlace: NewPlace = sqlitePlace,
): Promise<TestStores> {
  const place = await newPlace(t);
  const clock = new TestClock();
  const stores = await openStores({ ...place, billing, now: clock.now });
  const close = once(stores.close);
  t.teardown(close);
  return { ...stores, ...place, close, clock };
}

export async function testServer(
  t: Cleanup,
  place: Place,
  options: {
    billing?: BillingOptions;
    clock?: TestClock;
    leaseMs?: number;
    onError?: (error: unknown) => void;
  } = {},
): Promise<ServedStores> {
  // Sweeps by itself only if a test asks for leases: elsewhere its clock does not advance, and nothing happens by itself.
  const { billing = standardBilling, clock = new TestClock(), leaseMs = 3_600_000, ...more } = options;
  const onError = (error: unknown) => {
    throw error;
  };
  const stores = await serveStores({
    onError,
    ...place,
    ...more,
    leaseMs,
    billing,
    now: clock.now,
  });
  const close = once(stores.close);
  t.teardown(close);
  return { ...stores, close };
}

/** A new account with that many credits. */
export async function accountWith(stores: Stores, amount: number): Promise<string> {
  const { id } = await stores.accounts.create('Test');
  if (amount > 0) await stores.ledger.post(id, { kind: 'grant', amount: credits(amount) });
  return id;
}
