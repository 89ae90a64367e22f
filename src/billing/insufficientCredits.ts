import { AppError, fail } from '../errors.ts';
import { formatCredits, type QuarterCredits } from './price.ts';

/** 402: the work needs more than the account has. */
export function insufficientCredits(needed: QuarterCredits, balance: QuarterCredits): AppError {
  const amount = formatCredits(needed);
  return fail('insufficient_credits', {
    reason: 'credits',
    detail: `This request needs ${amount} ${amount === '1' ? 'credit' : 'credits'}, the balance is ${formatCredits(balance)}.`,
  });
}

export const isInsufficientCredits = (error: unknown): error is AppError =>
  error instanceof AppError && error.id === 'insufficient_credits';
