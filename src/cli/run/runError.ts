import { UserError } from '../../errors.ts';

/** A failure that every other image would have too: the run ends. */
export class RunError extends UserError {}
