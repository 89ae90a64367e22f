import { findCharge, type Repeatable, rememberCharge } from '../idempotency/chargedContent.ts';
import type { Sql } from '../store/database.ts';
import { StoreError } from '../store/error.ts';
import { dayOf, type EntryKind } from './entries.ts';
import { freeUse, monthOf, returnFreePreview, useFreePreview } from './freePreviewUse.ts';
import { insufficientCredits } from './insufficientCredits.ts';
import type { LedgerTransaction, NewEntry } from './ledgerTransaction.ts';
import { type BillingOptions, priceOfZero, type QuarterCredits, quarters, type Tier } from './price.ts';
import type { Payment, Reservation, ReserveRequest, Settlement } from './types.ts';

/*
 * Where credits are reserved, settled, released and refunded: the states of an answer, from reserved to delivered, and every
 * transition between them (drawn in docs/credits.md). `reserve` is what payment systems call authorizing; settling and
 * delivering together are their capture.
 *
 * An answer is the response to one request for a result, and its part of the ledger. Only this module changes `answer` and
 * writes entries of the kinds reserve, settle, release and refund. A restore (store/copy.ts) copies them unchanged, and
 * migrations convert them.
 *
 * An answer in progress is a row of `answer`. With a reservation_id it is reserved; a reserved repeat also has a charge_id,
 * the undelivered charge that it repeats. With a charge_id alone it is settled. A charge is identified by the number of its
 * reserve entry. A charge is undelivered while rows refer to it: those are the answers that may still carry it. The first
 * one delivered makes it final for all; if the last one is released instead, the charge is refunded. A charge that was not
 * refunded is valid.
 */

interface AnswerRow {
  readonly id: string;
  readonly reservationId: number | null;
  readonly chargeId: number | null;
}

/** An earlier, valid charge for the same content. */
interface ValidCharge {
  /** Its reserve entry. */
  readonly id: number;
  readonly tier: Tier;
}

interface ReserveEntry {
  readonly id: number;
  readonly payment: Payment;
  readonly amount: QuarterCredits;
  readonly at: number;
  readonly repeatOf: number | null;
}

/** What work is paid with, and how many credits that takes. */
interface Price {
  readonly payment: Payment;
  readonly amount: QuarterCredits;
}

/** An answer as its server describes it, whether or not it has a row in the ledger. */
export interface AnswerDescriptor {
  readonly id: string;
  readonly node: string | null;
  readonly ttlMs: number;
}

const zero = quarters(0);

/** Milliseconds that a charge may be ahead of the clock; beyond that the clock was set back, and its age is unknown. */
const aheadMs = 60_000;

/**
 * What the work costs, and the valid charge for the same content, if there is one. Rejects with `insufficient_credits`, as
 * everything that reserves does; then nothing changes.
 */
export async function quote(
  transaction: LedgerTransaction,
  request: Omit<ReserveRequest, 'requestId'>,
  options: BillingOptions,
) {
  const { repeat, size } = request;
  const known = repeat && (await chargeFor(transaction, repeat));
  const charge = known && (size === 'auto' || size === known.tier) ? known : undefined;
  const tier = charge?.tier ?? tierFor(size, transaction.balance, options);
  const price: Price = charge
    ? { payment: tier, amount: zero }
    : await paymentFor(transaction, tier, options);
  return { ...price, charge, tier };
}

/** Reserves the price of the work; nothing if there is a valid charge for the same content. */
export async function reserve(
  transaction: LedgerTransaction,
  answer: AnswerDescriptor,
  request: ReserveRequest,
  options: BillingOptions,
): Promise<Pick<Reservation, 'id' | 'tier' | 'payment'>> {
  const { charge, tier, payment, amount } = await quote(transaction, request, options);
  const id = await appendReserve(
    transaction,
    { payment, amount },
    { requestId: request.requestId, ...(charge && { reservationId: charge.id, note: 'repeat' }) },
  );
  await insert(transaction, answer, id, charge && (await undeliveredChargeId(transaction.sql, charge)));
  return { id, tier, payment };
}

/**
 * Charges finished work, so that its answer carries a valid charge: the reserved amount, or an existing charge for the
 * same content. If neither is left (the reservation expired, its server was considered dead, or the repeated charge was
 * refunded), the work is reserved and charged again.
 * @param uncertainty of the result, thousandths
 */
