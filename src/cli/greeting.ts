import path from 'node:path';
import { writeSecretFile } from '../accounts/secretFile.ts';
import { linkMinutes } from '../accounts/signIns.ts';
import type { LocalAccount } from '../commands/ensureLocalAccount.ts';
import type { Output } from './modelsProgress.ts';

interface Secrets {
  readonly local: LocalAccount;
  /** Token of a one-time link; undefined if people sign in with a provider. */
  readonly link: string | undefined;
}

interface GreetingPlace {
  readonly out: Output;
  readonly dataDir: string;
  /** Public address of the service. */
  readonly url: string;
  /** Credits given to a new account, in words. */
  readonly given: string;
}

const shellQuote = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** One address for the browser, with a one-time token. */
function addressLine(link: string | undefined, { out, dataDir, url }: GreetingPlace): string {
  if (link === undefined) return `Console   ${url}/console`;
  const address = `${url}/#${link}`;
  const once = `works once, expires after ${linkMinutes} minutes; \`npx cutout console\` prints another`;
  if (out.isTTY) return `Open      ${address}\n          signs you in to playground and console; ${once}`;
  const file = path.join(dataDir, 'console-link');
  writeSecretFile(file, address);
  return `Open      the address in ${file}  (signs you in; ${once})`;
}

function keyLines({ key, created, givenKeyIgnored }: LocalAccount, place: GreetingPlace): string[] {
  const { out, dataDir, url, given } = place;
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

/**
 * How to sign in: the address to open, the key and an example. Key and link are printed to a terminal only;
 * other outputs may be logs that others can read, and get the names of files in the data folder that only
 * their owner can read. A key is shown once, when it is created.
 */
export const greeting = ({ local, link }: Secrets, place: GreetingPlace): readonly string[] => [
  addressLine(link, place),
  ...keyLines(local, place),
];
