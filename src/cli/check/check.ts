import path from 'node:path';
import type { Config } from '../../config/readConfig.ts';
import { UserError } from '../../errors.ts';
import { ImageError } from '../../image/errors.ts';
import { probe } from '../../image/probe.ts';
import { sampleBackground, sampleImage } from '../../image/sampleImage.ts';
import type { ProbeLimits } from '../../image/types.ts';
import { maxFileBytes } from '../../inputLimits.ts';
import { configureImages } from '../../server/images.ts';
import { shown } from '../httpResponse.ts';
import type { Output } from '../modelsProgress.ts';
import { readInput } from '../run/files.ts';
import { table } from '../table.ts';
import { compare, type Difference, isSameSubject, type Means, meansOf } from './compare.ts';
import { type Observation, observe } from './observe.ts';
import { openOwnServer } from './ownServer.ts';
import { checkProgress, describeReport, jsonReport, type Outcome, type Report, type Row } from './report.ts';
import {
  type Asked,
  type CheckRequest,
  type Fields,
  type Images,
  plain,
  plainOf,
  requestsFor,
} from './requests.ts';
import { type Answer, askAccount, askFor, NoAnswer, type Service, serviceAt } from './service.ts';

export interface CheckOptions {
  /** Address of the other service. */
  readonly against: string;
  /** Address of a running server; default: one is started for the check. */
  readonly server?: string;
  /** Also asks for results that cost a whole credit. */
  readonly full: boolean;
  /** Fields that are added to every request. */
  readonly field: Fields;
  /** Seconds for one answer. */
  readonly timeout: number;
  readonly json: boolean;
  /** Lists the requests and sends none. */
  readonly dryRun: boolean;
  readonly pull: boolean;
}

interface Streams {
  readonly out: NodeJS.WritableStream;
  /** Receives progress and what is said beforehand. */
  readonly err: Output;
  /** Ends the check. */
  readonly signal: AbortSignal;
}

/** A request and the images that it sends. */
interface Step {
  readonly request: CheckRequest;
  readonly images: Images;
}

/** As many requests in a row that one service does not answer end the check. */
const maxUnanswered = 3;

/** Largest answer that is read, and the largest image in it. */
const maxAnswerBytes = 256 * 1024 ** 2;

