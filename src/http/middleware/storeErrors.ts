import { type ErrorId, excerpt, fail } from '../../errors.ts';
import { type StoreCode, StoreError } from '../../store/error.ts';
import type { Middleware } from '../context.ts';

/** Errors of the database that the request causes. Every other StoreError is an internal error. */
const answers: Partial<Record<StoreCode, ErrorId>> = {
  STORE_UNKNOWN_ACCOUNT: 'not_found',
  STORE_UNKNOWN_KEY: 'not_found',
  STORE_UNKNOWN_RESERVATION: 'not_found',
  STORE_REFERENCE_REUSED: 'malformed_request',
  STORE_NOT_CHARGED: 'malformed_request',
  STORE_KEYS: 'malformed_request',
};

/** Answers them with the store's own sentences, which are written for operators. */
export const storeErrors: Middleware = async (_ctx, next) => {
  try {
    await next();
  } catch (error) {
    const id = error instanceof StoreError ? answers[error.code] : undefined;
    throw id && error instanceof StoreError ? fail(id, { detail: excerpt(error.message, 300) }) : error;
  }
};
