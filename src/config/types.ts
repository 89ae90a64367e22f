import { UserError } from '../errors.ts';

export interface Setting<T> {
  readonly variable: string;
  /** Text as in the environment; empty means "not set". */
  readonly fallback: string;
  readonly help: string;
  /** Throws an Error whose message completes "NAME must be …". */
  readonly parse: (text: string) => T;
  readonly secret?: true;
  /** How `cutout config` shows a value that needs formatting. */
  readonly show?: (value: never) => unknown;
}

/** A setting by its variable, default and parser; `help` completes it. */
export const setting = <T>(
  variable: string,
  fallback: string,
  parse: (text: string) => T,
  more: Pick<Setting<T>, 'secret' | 'show'> = {},
) => ({ help: (help: string): Setting<T> => ({ variable, fallback, parse, help, ...more }) });

/** A setting without a default: its value is undefined unless it is set. */
export const optional = <T>(
  variable: string,
  parse: (text: string) => T,
  more: Pick<Setting<T>, 'secret' | 'show'> = {},
) => setting(variable, '', (text) => (text === '' ? undefined : parse(text)), more);

/** The settings of one part, by the property that holds the value. */
export type Settings = Readonly<Record<string, Setting<unknown>>>;

export type Values<Group extends Settings> = {
  readonly [Name in keyof Group]: ReturnType<Group[Name]['parse']>;
};

/** Throws UserError if only some of `names` are set: they are valid only together. */
export function requireTogether<Group extends Settings>(
  settings: Group,
  values: Values<Group>,
  names: readonly (keyof Group)[],
): void {
  const variables = (given: boolean) =>
    names.filter((name) => (values[name] !== undefined) === given).map((name) => settings[name]?.variable);
  const [given, missing] = [variables(true), variables(false)];
  if (given.length > 0 && missing.length > 0)
    throw new UserError(
      `${given.join(', ')} ${given.length === 1 ? 'requires' : 'require'} ${missing.join(', ')}, which ${missing.length === 1 ? 'is' : 'are'} not set.`,
    );
}
