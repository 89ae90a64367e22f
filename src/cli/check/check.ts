import type { Config } from '../../config/readConfig.ts';
import { UserError } from '../../errors.ts';
import { sampleBackground, sampleImage } from '../../image/sampleImage.ts';
import { configureImages } from '../../server/images.ts';
import { readNamed } from '../run/files.ts';
import { type Service, serviceAt } from '../service.ts';
import { type Answer, ask } from './answer.ts';
import { compare, type Row, sameSubject } from './compare.ts';
import { bodyOf, type CheckRequest, type Fields, plain, requestsFor } from './requests.ts';

/** Options of the command, as commands.ts describes them. */
export interface CheckOptions {
  readonly against: string;
  readonly server: string;
  readonly full: boolean;
  readonly field: Fields;
  readonly timeout: number;
  readonly json: boolean;
  readonly dryRun: boolean;
}

/** As many requests in a row that one of the services does not answer end the check. */
const maxUnanswered = 3;
/** Largest answer that is read. */
const maxBytes = 256 * 1024 ** 2;
/** A key that no service gives out. */
const wrongKey = 'cutout-check-wrong-key';

/** Throws UserError if the answer to the plain request shows that no request can succeed. */
function assertUsable({ endpoint, variable }: Service, { status, facts }: Answer): void {
  const { 'Content-Type': type = 'nothing', 'error title': title = 'no error', redirect } = facts;
  if (status === 200 && type.startsWith('image/')) return;
  throw new UserError(
    `${endpoint.href} answers the plain request with status ${status} and ${type} (${redirect === undefined ? title : `it redirects to ${redirect}`}). Check the address, which may be the whole one of its removebg, and the key in ${variable}.`,
  );
}

/** A row as text: what a client can notice is marked by an exclamation mark. */
function describeRow({ request, here, there, differences, mean }: Row): string {
  const statuses = [...new Set([here.status, there.status])].join(' / ');
  const seconds = `${here.seconds.toFixed(2)} / ${there.seconds.toFixed(2)} s`;
  const images = mean === undefined ? '' : `, mean difference ${mean.toFixed(1)} of 255`;
  const lines = differences.map(
    (each) => `  ${each.matters ? '!' : ' '} ${each.what}: ${each.here} / ${each.there}\n`,
  );
  return `${request}: ${statuses}, ${seconds}${images}\n${lines.join('')}`;
}

/**
 * `cutout check`: sends the same requests to this service and to another one and lists what differs. Resolves with
 * whether a client can notice nothing of it. Rejects with UserError if nothing can be compared, or with the reason of `signal`.
 */
export async function check(
  file: string | undefined,
  { against, server, full, field, timeout, json, dryRun }: CheckOptions,
  { accounts }: Pick<Config, 'accounts'>,
  { out, err, signal }: Record<'out' | 'err', NodeJS.WritableStream> & { readonly signal: AbortSignal },
): Promise<boolean> {
  const requests = requestsFor(full);
  const count = (kind: CheckRequest['expects']) => requests.filter(({ expects }) => expects === kind).length;
  err.write(
    `At most ${count('preview')} previews and ${count('full')} results of full size may be charged by each service; ${count('refused')} requests should be refused, which costs nothing.\n`,
  );
  if (dryRun) {
    out.write(requests.map(({ name, expects }) => `${name}: ${expects}\n`).join(''));
    return true;
  }
  const own = serviceAt('--server', server, 'CUTOUT_API_KEY', accounts.apiKey);
  const other = serviceAt('--against', against, 'CUTOUT_AGAINST_KEY', accounts.againstKey);
  const image = { ...configureImages({ inputFormats: [] }), maxBytes };
  const photo = file === undefined ? await sampleImage() : await readNamed('photo', file);
  const background = await sampleBackground();
  const send = ({ endpoint, key }: Service, request: CheckRequest): Promise<Answer> => {
    const isAccount = request.expects === 'account';
    const { headers, body } = isAccount ? {} : bodyOf(request, photo, background, field);
    const Accept = request.accept ?? 'image/*, application/zip';
    const sent = { ...headers, 'X-Api-Key': request.wrongKey ? wrongKey : key, Accept };
    const init = { headers: sent, ...(body && { method: 'POST', body }) };
    const url = isAccount ? new URL('account', endpoint) : endpoint;
    return ask(url, init, { timeoutMs: 1000 * timeout, image, signal });
  };
  const rows: Row[] = [];
  let isSame = false;
  let unanswered = 0;
  for (const request of requests) {
    // One after the other, so that their times are comparable.
    const here = await send(own, request);
    const there = await send(other, request);
    const row = compare(request, here, there, isSame);
    if (request === plain) {
      assertUsable(own, here);
      assertUsable(other, there);
      isSame = row.mean !== undefined && row.mean < sameSubject;
    }
    rows.push(row);
    if (!json) out.write(describeRow(row));
    unanswered = here.status === 0 || there.status === 0 ? unanswered + 1 : 0;
    if (unanswered === maxUnanswered)
      throw new UserError(`${maxUnanswered} requests in a row had no answer from one of the services.`);
  }
  const noticed = rows.flatMap(({ differences }) => differences).filter(({ matters }) => matters).length;
  out.write(
    json
      ? `${JSON.stringify({ requests: rows }, (name, value) => (name === 'image' ? undefined : value), 2)}\n`
      : `Differences that a client can notice (here / there): ${noticed}\n`,
  );
  return noticed === 0;
}
