/** Why a download failed, for the log only: a caller could use it to explore the service's network. */
export type DownloadFault =
  | 'address'
  | 'blocked'
  | 'port'
  | 'dns'
  | 'connection'
  | 'tls'
  | 'timeout'
  | 'redirect'
  | 'status'
  | 'large'
  | 'memory';

/** `reason` is public. It contains neither an address nor the outcome of a connection. */
export class DownloadError extends Error {
  override readonly name = 'DownloadError';
  /** `url`: excluded by the rules, nothing was contacted. `large`: too many bytes. `memory`: none now. `failed`: else. */
  readonly kind: 'url' | 'large' | 'memory' | 'failed';
  readonly fault: DownloadFault;
  readonly reason: string;

  constructor(kind: DownloadError['kind'], fault: DownloadFault, reason: string, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.fault = fault;
    this.reason = reason;
  }
}
