import type { Context } from './context.ts';

/**
 * Cookies of the pages: HttpOnly and SameSite. Over https they are Secure and bound to the host (`__Host-`,
 * RFC 6265bis); plain http on the local machine gets the same without.
 */
export interface Cookies {
  get(ctx: Context): string | undefined;
  /** `seconds` until it expires; default: at the end of the browser session. */
  set(ctx: Context, value: string, seconds?: number): void;
  clear(ctx: Context): void;
}

/** `secure`: the service is reached over https. */
export function createCookie(name: string, secure: boolean): Cookies {
  const full = secure ? `__Host-${name}` : name;
  const write = (ctx: Context, value: string | null, maxAge: number | undefined) => {
    // TLS ends in front of this process.
    ctx.cookies.secure = secure;
    ctx.cookies.set(full, value, {
      httpOnly: true,
      overwrite: true,
      path: '/',
      sameSite: 'lax',
      secure,
      ...(maxAge !== undefined && { maxAge }),
    });
  };
  return {
    get: (ctx) => ctx.cookies.get(full) || undefined,
    set: (ctx, value, seconds) => write(ctx, value, seconds === undefined ? undefined : seconds * 1000),
    clear: (ctx) => write(ctx, null, undefined),
  };
}
