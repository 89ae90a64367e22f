import type { Form } from '../compiler/form.ts';
import type { Engine } from '../engine/engine.ts';
import type { NetworkSpec } from '../engine/types.ts';
import type { CacheKey } from '../models/optimised.ts';

/** A network being opened from any of its files. */
export interface Opening {
  readonly engine: Pick<Engine, 'load' | 'gpus'>;
  readonly located: NetworkSpec;
  readonly form: Form;
  readonly cacheKey: CacheKey | undefined;
  readonly signal: AbortSignal;
}