export async function settle(
  transaction: LedgerTransaction,
  answer: AnswerDescriptor,
  reservation: number,
  request: ReserveRequest,
  options: BillingOptions,
  uncertainty: number | null,
): Promise<Settlement> {
  const { sql, accountId } = transaction;
  const row = await answerById(sql, answer.id);
  const reserved = await reserveEntry(sql, accountId, reservation);
  if (!reserved) throw new Error(`Reservation ${reservation} has no entry.`);
  const stillReserved = row?.reservationId === reservation;

  const existing = await validChargeFor(transaction, reserved, request);
  if (existing) {
    if (stillReserved && existing.id === reserved.repeatOf) await settleReservation(transaction, reservation);
    else if (stillReserved) await releaseReservation(transaction, reserved, 'charged already');
    await attachCharge(transaction, answer, row, await undeliveredChargeId(sql, existing));
    return { charged: zero, payment: undefined, charge: existing.id };
  }
  const charge =
    stillReserved && reserved.repeatOf === null
      ? { id: reservation, amount: reserved.amount, payment: reserved.payment }
      : await reserveAgain(transaction, reserved, stillReserved, request, options);
  await settleReservation(transaction, charge.id, uncertainty);
  await attachCharge(transaction, answer, row, charge.id);
  if (request.repeat)
    await rememberCharge(sql, accountId, request.repeat, { charge: charge.id, at: transaction.at });
  return { charged: charge.amount, payment: charge.payment, charge: charge.id };
}

/** An answer with this charge was delivered: the charge is final, for every other answer with it too. */
export async function deliver({ sql }: LedgerTransaction, charge: number): Promise<void> {
  await sql.run('DELETE FROM answer WHERE charge_id = @charge AND reservation_id IS NULL', { charge });
  await sql.run('UPDATE answer SET charge_id = NULL WHERE charge_id = @charge', { charge });
}

/** The answer is not delivered. False if it had ended before; then nothing changes. */
export async function release(
  transaction: LedgerTransaction,
  id: string,
  note: string | null = null,
): Promise<boolean> {
  const row = await answerById(transaction.sql, id);
  if (row) await releaseAnswer(transaction, row, note);
  return row !== undefined;
}

/** Its time is up: a reservation is released, a settled answer counts as delivered. False if it had ended before. */
export async function expire(transaction: LedgerTransaction, id: string): Promise<boolean> {
  const row = await answerById(transaction.sql, id);
  if (!row) return false;
  if (row.reservationId === null && row.chargeId !== null) await deliver(transaction, row.chargeId);
  else await releaseAnswer(transaction, row, 'expired');
  return true;
}

/** Adds an answer to a charge; a final charge needs no row. False if the charge is not valid. */
export async function addAnswer(
  transaction: LedgerTransaction,
  answer: AnswerDescriptor,
  charge: number,
): Promise<boolean> {
  const { sql } = transaction;
  if (!(await isChargeValid(sql, charge))) return false;
  const undelivered = await undeliveredChargeId(sql, { id: charge });
  if (undelivered !== null) await insert(transaction, answer, null, undelivered);
  return true;
}

/**
 * Refunds a charge; false if it was refunded before. Rejects with STORE_UNKNOWN_RESERVATION, and with STORE_NOT_CHARGED if it
 * is open, was released or repeats another one.
 */
export async function refund(
  transaction: LedgerTransaction,
  reservation: number,
  note: string | null,
): Promise<boolean> {
  const { sql, accountId } = transaction;
  const reserved = await reserveEntry(sql, accountId, reservation);
  if (!reserved)
    throw new StoreError(
      'STORE_UNKNOWN_RESERVATION',
      `Account ${accountId} has no reservation ${reservation}.`,
    );
  const notCharged = (why: string) =>
    new StoreError('STORE_NOT_CHARGED', `Reservation ${reservation} ${why}.`);
  if ((await closingKindOf(sql, reservation)) !== 'settle')
    throw notCharged('was not charged, so there is nothing to refund');
  const { repeatOf } = reserved;
  if (repeatOf !== null)
    throw notCharged(`repeats ${repeatOf} and cost nothing: ${repeatOf} was charged, refund that one`);
  // Detaches the answers in progress, so that none of them refunds it again.
  await deliver(transaction, reservation);
  return refundCharge(transaction, reserved, note);
}

export interface OpenAnswer {
  readonly id: string;
  readonly accountId: string;
}

export const expired = (sql: Sql, at: number): Promise<OpenAnswer[]> =>
  sql.all('SELECT id, account_id AS "accountId" FROM answer WHERE expires_at <= @at ORDER BY id', { at });

