import path from 'node:path';
import { UserError } from '../errors.ts';
import { accountsSettings } from './accounts.ts';
import { billingSettings, checkBilling } from './billing.ts';
import { cutoutSettings } from './cutout.ts';
import { type EngineConfig, engineSettings } from './engine.ts';
import { checkFetch, fetchSettings } from './fetch.ts';
import { httpSettings } from './http.ts';
import { checkImprove, type ImproveConfig, improveSettings } from './improve.ts';
import { limitsSettings } from './limits.ts';
import { observeSettings } from './observe.ts';
import { redisSettings } from './redis.ts';
import type { Setting, Settings, Values } from './setting.ts';
import { checkSignIn, signInSettings } from './signIn.ts';
import { storeSettings } from './store.ts';

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

function refuseUnknown(env: Environment): void {
  const known = new Set<string>(allSettings.map(({ variable }) => variable));
  for (const name of Object.keys(env)) {
    if (!name.startsWith('CUTOUT_') || name.startsWith(testPrefix) || known.has(name)) continue;
    throw new UserError(`${name} is not a setting of Cutout. \`cutout config\` lists all of them.`);
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

function readPart(settings: Settings, env: Environment): Values<Settings> {
  const values = Object.entries(settings).map(([name, setting]) => [name, read(setting, env)]);
  return Object.freeze(Object.fromEntries(values));
}

/**
 * Reads the configuration and freezes it. A variable that is set but empty counts as not set. Throws
 * UserError for an unknown CUTOUT_* name, an invalid value and an incomplete group of settings, naming the
 * variable.
 */
export function loadConfig(env: Environment = process.env): Config {
  refuseUnknown(env);
  const parsed = Object.fromEntries(
    partNames.map((part) => [part, readPart(parts[part], env)]),
  ) as unknown as Parsed;
  const { http, store, engine, billing, signIn, improve, fetch } = parsed;
  checkBilling(billing);
  checkSignIn(signIn, http.publicUrl);
  checkImprove(improve);
  checkFetch(fetch);
  const sources = allSettings.map(
    ({ variable }) => [variable, given(env, variable) === '' ? 'default' : 'environment'] as const,
  );
  return Object.freeze({
    ...parsed,
    engine: Object.freeze({ ...engine, modelsDir: engine.modelsDir ?? path.join(store.dataDir, 'models') }),
    improve: Object.freeze({ ...improve, folder: improve.folder ?? path.join(store.dataDir, 'improve') }),
    sources: Object.freeze(Object.fromEntries(sources)),
  });
}

interface ConfigLine {
  readonly variable: string;
  readonly value: unknown;
  readonly source: 'default' | 'environment';
  readonly help: string;
}

/** Output of `cutout config`: one line per setting, secrets masked. */
export function describeConfig(config: Config): ConfigLine[] {
  return partNames.flatMap((part) => {
    const values: Readonly<Record<string, unknown>> = config[part];
    return Object.entries(parts[part]).map(([name, setting]: [string, Setting<unknown>]) => {
      const { variable, help, secret, show } = setting;
      const value = values[name];
      return {
        variable,
        value: value === undefined ? null : secret ? '(set)' : show ? show(value as never) : value,
        source: config.sources[variable] ?? 'default',
        help,
      };
    });
  });
}
