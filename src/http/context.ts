import type { Middleware as KoaMiddleware, ParameterizedContext } from 'koa';
import type { Account } from '../accounts/accounts.ts';
import { fail } from '../errors.ts';
import type { MemoryReservation } from '../limits/memoryBudget.ts';
import type { RequestTelemetry } from '../ops/telemetry.ts';
import type { Form } from './form.ts';

/** State that the middlewares of one request share. Each field names the middleware that writes it. */
export interface State {
  /** requestId */
  requestId: string;
  /** deadline: aborted with an AppError when the client disconnects or time is up. */
  signal: AbortSignal;
  /** deadline: `performance.now()` at which the signal aborts. */
  deadline: number;
  /** auth */
  account?: Account;
  /** auth: hash of the key that was sent. */
  keyHash?: Buffer;
  /** receiveBody: memory that the request holds until its answer is sent. */
  memory?: MemoryReservation;
  /** receiveBody */
  form?: Form;
  /** cutoutRoute: whether `headBeforeBody` sends the head of the answer alone. */
  headFirst?: boolean;
  /** headBeforeBody: whether the system has the head that was sent alone. */
  headSent?: boolean;
  /** router: pattern of the matching route; absent if there is none. */
  route?: string;
  /** requestId creates it, anyone adds: attributes for log, metrics and traces. */
  telemetry: RequestTelemetry;
}

export type Context = ParameterizedContext<State, object>;
export type Middleware = KoaMiddleware<State, object>;

const missing = (what: string) => fail('internal_error', { cause: new Error(`${what} must come first`) });

/** Sets headers of the answer, as `ctx.set` does, in a fraction of its time. Call before the head is sent. */
export function setHeaders({ res }: Context, headers: Readonly<Record<string, string>>): void {
  for (const name in headers) res.setHeader(name, headers[name] ?? '');
}

export function accountOf({ state }: Context): Account {
  if (!state.account) throw missing('auth');
  return state.account;
}

export function keyHashOf({ state }: Context): Buffer {
  if (!state.keyHash) throw missing('auth');
  return state.keyHash;
}

/** The form that `receiveBody` read. */
export function formOf({ state }: Context): Form {
  if (!state.form) throw missing('receiveBody');
  return state.form;
}
