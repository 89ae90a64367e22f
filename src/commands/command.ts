import type { AuditEvent } from '../accounts/audit.ts';
import type { StoresTransaction, Transactional } from '../billing/transaction.ts';

/** Who runs a command. */
export interface Actor {
  /** Their account; null as in `AuditEvent.actor`. */
  readonly id: string | null;
  /** Client address, over HTTP. */
  readonly address?: string | undefined;
}

export interface CommandContext {
  /** If it is in a transaction already, the command is part of that. */
  readonly stores: Transactional;
  readonly actor: Actor;
}

interface CommandTransaction extends CommandContext {
  readonly stores: StoresTransaction;
  readonly record: (event: Omit<AuditEvent, 'actor' | 'address'>) => Promise<void>;
}

/** Runs `work` and writes its audit events in one transaction. `work` may run again. */
export const inTransaction = <T>(
  { stores, actor }: CommandContext,
  work: (transaction: CommandTransaction) => Promise<T>,
): Promise<T> =>
  stores.transaction((within) =>
    work({
      stores: within,
      actor,
      record: (event) => within.audit.write({ ...event, actor: actor.id, address: actor.address }),
    }),
  );
