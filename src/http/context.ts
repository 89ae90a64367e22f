import type { Middleware as KoaMiddleware, ParameterizedContext } from 'koa';
import type { Account } from '../accounts/accounts.ts';
import { fail } from '../errors.ts';
import type { Hold } from '../limits/memory.ts';
import type { RequestTelemetry } from '../ops/telemetry.ts';
import type { Form } from './form.ts';

/** What the middlewares of one request leave for each other. Each field names who writes it. */
export interface State {
  /** requestId */
  requestId: string;
  /** deadline: aborted with an AppError when the client goes away or time is up. */
  signal: AbortSignal;
  /** deadline: `performance.now()` at which the signal aborts. */
  deadline: number;
  /** auth */
  account?: Account;
  /**
   * Guards: what let the request in, each to be asked again (it throws as the guard does). body asks all of them once the
   * body is there: what was taken away while it came counts.
   */
  still?: (() => Promise<void>)[];
  /** body: what the request holds of the memory, until its answer is out. */
  hold?: Hold;
  /** body */
  form?: Form;
  /** cutout: to be called when the head of its answer was sent (`headBeforeBody`). */
  headSent?: () => void;
  /** router: pattern of the route that takes the request; absent where there is none. */
  route?: string;
  /** requestId makes it, anybody adds: what log, metrics and traces tell of the request. */
  telemetry: RequestTelemetry;
}

export type Context = ParameterizedContext<State, object>;
export type Middleware = KoaMiddleware<State, object>;

const missing = (what: string) => fail('internal_error', { cause: new Error(`${what} must come first`) });

/** For guards: what lets the request in is asked now, and `again` (the same when not given) once its body was read. */
export async function guarded(
  { state }: Context,
  allowed: () => Promise<void>,
  again = allowed,
): Promise<void> {
  await allowed();
  state.still ??= [];
  state.still.push(again);
}

/** The account that `auth` found. */
export function accountOf({ state }: Context): Account {
  if (!state.account) throw missing('auth');
  return state.account;
}

/** What `body` read. */
export function formOf({ state }: Context): Form {
  if (!state.form) throw missing('body');
  return state.form;
}
