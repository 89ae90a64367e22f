import type { LinkRequest, NewKey, SessionInfo } from '../../../src/http/route/console/api.ts';

export type SignedIn = Extract<SessionInfo, { readonly signedIn: true }>;

/** An error answer of the console's API. */
class ConsoleError extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The session has ended, or there was none. */
export const isSignedOut = (error: unknown): boolean => error instanceof ConsoleError && error.status === 401;

let csrf = '';

async function answer<T>(response: Response): Promise<T> {
  const body: unknown = await response.json().catch(() => undefined);
  if (response.ok) return body as T;
  const error = (body as { errors?: { code: string; title: string; detail?: string }[] } | undefined)
    ?.errors?.[0];
  throw new ConsoleError(
    response.status,
    error?.code ?? `http_${response.status}`,
    error ? [error.title, error.detail].filter(Boolean).join(' ') : `The answer was HTTP ${response.status}.`,
  );
}

/** GET under /console/api. */
export async function get<T>(path: string): Promise<T> {
  return answer(await fetch(`/console/api/${path}`, { headers: { Accept: 'application/json' } }));
}

/** POST under /console/api, with the token of the session. */
export async function post<T>(path: string, body: object = {}): Promise<T> {
  return answer(
    await fetch(`/console/api/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-CSRF-Token': csrf },
      body: JSON.stringify(body),
    }),
  );
}

function remember(session: SessionInfo): SessionInfo {
  csrf = session.signedIn ? session.csrf : '';
  return session;
}

export const readSession = async (): Promise<SessionInfo> => remember(await get<SessionInfo>('session'));

export const openLink = async (token: string): Promise<SessionInfo> =>
  remember(await post<SessionInfo>('link', { token } satisfies LinkRequest));

export const createKey = (name: string): Promise<NewKey> => post('keys', { name });
