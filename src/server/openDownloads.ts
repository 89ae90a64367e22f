import type { FetchConfig } from '../config/fetch.ts';
import { createDownloadsFor, type DownloadsFor } from '../cutout/imageDownloads.ts';
import { createDownloader, type DownloadOptions, downloadRules } from '../fetch/download.ts';
import type { Attempts } from '../limits/attempts.ts';
import { DownloadLimit } from '../limits/downloads.ts';
import type { MemoryBudget } from '../limits/memoryBudget.ts';

interface DownloadParts {
  readonly memory: MemoryBudget;
  /** Failed downloads, by account. */
  readonly failures: Attempts;
  /** Replace rules of the contract. */
  readonly rules: Partial<DownloadOptions> | undefined;
}

/** Downloads of images by address, as configured, and their concurrency limit. */
export function openDownloads(
  { mode, allow, ports, concurrency, accountConcurrency }: FetchConfig,
  { memory, failures, rules }: DownloadParts,
): { readonly downloadsFor: DownloadsFor; readonly limit: DownloadLimit } {
  const limit = new DownloadLimit({ perAccount: accountConcurrency, total: concurrency });
  const downloader = createDownloader({ ...downloadRules, mode, allowHosts: allow, ports, ...rules });
  return { downloadsFor: createDownloadsFor({ downloader, memory, limit, failures }), limit };
}
