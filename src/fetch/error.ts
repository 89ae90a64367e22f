/** Why a download failed, for the log alone: told to a caller, it would say what is there. */
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

/** `reason` is public. It never tells an address, nor what became of a connection. */
export class DownloadError extends Error {
  override readonly name = 'DownloadError';
  /**
   * `url`: not an address this service would fetch; nothing was asked of anybody. `large`: too many bytes. `memory`: no
   * room for its bytes now. `failed`: all else.
   */
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