/** Answers of servers that are gone. */
export const orphaned = (sql: Sql): Promise<OpenAnswer[]> =>
  sql.all(
    `SELECT id, account_id AS "accountId" FROM answer
     WHERE NOT EXISTS (SELECT 1 FROM node WHERE node.id = answer.node_id) ORDER BY id`,
  );

export async function countOpen(sql: Sql): Promise<number> {
  const found = await sql.get<{ open: number }>('SELECT count(*) AS open FROM answer');
  return found?.open ?? 0;
}

const answerColumns = 'id, reservation_id AS "reservationId", charge_id AS "chargeId"';

const answerById = (sql: Sql, id: string) =>
  sql.get<AnswerRow>(`SELECT ${answerColumns} FROM answer WHERE id = @id`, { id });

const reserveEntry = (sql: Sql, accountId: string, id: number) =>
  sql.get<ReserveEntry>(
    `SELECT id, payment, -amount AS amount, at, reservation_id AS "repeatOf" FROM entry
     WHERE id = @id AND account_id = @accountId AND kind = 'reserve'`,
    { id, accountId },
  );

async function insert(
  { sql, accountId, at }: LedgerTransaction,
  { id, node, ttlMs }: AnswerDescriptor,
  reservation: number | null,
  charge: number | null = null,
): Promise<void> {
  await sql.run(
    `INSERT INTO answer (id, account_id, node_id, reservation_id, charge_id, expires_at)
     VALUES (@id, @accountId, @node, @reservation, @charge, @expiresAt)`,
    { id, accountId, node, reservation, charge, expiresAt: at + ttlMs },
  );
}

/**
 * Settles the answer: it reserves nothing and may carry this charge. With a final charge (null) it needs no row any more.
 * Without a row it had been released.
 */
async function attachCharge(
  transaction: LedgerTransaction,
  answer: AnswerDescriptor,
  row: AnswerRow | undefined,
  charge: number | null,
): Promise<void> {
  const { sql } = transaction;
  const { id } = answer;
  if (charge === null) await sql.run('DELETE FROM answer WHERE id = @id', { id });
  else if (!row) await insert(transaction, answer, null, charge);
  else
    await sql.run('UPDATE answer SET reservation_id = NULL, charge_id = @charge WHERE id = @id', {
      id,
      charge,
    });
}

const settleReservation = (
  transaction: LedgerTransaction,
  reservation: number,
  uncertainty: number | null = null,
) => transaction.append({ kind: 'settle', amount: zero, reservationId: reservation, uncertainty });

/** Reserves the price once more, for the size the work was done at. */
async function reserveAgain(
  transaction: LedgerTransaction,
  reserved: ReserveEntry,
  stillReserved: boolean,
  { requestId }: ReserveRequest,
  options: BillingOptions,
): Promise<Price & { readonly id: number }> {
  const price = await paymentFor(transaction, tierOf(reserved.payment), options);
  if (stillReserved) await releaseReservation(transaction, reserved, 'its charge was refunded');
  const id = await appendReserve(transaction, price, { requestId, note: `in place of ${reserved.id}` });
  return { id, ...price };
}

/** Takes the price of the work, which for a repeat (with `reservationId`) is 0. Returns the number of the entry. */
async function appendReserve(
  transaction: LedgerTransaction,
  { payment, amount }: Price,
  facts: Pick<NewEntry, 'requestId' | 'reservationId' | 'note'>,
): Promise<number> {
  const id = await transaction.append({
    kind: 'reserve',
    amount: quarters(0 - amount),
    payment,
    ...facts,
    // Lets `verify` distinguish it from work that was wrongly free.
    ...(payment !== 'free' && amount === 0 && facts.reservationId === undefined && { note: priceOfZero }),
  });
  if (payment === 'free') await useFreePreview(transaction);
  return id;
}

async function releaseAnswer(
  transaction: LedgerTransaction,
  row: AnswerRow,
  note: string | null,
): Promise<void> {
  const { sql, accountId } = transaction;
  const { id, reservationId, chargeId } = row;
  if (reservationId !== null) {
    const reserved = await reserveEntry(sql, accountId, reservationId);
    if (reserved) await releaseReservation(transaction, reserved, note);
  }
  await sql.run('DELETE FROM answer WHERE id = @id', { id });
  if (chargeId === null || (await isUndelivered(sql, chargeId))) return;
  const charge = await reserveEntry(sql, accountId, chargeId);
  if (charge) await refundCharge(transaction, charge, note ?? 'not delivered');
}

async function releaseReservation(
  transaction: LedgerTransaction,
  reserved: ReserveEntry,
  note: string | null,
): Promise<void> {
  const { id, amount, payment, at } = reserved;
  await transaction.append({ kind: 'release', amount, reservationId: id, note });
  if (payment === 'free') await returnFreePreview(transaction, at);
}

