import { randomBytes } from 'node:crypto';
import type { Sql } from './database.ts';

/** A secret of 32 random bytes shared by all servers of this database; created at its first use. */
export async function sharedSecret(sql: Sql, name: string): Promise<Buffer> {
  const find = () => sql.get<{ value: Buffer }>('SELECT value FROM secret WHERE name = @name', { name });
  let found = await find();
  if (!found) {
    const value = randomBytes(32);
    await sql.run('INSERT INTO secret (name, value) VALUES (@name, @value) ON CONFLICT DO NOTHING', {
      name,
      value,
    });
    found = await find();
  }
  if (!found) throw new Error(`The shared secret ${name} was removed while it was created.`);
  return found.value;
}
