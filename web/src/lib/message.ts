/** An error as a sentence for people. */
export const messageOf = (error: unknown): string =>
  error instanceof TypeError
    ? 'The service cannot be reached.'
    : error instanceof Error
      ? error.message
      : String(error);
