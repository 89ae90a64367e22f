import { toAppError, UserError } from '../errors.ts';
import { codeOf } from '../files.ts';

/** Why something failed, in one sentence. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const app = toAppError(error);
  return app.status >= 500 ? error.message : `${app.title.replace(/\.$/, '')}: ${app.detail}`;
}

/** The error for a photo that cannot be read or decoded. */
export function photoFault(file: string, error: unknown): UserError {
  const reason = codeOf(error) === 'ENOENT' ? 'there is no such file' : reasonOf(error).replace(/\.$/, '');
  return new UserError(`The photo ${file} cannot be read: ${reason}.`, { cause: error });
}