/** False if it had been refunded. */
async function refundCharge(
  transaction: LedgerTransaction,
  charge: ReserveEntry,
  note: string | null,
): Promise<boolean> {
  const { id, amount, payment, at } = charge;
  if (await isRefunded(transaction.sql, id)) return false;
  await transaction.append({ kind: 'refund', amount, reservationId: id, note });
  if (payment === 'free') await returnFreePreview(transaction, at);
  return true;
}

/** Whether an answer may still carry it and none was delivered. */
async function isUndelivered(sql: Sql, charge: number): Promise<boolean> {
  return (await sql.get('SELECT 1 AS found FROM answer WHERE charge_id = @charge', { charge })) !== undefined;
}

const undeliveredChargeId = async (sql: Sql, { id }: Pick<ValidCharge, 'id'>): Promise<number | null> =>
  (await isUndelivered(sql, id)) ? id : null;

async function isRefunded(sql: Sql, charge: number): Promise<boolean> {
  const found = await sql.get(
    "SELECT 1 AS found FROM entry WHERE reservation_id = @charge AND kind = 'refund'",
    { charge },
  );
  return found !== undefined;
}

/** Whether the reservation was charged and the charge not refunded. */
export async function isChargeValid(sql: Sql, charge: number): Promise<boolean> {
  // One query, because every answer from the cache asks it. `IN ('settle', 'release')` looks redundant but matches the
  // partial index.
  const found = await sql.get(
    `SELECT 1 AS valid FROM entry AS ended
     WHERE ended.reservation_id = @charge AND ended.kind IN ('settle', 'release') AND ended.kind = 'settle'
       AND NOT EXISTS (SELECT 1 FROM entry AS back WHERE back.reservation_id = @charge AND back.kind = 'refund')`,
    { charge },
  );
  return found !== undefined;
}

/** The valid charge for the content. */
async function chargeFor(
  { sql, accountId, at }: LedgerTransaction,
  repeat: Repeatable,
): Promise<ValidCharge | undefined> {
  const id = await findCharge(sql, accountId, repeat, at);
  if (id === undefined || (await isRefunded(sql, id))) return undefined;
  const charge = await reserveEntry(sql, accountId, id);
  if (!charge || charge.at > at + aheadMs) return undefined;
  return { id, tier: tierOf(charge.payment) };
}

/** How a reservation ended: 'settle' or 'release'; undefined while it is open. */
async function closingKindOf(sql: Sql, reservation: number): Promise<EntryKind | undefined> {
  const found = await sql.get<{ kind: EntryKind }>(
    `SELECT kind FROM entry WHERE reservation_id = @reservation AND kind IN ('settle', 'release')`,
    { reservation },
  );
  return found?.kind;
}

/** The charge that the reservation repeats, or one made for the same content meanwhile. */
async function validChargeFor(
  transaction: LedgerTransaction,
  reserved: ReserveEntry,
  { size, repeat }: ReserveRequest,
): Promise<Pick<ValidCharge, 'id'> | undefined> {
  const { repeatOf } = reserved;
  if (repeatOf !== null && (await isChargeValid(transaction.sql, repeatOf))) return { id: repeatOf };
  const known = repeat && (await chargeFor(transaction, repeat));
  return known && (size === 'auto' || known.tier === tierOf(reserved.payment)) ? known : undefined;
}

const tierOf = (payment: Payment): Tier => (payment === 'full' ? 'full' : 'preview');

/** `auto` is a full result if the balance suffices. */
function tierFor(size: ReserveRequest['size'], balance: QuarterCredits, { prices }: BillingOptions): Tier {
  if (size !== 'auto') return size;
  return balance >= prices.full ? 'full' : 'preview';
}

/** What pays for work of this size. Rejects with `insufficient_credits`. */
async function paymentFor(
  { sql, accountId, at, balance }: LedgerTransaction,
  tier: Tier,
  { prices, freePreviews: { perMonth, perDay } }: BillingOptions,
): Promise<Price> {
  const amount = prices[tier];
  const free =
    tier === 'preview' &&
    amount > 0 &&
    perMonth > 0 &&
    (await freeUse(sql, accountId, monthOf(at))) < perMonth &&
    (perDay === 0 || (await freeUse(sql, accountId, dayOf(at))) < perDay);
  if (free) return { payment: 'free', amount: zero };
  if (amount > balance) throw insufficientCredits(amount, balance);
  return { payment: tier, amount };
}
