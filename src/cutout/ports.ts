/** What the use case needs to know of an account. */
export interface Account {
  readonly id: string;
}

/** The account a key belongs to; undefined when the key is unknown or revoked. */
export type Authenticate = (key: string) => Account | undefined | Promise<Account | undefined>;
