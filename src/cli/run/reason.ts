import { AppError, toAppError, UserError } from '../../errors.ts';
import { codeOf } from '../../files.ts';

/** The error in one sentence. */
export function reasonOf(error: unknown): string {
  if (error instanceof UserError) return error.message;
  if (error instanceof AppError && error.status < 500)
    return `${error.title.replace(/\.$/, '')}: ${error.detail}`;
  const messages: Readonly<Record<string, string>> = {
    EACCES: 'Permission denied.',
    ENOENT: 'The file no longer exists.',
    ELOOP: 'The link leads back to itself.',
    ENAMETOOLONG: 'The name of the result is too long.',
    EIO: 'The disk reports an error when it is read or written.',
    EEXIST: 'The result already exists; --overwrite replaces it.',
  };
  const message = messages[codeOf(error) ?? ''];
  if (message !== undefined) return message;
  const app = toAppError(error);
  const cause = app.cause instanceof Error ? ` (${app.cause.message})` : '';
  return `${app.title}: ${app.detail}${cause}`;
}