async function readPhoto(file: string, limits: ProbeLimits): Promise<Buffer> {
  try {
    const bytes = await readInput(file, maxFileBytes);
    await probe(bytes, limits);
    return bytes;
  } catch (error) {
    if (error instanceof ImageError) throw new UserError(`${file}: ${error.detail}`);
    if (error instanceof UserError) throw new UserError(`${file}: ${error.message}`);
    throw new UserError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}.`);
  }
}

/** The requests in order: all of them with the first photo, the plain one with the others. */
async function stepsFor(photos: readonly string[], full: boolean, limits: ProbeLimits): Promise<Step[]> {
  const background = await sampleBackground();
  const [first, ...others] = photos;
  const images = {
    photo: first === undefined ? await sampleImage() : await readPhoto(first, limits),
    background,
  };
  const steps = [plain, ...requestsFor(full)].map((request) => ({ request, images }));
  for (const file of others)
    steps.push({
      request: plainOf(path.basename(file)),
      images: { photo: await readPhoto(file, limits), background },
    });
  return steps;
}

const count = (steps: readonly Step[], asked: Asked) =>
  steps.filter(({ request }) => request.asked === asked).length;

const plural = (n: number, one: string) => `${n} ${one}${n === 1 ? '' : 's'}`;

/** What the check may cost, in a sentence. */
function costOf(steps: readonly Step[]): string {
  const [previews, full, refused] = (['preview', 'full', 'refused'] as const).map((asked) =>
    count(steps, asked),
  );
  const large = full ? ` and ${plural(full, 'result')} of full size` : '';
  return `At most ${plural(previews ?? 0, 'preview')}${large} may be charged by each service; ${refused} further requests should be refused, which costs nothing.`;
}

/** Ends the check: nothing could be compared. */
const unusable = (service: Service, reason: string) =>
  new UserError(`${service.name} at ${service.endpoint.href}: ${reason}`);

/** Why no request can succeed at this service; undefined if they can. */
function refusalOf(
  { keyVariable }: Service,
  { status, headers, contentType, error }: Observation,
): string | undefined {
  if (status >= 300 && status < 400)
    return `it redirects to ${shown(headers.get('Location') ?? 'another address')}; give that address.`;
  const said = error && error.titles !== 'absent' ? ` (${error.titles})` : '';
  if ([401, 403].includes(status)) return `it does not accept the key in ${keyVariable}${said}.`;
  if (status === 402) return `the account has no credits${said}.`;
  if ([404, 405].includes(status))
    return `it has no such path (status ${status}); give the whole address of its removebg if it has another one.`;
  if (status >= 400) return `it answers the plain request with status ${status}${said}.`;
  if (!/^image\//.test(contentType))
    return `it answers with ${shown(contentType) || 'no type'} instead of an image.`;
  return undefined;
}

class Check {
  readonly #here: Service;
  readonly #there: Service;
  readonly #options: CheckOptions;
  readonly #limits: ProbeLimits;
  readonly #signal: AbortSignal;
  readonly rows: Row[] = [];
  readonly differences: Difference[] = [];
  #sameSubject = false;
  #unanswered = { here: 0, there: 0 };

  constructor(
    here: Service,
    there: Service,
    options: CheckOptions,
    limits: ProbeLimits,
    signal: AbortSignal,
  ) {
    this.#here = here;
    this.#there = there;
    this.#options = options;
    this.#limits = { ...limits, maxBytes: maxAnswerBytes };
    this.#signal = signal;
  }

  get #time() {
    return { timeoutMs: 1000 * this.#options.timeout, maxBytes: maxAnswerBytes, signal: this.#signal };
  }

  async #outcome(answer: Promise<Answer>): Promise<Outcome> {
    try {
      return await observe(await answer, this.#limits);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      return { unanswered: error.message };
    }
  }

  #add(request: Pick<CheckRequest, 'name' | 'cropped' | 'drawn'>, here: Outcome, there: Outcome): Means {
    const { name } = request;
    let means: Means = {};
    if ('status' in here && 'status' in there) {
      means = meansOf(here, there);
      if (request === plain) this.#sameSubject = isSameSubject(means);
      this.differences.push(...compare(request, here, there, means, this.#sameSubject));
    } else {
      const text = (outcome: Outcome) => ('status' in outcome ? String(outcome.status) : 'none');
      this.differences.push({
        request: name,
        kind: 'contract',
        what: 'answer',
        here: text(here),
        there: text(there),
      });
    }
    // Pixels are needed for the comparison only.
    const light = (outcome: Outcome): Outcome => {
      if (!('status' in outcome)) return outcome;
      const { planes: _, ...rest } = outcome;
      return rest;
    };
    this.rows.push({ request: name, here: light(here), there: light(there), means });
    return means;
  }

  /** Reaches both services. Throws UserError if one of them cannot be compared. */
  async begin(): Promise<void> {
    const answers: Outcome[] = [];
    for (const service of [this.#here, this.#there]) {
      const outcome = await this.#outcome(askAccount(service, this.#time));
      if ('unanswered' in outcome) throw unusable(service, `it ${outcome.unanswered}`);
      const { status } = outcome;
      if ((status >= 300 && status < 400) || [401, 403].includes(status))
        throw unusable(service, refusalOf(service, outcome) ?? '');
      answers.push(outcome);
    }
    const [here, there] = answers;
    if (here && there) this.#add({ name: 'account' }, here, there);
  }

  /** Sends one request to both. Throws UserError if the plain one shows that nothing can be compared. */
  async send({ request, images }: Step): Promise<void> {
    const parameters = { ...this.#time, images, fields: this.#options.field };
    const here = await this.#outcome(askFor(this.#here, request, parameters));
    const there = await this.#outcome(askFor(this.#there, request, parameters));
    if (request === plain)
      for (const [service, outcome] of [
        [this.#here, here],
        [this.#there, there],
      ] as const) {
        const reason = 'unanswered' in outcome ? `it ${outcome.unanswered}` : refusalOf(service, outcome);
        if (reason !== undefined) throw unusable(service, reason);
      }
    this.#add(request, here, there);
    this.#unanswered = {
      here: 'unanswered' in here ? this.#unanswered.here + 1 : 0,
      there: 'unanswered' in there ? this.#unanswered.there + 1 : 0,
    };
  }

  /** Why the rest is not sent; undefined while it should be. */
  get stopped(): string | undefined {
    const { here, there } = this.#unanswered;
    const service = here >= maxUnanswered ? this.#here : there >= maxUnanswered ? this.#there : undefined;
    return service && `${service.name} did not answer ${maxUnanswered} requests in a row.`;
  }
}

async function compareServices(
  here: Service,
  there: Service,
  steps: readonly Step[],
  options: CheckOptions,
  limits: ProbeLimits,
  { err, signal }: Streams,
): Promise<Report> {
  const check = new Check(here, there, options, limits, signal);
  await check.begin();
  const progress = checkProgress(err, steps.length);
  try {
    for (const step of steps) {
      if (check.stopped !== undefined) break;
      await check.send(step);
      progress.step();
    }
  } finally {
    progress.stop();
  }
  const { rows, differences, stopped } = check;
  return {
    here: here.endpoint.href,
    there: there.endpoint.href,
    rows,
    differences,
    ...(stopped !== undefined && { stopped }),
  };
}

/**
 * `cutout check`: sends the same requests to this service and to another one and lists what differs. Resolves with
 * whether no difference is one of the contract. Rejects with UserError, ModelError or EngineError if nothing can be
 * compared.
 */
export async function check(
  photos: readonly string[],
  options: CheckOptions,
  config: Config,
  streams: Streams,
): Promise<boolean> {
  const { out, err, signal } = streams;
  const { apiKey, againstKey } = config.accounts;
  const { against, server, json, pull, dryRun } = options;
  const limits = configureImages({ inputFormats: [] });
  const there = serviceAt('--against', against, {
    name: 'the other service',
    key: againstKey ?? '',
    keyVariable: 'CUTOUT_AGAINST_KEY',
  });
  const steps = await stepsFor(photos, options.full, limits);
  if (dryRun) {
    const rows = steps.map(({ request }) => [request.name, request.asked]);
    out.write(`${table([['REQUEST', 'ASKS FOR'], ...rows])}\n${costOf(steps)}\n`);
    return true;
  }
  if (againstKey === undefined)
    throw new UserError(
      'Set CUTOUT_AGAINST_KEY to the key of the other service, or to any text if it needs none.',
    );
  if (server !== undefined && pull) throw new UserError('--pull has no effect with --server.');
  if (server !== undefined && apiKey === undefined)
    throw new UserError('Set CUTOUT_API_KEY to the API key of the account on the server.');
  err.write(
    `${plural(steps.length, 'request')} to each service, besides one for the account. ${costOf(steps)}\n`,
  );
  const own = server === undefined ? await openOwnServer(config, { pull, err, signal }) : undefined;
  try {
    const here = serviceAt('--server', own?.address ?? server ?? '', {
      name: 'this service',
      key: own?.key ?? apiKey ?? '',
      keyVariable: 'CUTOUT_API_KEY',
    });
    const report = await compareServices(here, there, steps, options, limits, streams);
    out.write(json ? `${JSON.stringify(jsonReport(report), undefined, 2)}\n` : describeReport(report));
    return report.stopped === undefined && report.differences.every(({ kind }) => kind !== 'contract');
  } finally {
    await own?.close();
  }
}
