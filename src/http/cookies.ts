import type { Context } from './context.ts';

export type Cookies = ReturnType<typeof createCookie>;

/**
 * Cookies of the pages: HttpOnly and SameSite. Over https (`secure`) they are Secure and bound to the host (`__Host-`,
 * RFC 6265bis); plain http on the local machine gets the same without.
 */
export function createCookie(name: string, secure: boolean) {
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
    get: (ctx: Context) => ctx.cookies.get(full) || undefined,
    /** `seconds` until it expires; default: at the end of the browser session. */
    set: (ctx: Context, value: string, seconds?: number) =>
      write(ctx, value, seconds === undefined ? undefined : seconds * 1000),
    clear: (ctx: Context) => write(ctx, null, undefined),
  };
}
