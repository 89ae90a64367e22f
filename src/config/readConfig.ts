import { existsSync } from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.ts';
import { accountsSettings } from './accounts.ts';
import { billingSettings, checkBilling } from './billing.ts';
import { cutoutSettings } from './cutout.ts';
import { checkSecondModel, type EngineConfig, engineSettings } from './engine.ts';
import { checkFetch, fetchSettings } from './fetch.ts';
import { httpSettings } from './http.ts';
import { checkImprove, type ImproveConfig, improveSettings } from './improve.ts';
import { limitsSettings } from './limits.ts';
import { observeSettings } from './observe.ts';
import { checkCallback, checkOperators, checkProviders, signInSettings } from './signIn.ts';
import { redisSettings, storeSettings } from './store.ts';
import type { Setting, Settings, Values } from './types.ts';

/**
 * Configuration: the only reader of the environment. Every setting is declared once, in the file of its part;
 * its type, the check at start-up and the table of `cutout config` follow from the declaration.
 */
const parts = {
  http: httpSettings,
  store: storeSettings,
  engine: engineSettings,
  cutout: cutoutSettings,
  limits: limitsSettings,
  redis: redisSettings,
  accounts: accountsSettings,
  billing: billingSettings,
  signIn: signInSettings,
  improve: improveSettings,
  fetch: fetchSettings,
  observe: observeSettings,
} as const satisfies Record<string, Settings>;

type Parts = typeof parts;
type PartName = keyof Parts;
type Parsed = { readonly [Part in PartName]: Values<Parts[Part]> };

/** Origin of each value, by the name of its variable. */
type Sources = Readonly<Record<string, 'default' | 'environment'>>;

export interface Config extends Omit<Parsed, 'engine' | 'improve'> {
  readonly engine: EngineConfig;
  readonly improve: ImproveConfig;
  readonly sources: Sources;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const partNames = Object.keys(parts) as PartName[];
const allSettings: readonly Setting<unknown>[] = partNames.flatMap((part) => Object.values(parts[part]));

/** Reserved for the test suite; not settings. */
const testPrefix = 'CUTOUT_TEST_';

/** The result of `work`; undefined if it throws UserError, whose message is added to `faults`: one start reports all that is wrong. */
function attempt<T>(faults: string[], work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    faults.push(error.message);
    return undefined;
  }
}

/** The text of a variable; empty if it is not set. */
const given = (env: Environment, variable: string): string => env[variable]?.trim() ?? '';

function read<T>({ variable, fallback, parse, secret }: Setting<T>, env: Environment): T {
  const text = given(env, variable);
  try {
    return parse(text === '' ? fallback : text);
  } catch (error) {
    const expected = error instanceof Error ? error.message : 'something else';
    throw new UserError(`${variable} must be ${expected}${secret ? '' : `, not "${text}"`}.`);
  }
}

/** What settings require of each other: of which parts, and the check, which throws UserError. */
const checks: readonly { of: readonly PartName[]; check: (parsed: Parsed) => void }[] = [
  { of: ['engine'], check: ({ engine }) => checkSecondModel(engine) },
  { of: ['billing', 'http'], check: ({ billing, http }) => checkBilling(billing, http.publicUrl) },
  { of: ['signIn'], check: ({ signIn }) => checkProviders(signIn) },
  { of: ['signIn', 'http'], check: ({ signIn, http }) => checkCallback(signIn, http.publicUrl) },
  { of: ['signIn'], check: ({ signIn }) => checkOperators(signIn) },
  { of: ['improve'], check: ({ improve }) => checkImprove(improve) },
  { of: ['fetch'], check: ({ fetch }) => checkFetch(fetch) },
];

/** Settings that cannot be used: a line for every fault in the message, and the settings as far as they can be read. */
export class InvalidSettings extends UserError {
  readonly lines: readonly ConfigLine[];

  constructor(faults: readonly string[], lines: readonly ConfigLine[]) {
    super(faults.join('\n'));
    this.lines = lines;
  }
}

/** All parts. Throws InvalidSettings; a check of a part with an invalid value is left out. */
function readParts(env: Environment): Parsed {
  const known = new Set<string>(allSettings.map(({ variable }) => variable));
  const faults = Object.keys(env)
    .filter((name) => name.startsWith('CUTOUT_') && !name.startsWith(testPrefix) && !known.has(name))
    .map((name) => `${name} is not a setting of Cutout. \`cutout config\` lists all of them.`);
  const invalid = new Set<PartName>();
  const readPart = (part: PartName) => {
    const before = faults.length;
    const values = Object.entries<Setting<unknown>>(parts[part]).map(
      ([name, setting]) => [name, attempt(faults, () => read(setting, env))] as const,
    );
    if (faults.length > before) invalid.add(part);
    return [part, Object.freeze(Object.fromEntries(values))] as const;
  };
  const parsed = Object.fromEntries(partNames.map(readPart)) as unknown as Parsed;
  for (const { of, check } of checks)
    if (!of.some((part) => invalid.has(part))) attempt(faults, () => check(parsed));
  if (faults.length > 0) throw new InvalidSettings(faults, invalidLines(parsed, env, faults));
  return parsed;
}

