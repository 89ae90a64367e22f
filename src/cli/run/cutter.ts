import type { RunFormat } from './results.ts';

/** What is asked for every image. */
export interface Wanted {
  readonly size: string;
  /** WebP without loss. */
  readonly lossless: boolean;
  /** File of an image that says where the subject is (docs/contract.md section 4.1). */
  readonly mask?: Uint8Array | undefined;
  /** `subject_points` and `subject_box` of the contract, checked. */
  readonly points?: string | undefined;
  readonly box?: string | undefined;
}

export interface CutoutFile {
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly creditsCharged: number;
  /** Under which a server charges the image once; absent without a server. */
  readonly idempotencyKey?: string;
}

/** Cuts out images: this process, or a server. */
export interface Cutter {
  /** Images to be cut out at a time. */
  readonly jobs: number;
  /**
   * Rejects with RunError if no other image can succeed either; with UserError or AppError, which say why, for
   * this image alone; soon after an abort with the reason of `signal`.
   */
  cut(image: Uint8Array, format: RunFormat, signal: AbortSignal): Promise<CutoutFile>;
  close(): Promise<void>;
}
