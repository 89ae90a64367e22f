import { credits, formatCredits } from '../billing/price.ts';
import { ensureLocalAccount, type LocalAccount } from '../commands/ensureLocalAccount.ts';
import type { Config } from '../config/readConfig.ts';
import { describeThreads } from '../engine/threads.ts';
import { allSubjectTypes } from '../engine/types.ts';
import type { HttpServer } from '../http/server.ts';
import { operatorsText } from '../models/precision.ts';
import { version } from '../server/installation.ts';
import type { OpenedEngine } from '../server/openEngine.ts';
import type { Server } from '../server/serverTypes.ts';
import { greeting } from './greeting.ts';
import type { Output } from './modelsProgress.ts';

/** Credits of the local account, practically unlimited for private use. */
const firstGrant = credits(100_000);

/** The account of the person who installed the program; created at the first start. Throws StoreError. */
export const openLocalAccount = ({ accounts, store }: Config, { stores }: Server): Promise<LocalAccount> =>
  ensureLocalAccount({
    stores: stores,
    dataDir: store.dataDir,
    givenKey: accounts.apiKey,
    grant: firstGrant,
  });

/** Address for people; one that means "all interfaces" is written as this machine's. */
function addressOf(host: string, { address }: HttpServer): string {
  const everywhere = address.address === '0.0.0.0' || address.address === '::';
  const name = everywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${address.port}`;
}

/** The message printed when a server is ready: its address, what it runs and how to sign in. */
export async function banner(
  config: Config,
  { http, observation, console }: Server,
  { opened, local, out }: { opened: OpenedEngine; local: LocalAccount; out: Output },
): Promise<string> {
  const { dataDir } = config.store;
  const url = config.http.publicUrl ?? addressOf(config.http.host, http);
  const given = `${formatCredits(firstGrant)} credits`;
  const loopback = ['127.0.0.1', '::1'].includes(http.address.address);
  const { info, network, second, threads, precision, subjectTypes } = opened;
  const ms = Math.round(info.loadMs + info.warmUpMs);
  const how = [precision.because, operatorsText(precision)].filter(Boolean).join(', ');
  const secrets = { local, link: await console.link() };
  return [
    '',
    `Cutout ${version()} listens on ${url}${loopback ? ' (this machine only; CUTOUT_HOST=0.0.0.0 accepts others)' : ''}`,
    `Network   ${network.name} on ${config.engine.device} in ${precision.precision} (${how}), ready in ${ms} ms`,
    ...(second ? [`Second    ${second.name}, where the two disagree`] : []),
    `Types     ${subjectTypes ? allSubjectTypes.join(', ') : 'off: X-Type is always other for type=auto'}`,
    `Threads   ${describeThreads(threads)}`,
    `API       ${url}/docs`,
    ...(observation.metricsUrl ? [`Metrics   ${observation.metricsUrl}`] : []),
    ...greeting(secrets, { out, dataDir, url, given }),
    '',
    '',
  ].join('\n');
}