/** Every setting, with those marked that a fault names; the value of one that cannot be parsed is the text given. */
function invalidLines(parsed: Parsed, env: Environment, faults: readonly string[]): ConfigLine[] {
  const named = new Set(faults.flatMap((message) => message.match(/\bCUTOUT_[A-Z0-9_]+/g) ?? []));
  return linesOf(withFolders(parsed, env), sourcesOf(env), (variable) => given(env, variable) || null).map(
    (line) => (named.has(line.variable) ? { ...line, wrong: true as const } : line),
  );
}

/** What the folder of a checkout has, beside which its data lie. */
const checkoutMark = path.join('models', 'isnet', 'model.json');

/**
 * The folder of networks unless CUTOUT_MODELS_DIR says it: in a data folder that is set, beside a checkout, or that has some
 * already; else in the user's own place (XDG Base Directory Specification), so that any folder uses the same.
 */
function networksFolder(dataDir: string, env: Environment): string {
  const inData = path.join(dataDir, 'models');
  if (given(env, 'CUTOUT_DATA_DIR') !== '' || existsSync(inData) || existsSync(checkoutMark)) return inData;
  const home = given(env, 'HOME');
  const own = given(env, 'XDG_DATA_HOME') || (home && path.join(home, '.local', 'share'));
  // A relative path there counts as unset.
  return path.isAbsolute(own) ? path.join(own, 'cutout', 'models') : inData;
}

/** What is worked out from the settings: the folders that are inside the data folder unless they are set. */
function withFolders(parsed: Parsed, env: Environment): Omit<Config, 'sources'> {
  const { store, engine, improve } = parsed;
  return {
    ...parsed,
    engine: Object.freeze({
      ...engine,
      device: engine.device === 'auto' ? 'cpu' : engine.device,
      auto: engine.device === 'auto',
      vulkanDrivers: given(env, 'VK_DRIVER_FILES'),
      modelsDir: engine.modelsDir ?? networksFolder(store.dataDir, env),
      runtimesDir: path.join(store.dataDir, 'runtimes'),
    }),
    improve: Object.freeze({ ...improve, folder: path.join(store.dataDir, 'improve') }),
  };
}

const sourcesOf = (env: Environment): Sources =>
  Object.freeze(
    Object.fromEntries(
      allSettings.map(
        ({ variable }) => [variable, given(env, variable) === '' ? 'default' : 'environment'] as const,
      ),
    ),
  );

/**
 * Reads the configuration and freezes it. A variable that is set but empty counts as not set. Throws
 * InvalidSettings that names, a line each, every unknown CUTOUT_* name, invalid value and incomplete group of settings.
 */
export function loadConfig(env: Environment = process.env): Config {
  return Object.freeze({ ...withFolders(readParts(env), env), sources: sourcesOf(env) });
}

/** With the network that a command line names, if any. Throws UserError if the second network is that one. */
export function withModel(config: Config, model: string | undefined): Config {
  if (model === undefined) return config;
  const engine = Object.freeze({ ...config.engine, model });
  checkSecondModel(engine);
  return Object.freeze({ ...config, engine });
}

export interface ConfigLine {
  readonly variable: string;
  readonly value: unknown;
  readonly source: 'default' | 'environment';
  readonly help: string;
  /** A fault names it. */
  readonly wrong?: true;
}

/** `textOf`: what is shown of a setting without a value. */
const linesOf = (
  config: Omit<Config, 'sources'>,
  sources: Sources,
  textOf: (variable: string) => string | null,
): ConfigLine[] =>
  partNames.flatMap((part) => {
    const unchosen = part === 'engine' && config.engine.auto && { device: 'auto' };
    const values: Readonly<Record<string, unknown>> = { ...config[part], ...unchosen };
    return Object.entries(parts[part]).map(([name, setting]: [string, Setting<unknown>]) => {
      const { variable, help, secret, show } = setting;
      const value = values[name] ?? textOf(variable);
      const shown = values[name] === undefined ? value : show ? show(value as never) : value;
      return {
        variable,
        value: secret && value !== null ? '(set)' : shown,
        source: sources[variable] ?? 'default',
        help,
      };
    });
  });

/** Output of `cutout config`: one line per setting, secrets masked. */
export const describeConfig = (config: Config): ConfigLine[] => linesOf(config, config.sources, () => null);
