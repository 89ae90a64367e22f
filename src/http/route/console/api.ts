/**
 * What the console's pages (web/) and the server say to each other, under `/console/api`. Types only: the pages
 * import this file too.
 *
 * A session cookie says who is asking; no key does. Every POST carries `X-CSRF-Token` with the token of
 * `GET session`, and JSON. Errors are the API's own envelope. Without a session: 401 `not_signed_in`; for
 * operators only: 403 `operators_only`. Amounts are credits (multiples of 0.25), times ISO 8601 in UTC.
 */

/** A page of a list, newest first. `GET …?before=&limit=`: `next` of the page before; at most 500 (default 50). */
export interface Page<Entry> {
  readonly entries: readonly Entry[];
  /** Null: there are no older entries. */
  readonly next: string | null;
}

/** `GET options`: settings of the service, for everybody. */
export interface ServiceOptions {
  /** Amounts of credits are multiples of it. */
  readonly creditStep: number;
  /** Credits for a result: a paid preview, and any larger size. */
  readonly prices: { readonly preview: number; readonly full: number };
}

/** Where one can sign in: `GET /sign-in/<id>` leads there and back to `/console`. */
interface ProviderInfo {
  readonly id: string;
  readonly name: string;
}

/** `GET session`; also the answer of `POST link`. Never an error: it says what the visitor can do. */
export type SessionInfo =
  | {
      readonly signedIn: false;
      readonly providers: readonly ProviderInfo[];
      /** True where no provider is configured: the link printed at start opens the console. */
      readonly link: boolean;
    }
  | {
      readonly signedIn: true;
      readonly account: { readonly id: string; readonly name: string; readonly email: string | null };
      readonly operator: boolean;
      readonly csrf: string;
      readonly expiresAt: string;
      /** What else the pages show: packs are for sale; images can be handed in. */
      readonly selling: boolean;
    };

/** `POST link`: opens a session with the one-time token that `cutout serve` printed behind `/console#`. */
export interface LinkRequest {
  readonly token: string;
}

/** `POST sign-out`. `redirect`: where the provider ends its own session, or null. */
export interface SignedOut {
  readonly redirect: string | null;
}

/** `GET overview`. */
export interface Overview {
  readonly credits: number;
  readonly free: {
    readonly leftToday: number;
    readonly leftThisMonth: number;
    readonly perDay: number;
    readonly perMonth: number;
  };
  /** The last 30 UTC days, oldest first, days without calls included. */
  readonly days: readonly {
    readonly day: string;
    readonly free: number;
    readonly preview: number;
    readonly full: number;
    /** Calls whose result a person should look at: an uncertainty of 0.5 and more. */
    readonly toReview: number;
    readonly credits: number;
  }[];
  /** Megapixels of the running minute; `limit` null: no limit. */
  readonly rate: {
    readonly limit: number | null;
    readonly remaining: number | null;
    readonly resetSeconds: number;
  };
}

/** `GET keys`: newest first, revoked ones at the end. */
export interface KeyInfo {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly createdAt: string;
  readonly lastUsedAt: string | null;
  readonly revokedAt: string | null;
}

/** `POST keys` with `{name}`. The only answer that ever holds a key. `POST keys/<id>/revoke` → `{revoked: true}`. */
export interface NewKey extends KeyInfo {
  readonly key: string;
}

export type EntryKind = 'grant' | 'purchase' | 'reserve' | 'settle' | 'release' | 'refund' | 'adjust';

/** `GET statement?kind=&from=&to=`: a page. `GET statement.csv` takes the same filters and gives every entry. */
export interface StatementEntry {
  readonly id: number;
  readonly at: string;
  readonly kind: EntryKind;
  readonly amount: number;
  readonly balance: number;
  readonly payment: 'free' | 'preview' | 'full' | null;
  readonly request: string | null;
  readonly note: string | null;
  /** A charged call has X-Uncertainty-Score of its result, 0 to 1; null: not known. */
  readonly uncertainty: number | null;
}

/** `GET packs`; `POST checkout` with `{pack}` → `{url}` of the payment page. */
export interface PackInfo {
  readonly id: string;
  readonly credits: number;
  /** The price in the smallest unit of the currency. */
  readonly price: number;
  readonly currency: string;
}

/** `GET images`: a page of those submitted through `/v1.0/improve`. `POST images/<id>/delete` → `{deleted: true}`. */
export interface ImageInfo {
  readonly id: string;
  readonly at: string;
  readonly name: string | null;
  readonly bytes: number;
  readonly width: number;
  readonly height: number;
}

/**
 * `GET export` is a ZIP with everything kept about the account. `POST delete` with `{name}`, the account's name
 * typed again: keys are revoked, images, name, e-mail and sign-in forgotten, the session ended; the ledger stays.
 */
export interface DeleteRequest {
  readonly name: string;
}

/** Operators. `GET operator/accounts?search=`: a page; `search` is part of a name, an e-mail address or an id. */
export interface AccountSummary {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
  readonly credits: number;
  readonly createdAt: string;
  readonly deletedAt: string | null;
}

/** `GET operator/accounts/<id>`. */
export interface AccountInfo extends AccountSummary {
  readonly keys: readonly KeyInfo[];
}

/** `POST operator/accounts/<id>/grant` → the AccountInfo afterwards; `POST operator/keys/<id>/revoke`. */
export interface GrantRequest {
  readonly credits: number;
  readonly note: string;
  /** Made by the page, so that a grant sent twice counts once. */
  readonly reference: string;
}

/** `GET operator/audit`: a page of the audit log, which is append-only. */
export interface AuditEntry {
  readonly id: number;
  readonly at: string;
  /** Account that did it, or null: the operator at the machine (command line, admin token). */
  readonly actor: string | null;
  readonly action: string;
  /** Account or key it was done to. */
  readonly subject: string | null;
  readonly detail: string | null;
  readonly address: string | null;
}
