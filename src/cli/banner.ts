import path from 'node:path';
import { linkMinutes } from '../accounts/signIns.ts';
import { credits, formatCredits } from '../billing/price.ts';
import { ensureLocalAccount, type LocalAccount } from '../commands/ensureLocalAccount.ts';
import type { Config } from '../config/readConfig.ts';
import { describeThreads } from '../engine/threads.ts';
import { allSubjectTypes } from '../engine/types.ts';
import { writeAtomically } from '../files.ts';
import { urlHere } from '../http/server.ts';
import { operatorsText } from '../models/precision.ts';
import { version } from '../server/installation.ts';
import type { OpenedEngine } from '../server/openEngine.ts';
import type { Server } from '../server/serverTypes.ts';
import type { Output } from './modelsProgress.ts';

/** Credits of the local account, practically unlimited for private use. */
const firstGrant = credits(100_000);
const given = `${formatCredits(firstGrant)} credits`;

/** The account of the person who installed the program; created at the first start. Throws StoreError. */
export const openLocalAccount = ({ accounts, store }: Config, { stores }: Server): Promise<LocalAccount> =>
  ensureLocalAccount({ stores, dataDir: store.dataDir, givenKey: accounts.apiKey, grant: firstGrant });

/** The message printed when a server is ready: its address, what it runs and how to sign in. */
export async function banner(
  config: Config,
  { http, observation, console }: Server,
  { opened, local, out }: { opened: OpenedEngine; local: LocalAccount; out: Output },
): Promise<string> {
  const { dataDir } = config.store;
  const url = config.http.publicUrl ?? urlHere(config.http.host, http.address.port);
  const loopback = ['127.0.0.1', '::1'].includes(http.address.address);
  const { info, network, second, device, threads, precision, subjectTypes } = opened;
  const ms = Math.round(info.loadMs + info.warmUpMs);
  const how = [precision.because, operatorsText(precision)].filter(Boolean).join(', ');
  const place = { out, dataDir, url };
  return [
    '',
    `Cutout ${version()} listens on ${url}${loopback ? ' (this machine only; CUTOUT_HOST=0.0.0.0 accepts others)' : ''}`,
    `Network   ${network.name} on ${device} in ${precision.precision} (${how}), ready in ${ms} ms`,
    ...(second ? [`Second    ${second.name}${second.loaded ? '' : ', once it is fetched'}`] : []),
    `Types     ${subjectTypes ? allSubjectTypes.join(', ') : 'off: X-Type is always other for type=auto'}`,
    `Threads   ${describeThreads(threads)}`,
    `API       ${url}/docs`,
    ...(observation.metricsUrl ? [`Metrics   ${observation.metricsUrl}`] : []),
    // Key and link are printed to a terminal only; other outputs may be logs that others can read, and get the names of
    // files in the data folder that only their owner can read. A key is shown once, when it is created.
    await addressLine(await console.link(), place),
    ...keyLines(local, place),
    '',
    '',
  ].join('\n');
}

/** The output, the data folder and the public address of the service. */
interface Place {
  readonly out: Output;
  readonly dataDir: string;
  readonly url: string;
}

const shellQuote = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** One address for the browser, with a one-time token; undefined if people sign in with a provider. */
async function addressLine(link: string | undefined, { out, dataDir, url }: Place): Promise<string> {
  if (link === undefined) return `Console   ${url}/console`;
  const address = `${url}/#${link}`;
  const once = `works once, expires after ${linkMinutes} minutes; \`npx cutout console\` prints another`;
  if (out.isTTY) return `Open      ${address}\n          signs you in to playground and console; ${once}`;
  const file = path.join(dataDir, 'console-link');
  await writeAtomically(file, `${address}\n`, 'replace', { mode: 0o600 });
  return `Open      the address in ${file}  (signs you in; ${once})`;
}

function keyLines({ key, created, givenKeyIgnored }: LocalAccount, { out, dataDir, url }: Place): string[] {
  const file = path.join(dataDir, 'local-key');
  if (key === undefined) return ['API key   the key of the local account was revoked.'];
  const shown = created && out.isTTY;
  const header = shown ? shellQuote(`X-Api-Key: ${key}`) : `"X-Api-Key: $(cat ${shellQuote(file)})"`;
  return [
    shown
      ? `API key   ${key}  (new, with ${given}; kept in ${file})`
      : `API key   in ${file}${created ? `  (new, with ${given})` : ''}`,
    ...(givenKeyIgnored
      ? ['          CUTOUT_API_KEY is used at the first start only and is not a key of this account.']
      : []),
    '',
    'Try it with your own photo:',
    `  curl -H ${header} -F image_file=@photo.jpg -F size=auto -o cutout.png ${url}/v1.0/removebg`,
  ];
}
